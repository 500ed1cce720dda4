"""Real processes on this machine: a SuperLink with TLS, three SuperNodes with keys, and what becomes of them.

Flower starts a Python process for every message, so an exchange takes seconds: few rounds, and one deployment for all.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from laconic.runs.config import read_config
from laconic.runs.run import run

pytest.importorskip("flwr", reason="flwr is not installed: pip install 'laconic[flower]'")

from laconic.deploy.keys import make_node_key
from laconic.deploy.processes import QUIET, node_command

pytestmark = pytest.mark.deployment
LACONIC = str(Path(sys.executable).parent / "laconic")
N_NODES, N_ROUNDS, PATIENCE_SECONDS, IDLE_SECONDS = 3, 2, 420, 15
SMALL = [
    "method.epochs=1",
    "method.threshold=20",
    "method.n_clauses=8",
    f"rounds={N_ROUNDS}",
    f"evaluate_every={N_ROUNDS}",
]
ONE_METHOD = {"cs-pfedtm": ["method.n_shared=4"], "clausepool": ["method.min_examples=2"], "fedtm": []}


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


class Deployment(NamedTuple):
    folder: Path
    settings: list[str]  # of the data that were shared out
    proxy: Proxy

    def node(self, client: int) -> Path:
        return self.folder / f"node-{client:03d}"


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


def laconic(*words: str | Path, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([LACONIC, *map(str, words)], capture_output=True, text=True, check=True, **options)


def set_all(settings: list[str]) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


def wait_for(what: str, is_there, seconds: float = PATIENCE_SECONDS):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := is_there():
            return found
        time.sleep(0.2)
    pytest.fail(f"after {seconds} s still no {what}")


def find_process(program: str, folder: Path) -> int | None:
    """Of those that Flower runs for this folder."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().split(b"\0")
            environment = (path / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(Path(word.decode()).name == program for word in words[:2]) and (
            f"FLWR_HOME={folder.resolve() / 'flower'}".encode() in environment
        ):
            return int(path.name)
    return None


def kill(program: str, folder: Path) -> None:
    os.kill(wait_for(program, lambda: find_process(program, folder)), signal.SIGKILL)


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("deployment")
    settings = make_data(folder / "made.npz")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    laconic("deploy", "init", folder / "d", *set_all(settings), "--address", f"127.0.0.1:{port}")
    proxy = Proxy(port)
    for path in (folder / "d").glob("node-*/node.toml"):
        path.write_text(path.read_text().replace(str(port), str(proxy.port)))
    nodes = sorted((folder / "d").glob("node-???"))
    with (folder / "out").open("w") as out:
        commands = [[LACONIC, "deploy", "server", folder / "d" / "server"], [LACONIC, "deploy", "node", *nodes]]
        keepers = [subprocess.Popen(list(map(str, command)), stdout=out, stderr=out) for command in commands]
    try:
        wait_for("three nodes online", lambda: count_online(folder / "d" / "server") == N_NODES)
        yield Deployment(folder / "d", settings, proxy)
    finally:
        for keeper in keepers:
            keeper.terminate()
        for keeper in keepers:
            keeper.wait()


def count_online(server: Path) -> int:
    command = [LACONIC, "deploy", "status", str(server), "--json"]
    asked = subprocess.run(command, check=False, capture_output=True)
    return sum(row["status"] == "online" for row in json.loads(asked.stdout or "[]"))


def run_method(deployment: Deployment, method: str, out: Path) -> Path:
    settings = [*deployment.settings, f"method.name={method}", *SMALL, *ONE_METHOD[method]]
    laconic("deploy", "run", deployment.folder / "server", *set_all(settings), "--out", out, timeout=900)
    return out


def assert_same_as_local(deployment: Deployment, method: str, out: Path, scratch: Path) -> None:
    config = read_config(None, [*deployment.settings, f"method.name={method}", *SMALL, *ONE_METHOD[method]])
    run(config, scratch)
    for name in ("metrics.jsonl", "clients.jsonl", "traffic.jsonl", f"checkpoints/server-{N_ROUNDS:06d}.safetensors"):
        assert (out / name).read_bytes() == (scratch / name).read_bytes(), name
    run_id = json.loads((out / "deployed.json").read_text())["run"]
    for client in range(N_NODES):
        newest = sorted((deployment.node(client) / "runs" / run_id).glob("round-*"))[-1]
        (local,) = (scratch / "checkpoints").glob(f"client-{client:05d}-*")
        assert (newest / "client.safetensors").read_bytes() == local.read_bytes(), client


def test_final_states_equal_the_local_fleets_bit_for_bit(deployment: Deployment, tmp_path: Path) -> None:
    """And the ledger's bytes are fewer than those that crossed the socket; pytest -s prints both."""
    methods = ("cs-pfedtm", "clausepool")
    start, idle = time.monotonic(), deployment.proxy.count()
    time.sleep(IDLE_SECONDS)
    polled = (deployment.proxy.count() - idle) / (time.monotonic() - start)
    start, before = time.monotonic(), deployment.proxy.count()
    folders = {method: run_method(deployment, method, tmp_path / method) for method in methods}
    crossed, seconds = deployment.proxy.count() - before, time.monotonic() - start
    for method, out in folders.items():
        assert_same_as_local(deployment, method, out, tmp_path / f"local-{method}")
    done = [json.loads((out / "DONE.json").read_text()) for out in folders.values()]
    counted = np.array([sum(each[f"{way}load_bytes"] for each in done) for way in ("up", "down")])
    print(f"up and down: ledger {counted}, socket {crossed} in {seconds:.0f} s, idle {polled.round()} a second")
    assert (counted > 0).all()
    assert (counted < crossed).all()


@pytest.mark.parametrize("has_key", [True, False], ids=["unregistered key", "no key"])
def test_a_stranger_is_refused(deployment: Deployment, has_key: bool, tmp_path: Path) -> None:
    stranger = tmp_path / "node-000"
    shutil.copytree(deployment.node(0), stranger, ignore=shutil.ignore_patterns("runs", "flower*", "key"))
    make_node_key(stranger / "key", tmp_path / "key.pub")
    command = node_command(stranger)()
    if not has_key:
        at = command.index("--auth-supernode-private-key")
        del command[at : at + 2]
    command[0] = str(Path(sys.executable).parent / command[0])
    environment = os.environ | QUIET | {"FLWR_HOME": str(tmp_path / "flower")}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    with (tmp_path / "log").open("w") as log:
        node = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        assert node.wait(PATIENCE_SECONDS) != 0
    finally:  # its SuperExec may outlive it
        with contextlib.suppress(ProcessLookupError):
            os.killpg(node.pid, signal.SIGKILL)
    assert count_online(deployment.folder / "server") == N_NODES


def test_a_run_ends_the_same_though_app_node_and_superlink_are_killed(deployment: Deployment, tmp_path: Path) -> None:
    out, server = tmp_path / "run", deployment.folder / "server"
    with ThreadPoolExecutor() as pool:
        running = pool.submit(run_method, deployment, "fedtm", out)
        kill("flwr-clientapp", deployment.node(0))
        kill("flower-supernode", deployment.node(1))
        wait_for("round 1", lambda: running.done() or (out / "checkpoints" / "server-000001.safetensors").exists())
        kill("flwr-clientapp", deployment.node(2))
        kill("flower-superlink", server)
        running.result()
    assert json.loads((out / "attempts.json").read_text()) > 1  # the run was lost with the SuperLink
    rounds = [json.loads(line)["round"] for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert rounds == [*range(N_ROUNDS + 1)]
    assert_same_as_local(deployment, "fedtm", out, tmp_path / "local")
