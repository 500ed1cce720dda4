"""Over MQTT, with a real broker: who may connect, and what it may say; each refusal is named in a log."""

import json
import re
import shutil
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("paho.mqtt", reason="paho-mqtt is not installed: pip install 'laconic-fl[mqtt]'")

import paho.mqtt.client as mqtt
from mqtt_nodes import MACHINE, N_NODES, Deployment, assert_same, laconic, run_here

from laconic.deploy.broker import is_listening
from laconic.deploy.keys import make_authority, make_certificate

pytestmark = pytest.mark.deployment
UNVERIFIED = "certificate verify failed"
SETTINGS = ["method.name=fedtm", *MACHINE, "rounds=6", "evaluate_every=6"]


class Rogue:
    """Whoever has these certificates, saying and hearing what it likes."""

    def __init__(self, deployment: Deployment, folder: Path) -> None:
        self.heard: list[str] = []
        self.codes: dict[int, str] = {}
        self.fate = ""
        self._news = threading.Condition()
        self._client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id="000", protocol=mqtt.MQTTv5)
        context = ssl.create_default_context(cafile=deployment.folder / "ca.crt")
        context.load_cert_chain(folder / "cert.crt", folder / "cert.key")
        self._client.tls_set_context(context)
        self._client.on_connect = lambda client, _, flags, code, properties: self._note("fate", str(code))
        self._client.on_disconnect = lambda client, _, flags, code, properties: self._note("fate", f"ended: {code}")
        self._client.on_publish = lambda client, _, mid, code, properties: self._note(mid, str(code))
        self._client.on_subscribe = lambda client, _, mid, codes, properties: self._note(mid, str(codes[0]))
        self._client.on_message = lambda client, _, message: self.heard.append(message.topic)
        try:
            self._client.connect("127.0.0.1", deployment.port)
            self._client.loop_start()
        except OSError as error:
            self.fate = f"refused: {error}"
        self._wait_until(lambda: bool(self.fate))

    def publish(self, topic: str, payload: bytes) -> str:
        """What the broker says to it; once connected, how the connection ended."""
        mid = self._client.publish(topic, payload, 1).mid
        self._wait_until(lambda: mid in self.codes or self.fate.startswith("ended"))
        return self.codes.get(mid, self.fate)

    def subscribe(self, topic: str) -> str:
        _, mid = self._client.subscribe(topic, 1)
        self._wait_until(lambda: mid in self.codes)
        return self.codes[mid]

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _note(self, key: str | int, words: str) -> None:
        with self._news:
            if key == "fate":
                self.fate = words
            else:
                self.codes[int(key)] = words
            self._news.notify_all()

    def _wait_until(self, is_there) -> None:
        with self._news:
            assert self._news.wait_for(is_there, 60)


@contextmanager
def under_way(deployment: Deployment, tmp_path: Path) -> Iterator[Path]:
    """A run, and at the end the proof that it came to no harm."""
    out = tmp_path / "run"
    with deployment.hold(0) as wait_for_step:
        running = deployment.begin(SETTINGS, out)
        wait_for_step()
        yield out
    deployment.wait_for("end of the run", lambda: running.poll() is not None)
    assert running.returncode == 0, deployment.read_log(out)
    assert_same(deployment, out, run_here(deployment, SETTINGS, tmp_path / "here"))


def read_broker_log(deployment: Deployment) -> str:
    return (deployment.folder / "broker" / "broker.log").read_text()


def test_a_node_speaks_and_hears_on_its_own_topics_alone(deployment: Deployment, tmp_path: Path) -> None:
    """Nor does it take another's place by calling itself so: the certificate says who it is."""
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    make_certificate(deployment.folder, stranger, "intruder")
    with under_way(deployment, tmp_path):
        rogue = Rogue(deployment, stranger)
        assert rogue.fate == "Success"
        for topic in ("l/000/r", "l/000/q", "l/000/s", "l/server/q", "l/run"):
            assert rogue.publish(topic, b"nonsense") == "Not authorized"
            words = re.compile(rf"Denied PUBLISH from intruder \(.*'{topic}'")
            deployment.wait_for("word of it", lambda words=words: words.search(read_broker_log(deployment)))
        rogue.subscribe("#")
        rogue.subscribe("l/+/r")
    rogue.close()
    assert not rogue.heard  # though three nodes answered meanwhile


def test_who_has_no_certificate_of_the_deployment_does_not_get_in(deployment: Deployment, tmp_path: Path) -> None:
    other, expired = tmp_path / "other", tmp_path / "expired"
    for folder in (other / "authority", expired):
        folder.mkdir(parents=True)
    make_authority(other / "authority")
    make_certificate(other / "authority", other, "001")
    make_certificate(deployment.folder, expired, "001", days=0)
    with under_way(deployment, tmp_path):
        for folder in (other, expired):
            n_before = read_broker_log(deployment).count(UNVERIFIED)
            rogue = Rogue(deployment, folder)
            assert rogue.fate != "Success"
            rogue.close()
            deployment.wait_for("word of it", lambda n=n_before: read_broker_log(deployment).count(UNVERIFIED) > n)


def test_a_message_larger_than_any_method_sends_is_refused(deployment: Deployment, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    make_certificate(deployment.folder, stranger, "intruder")
    with under_way(deployment, tmp_path):
        rogue = Rogue(deployment, stranger)
        assert rogue.publish("l/intruder/r", bytes(2 << 20)).startswith("ended")
        rogue.close()
        words = "Client intruder disconnected due to oversize packet"
        deployment.wait_for("word of it", lambda: words in read_broker_log(deployment))


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


def test_a_certificate_that_was_taken_back_opens_nothing(deployment: Deployment, tmp_path: Path) -> None:
    stolen = tmp_path / "stolen"
    stolen.mkdir()
    make_certificate(deployment.folder, stolen, "thief")
    before = Rogue(deployment, stolen)
    assert before.fate == "Success"
    before.close()
    with under_way(deployment, tmp_path):
        assert laconic("deploy", "revoke", deployment.folder, "thief").wait() == 0
        deployment.wait_for("anew", lambda: "the broker starts anew" in read_server_log(deployment))
        deployment.wait_for("the broker", lambda: is_listening("127.0.0.1", deployment.port))
        n_before = read_broker_log(deployment).count(UNVERIFIED)
        rogue = Rogue(deployment, stolen)
        assert rogue.fate != "Success"
        rogue.close()
        deployment.wait_for("word of it", lambda: read_broker_log(deployment).count(UNVERIFIED) > n_before)


def read_server_log(deployment: Deployment) -> str:
    return (deployment.server / "server.log").read_text()


def test_all_nodes_with_examples_of_another_shape_end_the_run_with_what_they_say(
    deployment: Deployment, tmp_path: Path
) -> None:
    """At once, on the terminal; and each node said so when it started."""
    folder, out = tmp_path / "d", tmp_path / "run"
    other = Deployment(folder, ["--nodes", "2", "--shape", "5,5", "--classes", "3"])
    for client, node in enumerate(other.nodes):
        shutil.copy(deployment.node(client) / "data.npz", node)
    try:
        other.start()
        running = other.begin(["method.name=fedtm", *MACHINE], out)
        other.wait_for("end of the run", lambda: running.poll() is not None)
        said = "x_train has shape (22, 8, 8); (22, 5, 5) was expected"
        assert running.returncode == 1
        assert "the run failed: ValueError: none of the 2 nodes that answered can take part: " in other.read_log(out)
        assert said in other.read_log(out)
        assert said in (other.node(0) / "node.log").read_text().splitlines()[0]
    finally:
        other.close()
