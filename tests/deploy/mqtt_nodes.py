"""A broker, a server and nodes on this machine over TLS, started as their users would, and killed as nobody would.

Nothing here is timed: waits are long enough for a machine that is ten times as busy as one would wish.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from laconic.deploy.broker import broker_command
from laconic.deploy.keeper import Keeper
from laconic.deploy.trying import find_free_port
from laconic.runs.typed_toml import ConfigError

PATIENCE_SECONDS, TAIL_LINES = 300, 40
T = TypeVar("T")


def find_broker() -> bool:
    try:
        broker_command()
    except ConfigError:
        return False
    return True


def laconic(*words: object, **options: object) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-m", "laconic", *map(str, words)], stdin=subprocess.DEVNULL, **options)


def set_all(settings: list[str]) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


class Deployment:
    """Its server and nodes come back after two seconds when they are killed, as systemd has it."""

    def __init__(self, folder: Path, words: list[str]) -> None:
        """words: for `laconic deploy init`, of the data to be shared out or of those that nodes will bring."""
        self.folder, self.server = folder, folder / "server"
        self.port = find_free_port()
        made = laconic("deploy", "init", folder, *words, "--address", f"127.0.0.1:{self.port}", stderr=subprocess.PIPE)
        _, said = made.communicate()
        assert made.returncode == 0, said
        self.nodes = sorted(folder.glob("node-*"))
        self._keepers: dict[str, Keeper] = {}
        self._running: list[subprocess.Popen[bytes]] = []

    def node(self, client: int) -> Path:
        return self.nodes[client]

    def start(self) -> None:
        self.keep("server")
        for node in self.nodes:
            self.keep(node.name)
        self.wait_for_status(["online"] * len(self.nodes))

    def keep(self, name: str, *words: str) -> None:
        """The server, or the node of that folder."""
        kind, folder = "server" if name == "server" else "node", self.folder / name
        command = [sys.executable, "-m", "laconic", "deploy", kind, str(folder), *words]
        keeper = Keeper(name, folder / f"{kind}.log", partial(list, command), lambda line: None, 2.0)
        self._keepers[name] = keeper
        keeper.look_after()

    def look_after(self) -> None:
        for keeper in list(self._keepers.values()):
            keeper.look_after()

    def end(self, name: str) -> None:
        """It takes leave, and stays away."""
        self._keepers.pop(name).stop(PATIENCE_SECONDS)

    def begin(self, settings: list[str], out: Path, *words: str) -> "subprocess.Popen[bytes]":
        command = ["deploy", "run", self.server, *set_all(settings), "--out", out, *words]
        with (self.folder / f"run-{out.name}.log").open("wb") as log:
            self._running.append(laconic(*command, stdout=log, stderr=log))
        return self._running[-1]

    def read_log(self, out: Path) -> str:
        return (self.folder / f"run-{out.name}.log").read_text(errors="replace")

    def run(self, settings: list[str], out: Path, *words: str) -> Path:
        process = self.begin(settings, out, *words)
        self.wait_for(f"end of {out}", lambda: process.poll() is not None)
        assert process.returncode == 0, self.read_log(out)
        return out

    def wait_for(self, what: str, is_there: Callable[[], T | None]) -> T:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (found := is_there()):
            self.look_after()
            if time.monotonic() > deadline:
                raise AssertionError(f"after {PATIENCE_SECONDS} s still no {what}\n{self.describe()}")
            time.sleep(0.05)
        return found

    def wait_for_status(self, due: list[str]) -> None:
        self.wait_for(f"nodes that are {due}", lambda: self.read_status() == due)

    def read_status(self) -> list[str]:
        path = self.server / "nodes.json"
        return [node["status"] for node in json.loads(path.read_text())["nodes"]] if path.exists() else []

    def wait_for_round(self, out: Path, number: int) -> None:
        self.wait_for(f"round {number}", lambda: count_rounds(out) > number)

    def find_process(self, name: str) -> int:
        """Of the broker, the server or a node."""
        if name == "broker":
            return next(iter(find_processes("mosquitto", self.folder / "broker")))
        process = self._keepers[name]._process
        assert process is not None
        return process.pid

    def kill(self, *names: str) -> None:
        for pid in [self.find_process(name) for name in names]:
            os.kill(pid, signal.SIGKILL)

    def describe(self) -> str:
        """What its processes said last, for whoever has to find out."""
        logs = [*self.folder.glob("*.log"), *self.folder.glob("*/*.log")]
        return "\n".join(f"--- {path}\n{read_tail(path)}" for path in sorted(logs))

    def close(self) -> None:
        for process in self._running:
            process.kill()
            process.wait()
        for name in sorted(self._keepers, reverse=True):  # the server last
            self._keepers[name].stop(30)
        for pid in find_processes("", self.folder / "broker"):  # one that has lost its server
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def count_rounds(out: Path) -> int:
    path = out / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def find_processes(program: str, folder: Path) -> list[int]:
    """Of that name, which run in that folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            name = (path / "comm").read_text().strip()
            if name.startswith(program) and (path / "cwd").resolve() == folder.resolve():
                found.append(int(path.name))
    return found


def read_tail(path: Path) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-TAIL_LINES:])


def copy_data(deployment: Deployment, other: Deployment) -> None:
    for node in deployment.nodes:
        shutil.copy(node / "data.npz", other.folder / node.name)
