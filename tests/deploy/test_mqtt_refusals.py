"""Over MQTT, with real processes: what nodes refuse, and frames that were said before; each is named in a log."""

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("paho.mqtt", reason="paho-mqtt is not installed: pip install 'laconic-fl[mqtt]'")

from mqtt_nodes import MACHINE, N_NODES, Deployment, assert_same, count_rounds, run_here
from rogue import Rogue

from laconic.deploy.keys import make_certificate
from laconic.fleets.frames import FIRST_STEP, STEP, Answer, Head

pytestmark = pytest.mark.deployment


def test_a_node_refuses_what_its_owner_does_not_list_and_the_run_goes_on(
    deployment: Deployment, tmp_path: Path
) -> None:
    settings, out = deployment.node(1) / "node.toml", tmp_path / "run"
    text = settings.read_text()
    try:
        settings.write_text(text.replace('models = ["*"]', 'models = ["mlp"]'))
        model = ["method.name=fedavg", "method.training.model=resnet-small", "method.training.epochs=1", "rounds=1"]
        deployment.run(model, out)
    finally:
        settings.write_text(text)
    words = 'the node says: "resnet-small" is not among the models that this node allows: mlp'
    assert f"client 1: reply to train refused ({words}" in (out / "events.log").read_text()
    assert words.partition(": ")[2] in (deployment.node(1) / "node.log").read_text()
    assert json.loads((out / "metrics.jsonl").read_text().splitlines()[1])["n_replied"] == N_NODES - 1


def test_all_nodes_with_examples_of_another_shape_end_the_run_with_what_they_say(
    deployment: Deployment, tmp_path: Path
) -> None:
    """At once, on the terminal."""
    out, kept = tmp_path / "run", [(node / "data.npz").read_bytes() for node in deployment.nodes]
    for node in deployment.nodes:
        with np.load(node / "data.npz") as found:
            arrays = {name: found[name][:, :5, :5] if name[0] == "x" else found[name] for name in found.files}
        np.savez(node / "data.npz", **arrays)
    try:
        running = deployment.begin(["method.name=fedtm", *MACHINE], out)
        deployment.wait_for("end of the run", lambda: running.poll() is not None)
    finally:
        for node, data in zip(deployment.nodes, kept, strict=True):
            (node / "data.npz").write_bytes(data)
    said = "x_train has shape (22, 5, 5); (22, 8, 8) was expected"
    assert running.returncode == 1
    assert "the run failed: ValueError: none of the 3 nodes that answered can take part: " in deployment.read_log(out)
    assert said in deployment.read_log(out)
    assert said in (deployment.node(0) / "node.log").read_text()


# ---------------------------------------------------------------- said before
@pytest.fixture
def tap(deployment: Deployment, tmp_path: Path) -> Iterator[Rogue]:
    """Hears all that passes the broker, whose owner lets it."""
    make_certificate(deployment.folder, tmp_path, "wiretap")
    rogue = Rogue(deployment, tmp_path)
    rogue.subscribe("l/#")
    yield rogue
    rogue.close()


def list_answers(tap: Rogue, client: int) -> list[bytes]:
    """To steps, as they were heard."""
    return [data for topic, data in tap.heard if topic == f"l/{client:03d}/r" and Answer.read(data).kind == STEP]


def list_requests(tap: Rogue, client: int) -> list[bytes]:
    """For steps."""
    frames = [data for topic, data in tap.heard if topic == f"l/{client:03d}/q"]
    return [data for data in frames if Head.read(data)[0].kind >= FIRST_STEP]


def test_frames_that_were_said_before_are_named_and_change_nothing(
    deployment: Deployment, tap: Rogue, tmp_path: Path
) -> None:
    """Of another run, of a round gone by, of this very exchange; by the node's own certificate and by the server's."""
    settings = ["method.name=fedtm", *MACHINE, "evaluate_every=6"]
    deployment.run([*settings, "rounds=1"], tmp_path / "other")
    others = [list_answers(tap, 1)[-1], list_requests(tap, 1)[-1]]
    tap.heard.clear()
    settings, out = [*settings, "rounds=6"], tmp_path / "run"
    with deployment.hold(0) as wait_for_step:
        running = deployment.begin(settings, out)
        wait_for_step()
    deployment.wait_for_round(out, 1)
    with deployment.hold(0) as wait_for_step:
        wait_for_step()
        deployment.wait_for("what client 1 says", lambda: has_answered(tap, 1, count_rounds(out)))
        answers, requests = list_answers(tap, 1), list_requests(tap, 1)
        place, stale = Answer.read(answers[-1]), Answer.read(answers[0])
        assert stale.round < place.round
        run, other = f"{place.run:04x}", f"{Answer.read(others[0]).run:04x}"
        unasked = "client 1 answers round {0.round}, call {0.call}, which nobody waits for; left aside"
        asked = f"run {run}, round {{0.round}}, call {{0.call}} "
        at_server = {
            f"of run {other}, and this is {run}, which nobody waits for; left aside": others[0],
            unasked.format(stale): answers[0],
            unasked.format(place): answers[-1],
        }
        at_node = {
            f"run {other}, round": others[1],
            asked.format(stale) + "refused: ": requests[0],
            asked.format(place) + "came again: same reply, nothing done": requests[-1],
        }
        for line, frame in at_server.items():
            say_until(deployment, deployment.node(1), "l/001/r", frame, out / "events.log", line)
        for line, frame in at_node.items():
            say_until(deployment, deployment.server, "l/001/q", frame, deployment.node(1) / "node.log", line)
    deployment.wait_for("end of the run", lambda: running.poll() is not None)
    assert running.returncode == 0, deployment.read_log(out)
    assert_same(deployment, out, run_here(deployment, settings, tmp_path / "here"))
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert not any(row["n_refused"] for row in rows)


def say_until(deployment: Deployment, who: Path, topic: str, frame: bytes, log: Path, line: str) -> None:
    """Whose place is taken takes it back after a second, so that it may need another trial."""

    def is_told() -> bool:
        with contextlib.closing(Rogue(deployment, who)) as rogue:
            rogue.publish(topic, frame)
            time.sleep(0.2)
        return line in log.read_text()

    deployment.wait_for(line, is_told)


def has_answered(tap: Rogue, client: int, number: int) -> bool:
    """What client 0 is asked in this round."""
    asked, answers = Head.read(list_requests(tap, 0)[-1])[0], list_answers(tap, client)
    return asked.round == number and bool(answers) and Answer.read(answers[-1]).is_to(asked)
