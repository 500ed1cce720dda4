"""A Ray cluster of several nodes on this machine, started as its user would, with `ray start`."""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

SOON = {"health_check_period_ms": 1000, "health_check_failure_threshold": 3}  # a lost node is noticed, not in 15 s
RAY = Path(sys.executable).parent / "ray"


class Node:
    """The head, or one that joins the head at an address."""

    def __init__(self, folder: Path, head: Self | None = None) -> None:
        self.address = head.address if head else f"127.0.0.1:{find_free_port()}"
        port = self.address.rpartition(":")[2]
        where = [f"--address={head.address}"] if head else ["--head", f"--port={port}", f"--temp-dir={folder}"]
        where += [] if head else ["--include-dashboard=false", f"--system-config={json.dumps(SOON)}"]
        options = ["--node-ip-address=127.0.0.1", "--num-cpus=1", "--object-store-memory=100000000", "--block"]
        self.log = folder / f"node-{time.time_ns()}.log"
        with self.log.open("wb") as log:
            environment = os.environ | {"RAY_USAGE_STATS_ENABLED": "0"}
            command = [str(RAY), "start", *where, *options]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        while b"Ray runtime started" not in self.log.read_bytes():
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.05)

    @property
    def raylet(self) -> int:
        """Its process id."""
        (pid,) = find_children(self.process.pid, "/raylet ")
        return pid

    @property
    def actors(self) -> list[int]:
        return find_children(self.raylet, "ray::Actor")

    def kill(self) -> None:
        """As a machine that is switched off: its actors end too, once they notice."""
        actors = self.actors
        os.kill(self.raylet, signal.SIGKILL)
        while any(Path(f"/proc/{pid}").exists() for pid in actors):
            time.sleep(0.05)

    def kill_actor(self) -> None:
        os.kill(self.actors[0], signal.SIGKILL)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


def wait_until_alive(n_nodes: int) -> None:
    """A node says that it has started before the others know, and is gone before they notice."""
    import ray

    while sum(node["Alive"] for node in ray.nodes()) != n_nodes:
        time.sleep(0.05)


def find_children(parent: int, word: str) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(parent), "-f", word], check=False, capture_output=True, text=True)
    return [int(pid) for pid in found.stdout.split()]


def find_free_port() -> int:
    """Of those that no connection is given, nor Ray's workers: it must stay free until it is taken, and in between."""
    while True:
        port = random.SystemRandom().randrange(20000, 32768)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
