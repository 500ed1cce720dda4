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
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from laconic.deploy.broker import broker_command
from laconic.deploy.examples import read_examples
from laconic.deploy.keeper import Keeper, end_all
from laconic.deploy.settings import read_settings
from laconic.deploy.trying import find_free_port
from laconic.fleets.source import ClientData
from laconic.runs.config import read_config
from laconic.runs.run import drive, find_conditions
from laconic.runs.typed_toml import ConfigError
from laconic.simulation import Federation, federate

N_NODES = 3
MACHINE = ["method.epochs=1", "method.threshold=20", "method.n_clauses=8"]
PATIENCE_SECONDS, TAIL_LINES = 120, 40
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
        end_all([self._keepers.pop(name)], PATIENCE_SECONDS)

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

    @contextlib.contextmanager
    def hold(self, client: int) -> Iterator[Callable[[], None]]:
        """The client's next step stops at reading its examples; what is yielded waits until it does."""
        node, handles = self.node(client), []
        data, kept, pipe = node / "data.npz", node / "kept.npz", node / "pipe"

        def wait() -> None:
            handles.append(self.wait_for(f"step of client {client}", lambda: open_for_reader(data)))

        shutil.copy(data, kept)
        os.mkfifo(pipe)
        pipe.rename(data)  # who is reading the file goes on with it
        try:
            yield wait
        finally:
            content = kept.read_bytes()
            kept.rename(data)
            for handle in handles:
                with contextlib.suppress(BrokenPipeError):  # the reader was killed
                    os.write(handle, content)
                os.close(handle)

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
        server = self._keepers.pop("server", None)
        end_all([*self._keepers.values()], 30)
        end_all([server] if server else [], 30)
        for pid in find_processes("", self.folder / "broker"):  # one that has lost its server
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def open_for_reader(pipe: Path) -> int | None:
    """For writing, if somebody has opened it to read."""
    try:
        return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return None


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


def make_data(path: Path) -> list[str]:
    """8 by 8 bit images of 3 classes; each client has two of them."""
    rng = np.random.default_rng(0)
    patterns, arrays = rng.random((3, 8, 8)) < 0.5, {}
    for part in ("train", "test"):
        owners = np.repeat(np.arange(N_NODES), 24)
        labels = (owners + np.arange(len(owners)) % 2) % 3
        x = patterns[labels] ^ (rng.random((len(labels), 8, 8)) < 0.1)
        arrays |= {f"x_{part}": x.astype(np.uint8), f"y_{part}": labels, f"owner_{part}": owners}
    np.savez(path, **arrays)
    return [f"data.name={path}", "data.partition=natural", "data.group=owner", "data.min_samples=10"]


def run_here(deployment: Deployment, settings: list[str], out: Path) -> Path:
    """On the local fleet, with the nodes' own files."""
    config, source = read_config(None, settings), {}
    for client, node in enumerate(deployment.nodes):
        known = read_settings(node, "node")
        source[client] = read_examples(node / known.data, known.task)

    @contextlib.contextmanager
    def open_here(on_progress) -> Iterator[Federation]:
        with federate(
            config.method,
            known.task,
            ClientData(((0, source),)),
            config.seed,
            workers=1,
            conditions=find_conditions(config),
            folder=out / "checkpoints",
            on_progress=on_progress,
        ) as federation:
            federation.fleet._take_notes = lambda hop, reply: None  # owners of nodes let none go, unless they say so
            yield federation

    out.mkdir()
    drive(config, out, open_here, None)
    return out


def assert_same(deployment: Deployment, out: Path, here: Path) -> None:
    """Records, the server's state and each node's, and every round once."""
    for name in ("metrics", "clients", "pairs", "matrices", "traffic"):
        assert (out / f"{name}.jsonl").read_bytes() == (here / f"{name}.jsonl").read_bytes(), name
    for state in (here / "checkpoints").glob("server-*"):
        assert (out / "checkpoints" / state.name).read_bytes() == state.read_bytes()
    run_id = json.loads((out / "deployed.json").read_text())["run"]
    for client, node in enumerate(deployment.nodes):
        newest = sorted((node / "runs" / run_id).glob("round-*"))[-1]
        (local,) = (here / "checkpoints").glob(f"client-{client:05d}-*")
        assert (newest / "client.safetensors").read_bytes() == local.read_bytes(), client
