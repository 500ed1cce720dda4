"""Over MQTT, with a real broker: who may connect, and what it may say; each refusal is named in a log."""

import contextlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("paho.mqtt", reason="paho-mqtt is not installed: pip install 'laconic-fl[mqtt]'")

from mqtt_nodes import MACHINE, Deployment, assert_same, laconic, run_here
from rogue import Rogue

from laconic.deploy.broker import is_listening
from laconic.deploy.keys import make_authority, make_certificate
from laconic.deploy.limits import find_limit
from laconic.deploy.settings import read_settings
from laconic.fleets.link import Address, Link, Will
from laconic.runs.config import read_config

pytestmark = pytest.mark.deployment
UNVERIFIED = "certificate verify failed"
SETTINGS = ["method.name=fedtm", *MACHINE, "rounds=3", "evaluate_every=3"]


@pytest.fixture(scope="module")
def run_under_way(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """In the midst of a step while these tests do their mischief, and at the end the proof that it came to no harm."""
    folder = tmp_path_factory.mktemp("under_way")
    out = folder / "run"
    with deployment.hold(0) as wait_for_step:
        running = deployment.begin(SETTINGS, out)
        wait_for_step()
        yield out
    deployment.wait_for("end of the run", lambda: running.poll() is not None)
    assert running.returncode == 0, deployment.read_log(out)
    assert_same(deployment, out, run_here(deployment, SETTINGS, folder / "here"))


@pytest.fixture
def stranger(deployment: Deployment, tmp_path: Path) -> Iterator[Rogue]:
    """With a certificate of the deployment, in a name that is nobody's."""
    make_certificate(deployment.folder, tmp_path, "intruder")
    rogue = Rogue(deployment, tmp_path)
    assert rogue.fate == "Success"
    yield rogue
    rogue.close()


@pytest.mark.usefixtures("run_under_way")
def test_a_node_speaks_and_hears_on_its_own_topics_alone(deployment: Deployment, stranger: Rogue) -> None:
    """Nor does it take another's place by calling itself so: the certificate says who it is."""
    stranger.subscribe("#")
    stranger.subscribe("l/+/r")
    for topic in ("l/000/r", "l/000/q", "l/000/s", "l/server/q", "l/run"):
        assert stranger.publish(topic, b"nonsense") == "Not authorized"
        words = re.compile(rf"Denied PUBLISH from intruder \(.*'{topic}'")
        deployment.wait_for("word of it", lambda words=words: words.search(read_broker_log(deployment)))
    assert not stranger.heard  # not even births, which the broker retains


@pytest.mark.usefixtures("run_under_way")
def test_who_has_no_certificate_of_the_deployment_does_not_get_in(deployment: Deployment, tmp_path: Path) -> None:
    other, expired = tmp_path / "other", tmp_path / "expired"
    for folder in (other / "authority", expired):
        folder.mkdir(parents=True)
    make_authority(other / "authority")
    make_certificate(other / "authority", other, "001")
    make_certificate(deployment.folder, expired, "001", days=0)
    said: list[str] = []
    shutil.copy(deployment.folder / "ca.crt", expired)
    link = Link(Address("127.0.0.1", deployment.port), expired, "001", [], lambda topic, payload: None, said.append)
    link.open()
    deployment.wait_for(
        "word of it", lambda: any("was this certificate taken back, or has it" in line for line in said)
    )
    link.close()
    for folder in (other, expired):
        n_before = read_broker_log(deployment).count(UNVERIFIED)
        rogue = Rogue(deployment, folder)
        assert rogue.fate != "Success"
        rogue.close()
        deployment.wait_for("word of it", lambda n=n_before: read_broker_log(deployment).count(UNVERIFIED) > n)


def test_the_broker_takes_no_message_beyond_what_the_runs_method_declares(
    deployment: Deployment, stranger: Rogue, run_under_way: Path
) -> None:
    """Not even from a node, on its own topic; what is longer than the owner lets any be is not read at all."""
    method = read_config(run_under_way / "config.toml").method
    declared = find_limit(method, read_settings(deployment.server, "server").task)
    assert f"message_size_limit {declared}\n" in (deployment.folder / "broker" / "mosquitto.conf").read_text()
    assert stranger.publish("l/intruder/r", bytes(declared)) == "Success"
    dropped = rf"Dropped too large PUBLISH from 001 .*\({declared + 1} bytes\)"
    for n_bytes, words in ((declared + 1, dropped), (2 << 20, "Client 001 disconnected due to oversize packet")):

        def is_told(n_bytes: int = n_bytes, words: str = words) -> bool:
            """The node takes its place back after a second, so that it may need another trial."""
            with contextlib.closing(Rogue(deployment, deployment.node(1))) as rogue:
                assert rogue.publish("l/001/r", bytes(n_bytes)) != "Success"
            return re.search(words, read_broker_log(deployment)) is not None

        deployment.wait_for("word of it", is_told)


@pytest.mark.usefixtures("run_under_way")
def test_a_link_outlives_a_message_that_the_broker_does_not_take_and_resumes_its_tls_session(
    deployment: Deployment, tmp_path: Path
) -> None:
    """It does not say it again with every connection; and certificates do not travel again."""
    make_certificate(deployment.folder, tmp_path, "talker")
    said: list[str] = []
    address, nobody = Address("127.0.0.1", deployment.port), lambda topic, payload: None
    link = Link(address, tmp_path, "talker", ["l/talker/q"], nobody, said.append, will=Will("l/talker/s", b"1", b"0"))
    link.open()
    assert link.is_up.wait(60)
    first = link.linked
    link.publish("l/talker/r", bytes(100_000))
    deployment.wait_for("the end of the connection", lambda: said)
    assert said[0].endswith("1 messages were under way, the longest of 100000 B")
    assert link.is_up.wait(60)
    again = link.linked.minus(first)
    assert again.down < first.down / 2
    answer = link.publish("l/talker/r", bytes(100))
    answer.wait_for_publish(60)
    assert answer.is_published()
    link.close()
    assert read_broker_log(deployment).count("Dropped too large PUBLISH from talker") == 1


@pytest.mark.usefixtures("run_under_way")
def test_a_certificate_that_was_taken_back_opens_nothing(deployment: Deployment, tmp_path: Path) -> None:
    make_certificate(deployment.folder, tmp_path, "thief")
    before = Rogue(deployment, tmp_path)
    assert before.fate == "Success"
    before.close()
    assert laconic("deploy", "revoke", deployment.folder, "thief").wait() == 0
    deployment.wait_for("anew", lambda: "the broker starts anew" in read_server_log(deployment))
    deployment.wait_for("the broker", lambda: is_listening("127.0.0.1", deployment.port))
    n_before = read_broker_log(deployment).count(UNVERIFIED)
    rogue = Rogue(deployment, tmp_path)
    assert rogue.fate != "Success"
    rogue.close()
    deployment.wait_for("word of it", lambda: read_broker_log(deployment).count(UNVERIFIED) > n_before)


def read_broker_log(deployment: Deployment) -> str:
    return (deployment.folder / "broker" / "broker.log").read_text()


def read_server_log(deployment: Deployment) -> str:
    return (deployment.server / "server.log").read_text()
