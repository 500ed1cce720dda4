"""Real processes over TLS with certificates: a method of each family on three nodes gives the bytes of one machine.

One deployment for all, whose nodes stay alive from run to run. `make test` has these tests in a pytest of their own.
"""

import json
from pathlib import Path

import pytest

from laconic.report.page import build_page
from laconic.report.run import read_run
from laconic.report.sockets import list_sockets

pytest.importorskip("paho.mqtt", reason="paho-mqtt is not installed: pip install 'laconic-fl[mqtt]'")

from mqtt_nodes import MACHINE, N_NODES, Deployment, assert_same, run_here

pytestmark = pytest.mark.deployment
N_ROUNDS = 2
COMMON = [f"rounds={N_ROUNDS}", f"evaluate_every={N_ROUNDS}"]
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


@pytest.mark.parametrize("method", OF_EACH_FAMILY)
def test_states_ledger_and_records_equal_the_local_fleets_bit_for_bit(
    method: str, deployment: Deployment, tmp_path: Path
) -> None:
    run_here(deployment, configure(method), tmp_path / "here")
    out = deployment.run(configure(method), tmp_path / method)
    assert_same(deployment, out, tmp_path / "here")
    assert_sockets_are_told(out)


def assert_sockets_are_told(out: Path) -> None:
    """Beside what was coded: a node's messages, and apart what connecting took."""
    run, done, n_bytes = read_run(out), json.loads((out / "DONE.json").read_text()), {}
    rows = [json.loads(line) for line in (out / "sockets.jsonl").read_text().splitlines()]
    assert {row["client"] for row in rows} == {*range(N_NODES)}
    for way in ("upload", "download"):
        told = sum(row[f"{way[:-4]}_bytes"] for row in rows)
        assert done[f"{way}_bytes"] < told == done[f"socket_{way}_bytes"]
        n_bytes[way] = told
    for by, n_rows in (("client", N_NODES), ("round", N_ROUNDS)):
        apart = [numbers for _, numbers in list_sockets(run, by)]
        assert len(apart) >= n_rows
        assert [sum(sum(numbers[at::2]) for numbers in apart) for at in range(2)] == [*n_bytes.values()]
    page = build_page([run])
    assert "On the sockets of the nodes" in page
    assert "<summary>By client</summary>" in page
