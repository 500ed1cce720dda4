"""A SuperLink with TLS and three SuperNodes with keys on this machine, started as their users would.

Nothing here is timed: waits are long enough for a machine that is ten times as busy as one would wish.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
from mqtt_nodes import read_tail, set_all
from numpy.typing import NDArray

from ray_nodes import find_free_port

LACONIC = str(Path(sys.executable).parent / "laconic")
N_NODES, PATIENCE_SECONDS, TAIL_LINES = 3, 600, 40
T = TypeVar("T")


class Proxy:
    """Passes TCP on to a port of this machine, and counts the bytes of each way."""

    def __init__(self, port: int) -> None:
        self.up_bytes = self.down_bytes = 0
        self._port, self._lock, self._listener = port, threading.Lock(), socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def count(self) -> NDArray[np.int64]:
        """Up and down, so far."""
        return np.array([self.up_bytes, self.down_bytes])

    def _accept(self) -> None:
        while True:
            near, _ = self._listener.accept()
            try:
                far = socket.create_connection(("127.0.0.1", self._port))
            except OSError:  # the SuperLink is down
                near.close()
                continue
            for source, sink, is_up in ((near, far, True), (far, near, False)):
                threading.Thread(target=self._pass_on, args=(source, sink, is_up), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, is_up: bool) -> None:
        try:
            while data := source.recv(1 << 16):
                with self._lock:
                    self.up_bytes += len(data) * is_up
                    self.down_bytes += len(data) * (not is_up)
                sink.sendall(data)
        except OSError:
            pass
        finally:
            for end in (source, sink):  # the other thread may wait for either
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            source.close()


class Deployment:
    """Its nodes reach the server through a proxy that counts."""

    def __init__(self, folder: Path, words: list[str]) -> None:
        """words: for `laconic deploy init`, of the data to be shared out or of those that nodes will bring."""
        self.folder, self.started, port = folder, time.monotonic(), find_free_port()
        command = [LACONIC, "deploy", "init", str(folder), *words, "--address", f"127.0.0.1:{port}", "--over", "flower"]
        made = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr
        self.proxy = Proxy(port)
        for path in folder.glob("node-*/node.toml"):
            path.write_text(path.read_text().replace(str(port), str(self.proxy.port)))
        self._keepers = [self._start("server", self.server)]

    @property
    def server(self) -> Path:
        return self.folder / "server"

    @property
    def nodes(self) -> list[Path]:
        return sorted(self.folder.glob("node-*"))

    def node(self, client: int) -> Path:
        return self.nodes[client]

    def run(self, settings: list[str], out: Path) -> Path:
        command = [LACONIC, "deploy", "run", str(self.server), *set_all(settings), "--out", str(out)]
        with (self.folder / f"run-{out.name}.log").open("wb") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            assert process.wait(2 * PATIENCE_SECONDS) == 0, read_tail(out / "events.log")
        finally:
            process.kill()
        return out

    def start_nodes(self) -> None:
        """Once the SuperLink is there: they wait before they try again."""
        self.wait_for("three nodes registered", lambda: len(self.ask_status()) == N_NODES, 2)
        self._keepers.append(self._start("node", *self.nodes))
        self.wait_for("three nodes online", lambda: self.ask_status().count("online") == N_NODES, 2)

    def ask_status(self) -> list[str]:
        """Of each node that is registered."""
        command = [LACONIC, "deploy", "status", str(self.server), "--json"]
        asked = subprocess.run(command, check=False, capture_output=True, stdin=subprocess.DEVNULL)
        return [row["status"] for row in json.loads(asked.stdout or "[]")]

    def wait_for(self, what: str, is_there: Callable[[], T | None], every_seconds: float = 0.2) -> T:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (found := is_there()):
            if time.monotonic() > deadline:
                raise AssertionError(f"after {PATIENCE_SECONDS} s still no {what}\n{self.describe()}")
            time.sleep(every_seconds)
        return found

    def describe(self) -> str:
        """What its processes said last, for whoever has to find out."""
        logs = [*self.folder.glob("*.log"), *self.folder.glob("*/flower.log")]
        return "\n".join(f"--- {path}\n{read_tail(path)}" for path in sorted(logs))

    def close(self) -> None:
        """Everything that it started ends, even what has lost its parent."""
        for keeper in self._keepers:
            keeper.terminate()
        for keeper in self._keepers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                keeper.wait(60)
            keeper.kill()
            keeper.wait()
        for folder in self.folder.iterdir():
            for pid in find_processes(folder):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _start(self, kind: str, *folders: Path) -> "subprocess.Popen[bytes]":
        with (self.folder / f"keeper-{kind}.log").open("wb") as log:
            command = [LACONIC, "deploy", kind, *map(str, folders)]
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def find_processes(folder: Path, program: str = "") -> list[int]:
    """Those that Flower runs for a server's or node's folder; program: only with that name."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().split(b"\0")
            environment = (path / "environ").read_bytes().split(b"\0")
        except OSError:  # it has ended, or is another user's
            continue
        is_named = not program or any(Path(os.fsdecode(word)).name == program for word in words[:2])
        if is_named and f"FLWR_HOME={folder.resolve() / 'flower'}".encode() in environment:
            found.append(int(path.name))
    return found
