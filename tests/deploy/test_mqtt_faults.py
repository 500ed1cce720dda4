"""Over MQTT, with real processes: what is killed comes back, who is away is missed and then counts again."""

import json
from pathlib import Path

import pytest

pytest.importorskip("paho.mqtt", reason="paho-mqtt is not installed: pip install 'laconic-fl[mqtt]'")

from mqtt_nodes import MACHINE, N_NODES, Deployment, assert_same, run_here

pytestmark = pytest.mark.deployment
SETTINGS = ["method.name=clausepool", *MACHINE, "method.min_examples=2", "rounds=4", "evaluate_every=4"]


@pytest.fixture(scope="module")
def here(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_here(deployment, SETTINGS, tmp_path_factory.mktemp("local") / "run")


@pytest.mark.parametrize(
    "victims", [["broker"], ["server"], ["node-001"], ["broker", "server", "node-001"]], ids=lambda names: names[-1]
)
def test_a_run_ends_the_same_whatever_is_killed_in_the_midst_of_a_step(
    victims: list[str], deployment: Deployment, here: Path, tmp_path: Path
) -> None:
    """Each round is recorded once, and applied once."""
    out = tmp_path / "run"
    with deployment.hold(1) as wait_for_step:
        running = deployment.begin(SETTINGS, out)
        wait_for_step()
        deployment.kill(*victims)
    deployment.wait_for("end of the run", lambda: running.poll() is not None)
    assert running.returncode == 0, deployment.read_log(out)
    assert_same(deployment, out, here)
    assert (json.loads((out / "attempts.json").read_text()) > 1) == ("server" in victims)


def test_a_node_that_was_away_for_twenty_rounds_is_brought_up_to_date_and_counts_again(
    deployment: Deployment, tmp_path: Path
) -> None:
    out, away = tmp_path / "run", "node-002"
    settings = ["method.name=fedtm", *MACHINE, "rounds=30", "evaluate_every=5"]
    with deployment.hold(0) as wait_for_step:
        running = deployment.begin(settings, out, "--absent", "0")
        wait_for_step()
        deployment.end(away)
        deployment.wait_for_status(["online", "online", "offline"])
    deployment.wait_for_round(out, 22)
    with deployment.hold(0) as wait_for_step:
        wait_for_step()
        deployment.keep(away)
        deployment.wait_for_status(["online"] * N_NODES)
    deployment.wait_for("end of the run", lambda: running.poll() is not None)
    assert running.returncode == 0, deployment.read_log(out)
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    replied = [row["n_replied"] for row in rows]
    assert replied[2:22] == [N_NODES - 1] * 20
    assert replied[-1] == N_NODES
    scores = [json.loads(line) for line in (out / "clients.jsonl").read_text().splitlines()]
    assert {score["client"] for score in scores if score["round"] == 15} == {0, 1}
    assert {score["client"] for score in scores if score["round"] == 30} == {0, 1, 2}
    assert "no reply from clients 2; asked again once they are heard of" in (out / "events.log").read_text()


def test_a_node_on_duty_connects_works_and_sleeps(deployment: Deployment, tmp_path: Path) -> None:
    deployment.end("node-002")
    deployment.keep("node-002", "--duty", "1s")
    settings = ["method.name=fedtm", *MACHINE, "rounds=2"]
    try:
        deployment.wait_for_status(["online", "online", "asleep"])
        out = deployment.run(settings, tmp_path / "run", "--absent", "120")
        deployment.wait_for_status(["online", "online", "asleep"])
        assert_same(deployment, out, run_here(deployment, settings, tmp_path / "here"))
        rows = [json.loads(line) for line in (out / "sockets.jsonl").read_text().splitlines()]
        connecting = [row["up_bytes"] for row in rows if row["client"] == 2 and row["kind"] == "connect"]
        assert connecting
    finally:
        deployment.end("node-002")
        deployment.keep("node-002")
        deployment.wait_for_status(["online"] * N_NODES)
