"""Over MQTT, with real processes: nodes bring numbers of their own, which nobody else knows."""

import contextlib
import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("paho.mqtt", reason="paho-mqtt is not installed: pip install 'laconic-fl[mqtt]'")

from mqtt_nodes import MACHINE, N_NODES, Deployment, find_broker, run_here

from laconic.algorithm import Examples
from laconic.deploy.examples import read_examples, write_examples
from laconic.deploy.node_runs import open_node_state
from laconic.deploy.settings import read_settings
from laconic.deploy.thresholds import FILE, find_task, make_bits, read_thresholds
from laconic.report.run import read_run

pytestmark = [
    pytest.mark.deployment,
    pytest.mark.skipif(not find_broker(), reason="mosquitto is not installed: apt install mosquitto"),
]
RULE = "quantile:3"


def write_own(node: Path, client: int) -> None:
    """Six numbers, of which the first two tell the class; every node measures on a scale of its own mixture."""
    rng, parts = np.random.default_rng(client), []
    for n_examples in (60 + 30 * client, 10, 40):
        y = rng.integers(0, 2, n_examples)
        x = rng.normal(size=(n_examples, 6)) * [1, 100, 1, 1, 1, 1] + np.outer(2 * y - 1, [2, 200, 0, 0, 0, 0])
        parts.append(Examples(x, y))
    write_examples(node / "data.npz", parts)


def test_numbers_become_bits_by_thresholds_that_all_nodes_share_and_the_report_claims_no_other_data(
    tmp_path: Path,
) -> None:
    out, settings = tmp_path / "run", ["method.name=fedtm", *MACHINE, "rounds=2", "evaluate_every=2"]
    words = ["--nodes", str(N_NODES), "--shape", "6", "--classes", "2"]
    with contextlib.closing(Deployment(tmp_path / "d", words)) as deployment:
        for client, node in enumerate(deployment.nodes):
            write_own(node, client)
        deployment.start()
        deployment.run([*settings, f"data.booleanize={RULE}"], out)
        thresholds = read_thresholds(out)
        assert thresholds.shape == (6, 3)
        states = [open_node_state(node) for node in deployment.nodes]
        for client, node in enumerate(deployment.nodes):  # from now on as bits, which the local fleet takes
            known = read_settings(node, "node")
            bits = make_bits(read_examples(node / "data.npz", known.task), RULE, thresholds)
            raw = read_examples(node / "data.npz", known.task)[2]
            read = states[client].preprocessing.transform(raw.x)
            labels = states[client].method.predict(states[client].state, read)
            assert np.count_nonzero(labels == bits[2].y) == read_run(out).scores[client].n_correct
            write_examples(node / "data.npz", bits)
            text = (node / "node.toml").read_text()
            (node / "node.toml").write_text(text.replace("input_shape = [6]", "input_shape = [18]"))
        assert states[0].task == find_task(known.task, RULE)
        here = run_here(deployment, settings, tmp_path / "here")
        rows = [json.loads(line) for line in (out / "traffic.jsonl").read_text().splitlines()]
        fit = [row for row in rows if row["step"] in ("sketch", "thresholds")]
        assert {(row["direction"], row["client"]) for row in fit} == {(w, c) for w in ("up", "down") for c in range(3)}
        assert sum(row["sent_bytes"] for row in fit if row["direction"] == "up") < N_NODES * 150
        assert [row for row in rows if row not in fit] == read_lines(here / "traffic.jsonl")
        assert read_lines(out / "clients.jsonl") == read_lines(here / "clients.jsonl")
    run, page = read_run(out), (out / "report.html").read_text()
    assert run.is_finished
    assert run.partition.is_nodes_own
    assert run.rounds[-1].accuracy_mean > 0.7
    assert "<h1>fedtm on the nodes’ own data</h1>" in page
    shown = page.partition("<script")[0]
    assert "digits" not in shown  # the configuration's, which nobody has
    assert "dirichlet" not in shown
    assert (out / FILE).exists()


def read_lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]
