"""Real processes over TLS with certificates: a method of each family on three nodes gives the bytes of one machine.

One deployment for all, whose nodes stay alive from run to run. `make test` has these tests in a pytest of their own.
"""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from laconic.fleets.source import ClientData
from laconic.report.page import build_page
from laconic.report.run import read_run
from laconic.runs.config import read_config
from laconic.runs.run import drive, find_conditions
from laconic.simulation import Federation, federate

pytest.importorskip("paho.mqtt", reason="paho-mqtt is not installed: pip install 'laconic-fl[mqtt]'")

from mqtt_nodes import Deployment, find_broker, set_all

from laconic.deploy.examples import read_examples
from laconic.deploy.settings import read_settings

pytestmark = [
    pytest.mark.deployment,
    pytest.mark.skipif(not find_broker(), reason="mosquitto is not installed: apt install mosquitto"),
]
N_NODES, N_ROUNDS = 3, 2
COMMON = [f"rounds={N_ROUNDS}", f"evaluate_every={N_ROUNDS}"]
MACHINE = ["method.epochs=1", "method.threshold=20", "method.n_clauses=8"]
NETWORK = ["method.training.model=resnet-small", "method.training.batch=8", "method.training.epochs=1"]
OF_EACH_FAMILY = {
    "fedtm": MACHINE,
    "cs-pfedtm": [*MACHINE, "method.n_shared=4"],
    "tpfl": MACHINE,
    "clausepool": [*MACHINE, "method.min_examples=2"],
    "fedavg": NETWORK,
    "fedpurin": NETWORK,
    "fedtgp": [*NETWORK, "method.cps_dims=5", "method.ppa=true", "method.server_epochs=3", "method.n_features=20"],
    "pfed1bs": NETWORK,
    "dispfl": NETWORK,
}


def configure(method: str) -> list[str]:
    return [f"method.name={method}", *OF_EACH_FAMILY[method], *COMMON]


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


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("deployment")
    with contextlib.closing(Deployment(folder / "d", set_all(make_data(folder / "made.npz")))) as deployment:
        deployment.start()
        yield deployment


@pytest.mark.parametrize("method", OF_EACH_FAMILY)
def test_states_ledger_and_records_equal_the_local_fleets_bit_for_bit(
    method: str, deployment: Deployment, tmp_path: Path
) -> None:
    run_here(deployment, configure(method), tmp_path / "here")
    out = deployment.run(configure(method), tmp_path / method)
    assert_same(deployment, out, tmp_path / "here")
    assert_sockets_are_told(out)


def run_here(deployment: Deployment, settings: list[str], out: Path) -> None:
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


def assert_sockets_are_told(out: Path) -> None:
    """Beside what was coded: a node's messages, and apart what connecting took."""
    run, done = read_run(out), json.loads((out / "DONE.json").read_text())
    rows = [json.loads(line) for line in (out / "sockets.jsonl").read_text().splitlines()]
    assert {row["client"] for row in rows} == {*range(N_NODES)}
    for way in ("upload", "download"):
        told = sum(row[f"{way[:-4]}_bytes"] for row in rows)
        assert done[f"{way}_bytes"] < told == done[f"socket_{way}_bytes"]
    assert "On the sockets of the nodes" in build_page([run])
