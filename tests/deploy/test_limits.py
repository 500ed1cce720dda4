"""How long messages may be, how many connections a broker holds, and by what a run is told from others."""

import os
import resource
import signal
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("paho.mqtt", reason="paho-mqtt is not installed: pip install 'laconic-fl[mqtt]'")

from mqtt_nodes import find_broker, find_processes

from laconic.algorithm import Task, bound_bytes
from laconic.deploy import broker as brokers
from laconic.deploy import runs
from laconic.deploy.broker import broker_command, limit_messages
from laconic.deploy.folders import Plan, describe_unknown, make_deployment
from laconic.deploy.limits import AT_REST_BYTES, ROOM_BYTES, check_longest, check_reply, find_limit
from laconic.deploy.serving import Server
from laconic.deploy.station import Station
from laconic.deploy.thresholds import bound_fit
from laconic.deploy.trying import find_free_port
from laconic.fleets.frames import STEP, Answer, Outcome, Sent
from laconic.records import Sockets, read_lines
from laconic.runs.config import read_config
from laconic.runs.typed_toml import ConfigError
from laconic.wire import Ledger

TASK = Task((28, 28), 10, 8)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, task = tmp_path_factory.mktemp("lab") / "d", Task((2,), 2, 2)
    make_deployment(folder, Plan(f"127.0.0.1:{find_free_port()}", task, describe_unknown(task)))
    return folder


def test_a_run_is_limited_by_what_its_method_declares_and_never_below_what_every_run_needs() -> None:
    small, large = (read_config(None, [f"method.n_clauses={n}"]).method for n in (2, 2000))
    assert (
        bound_bytes(large.costliest_round(TASK))
        <= find_limit(large, TASK)
        < 1.01 * bound_bytes(large.costliest_round(TASK))
    )
    assert find_limit(small, Task((2,), 2, 2)) == AT_REST_BYTES + ROOM_BYTES
    assert find_limit(small, TASK, bound_fit(TASK, "quantile:4")) > find_limit(small, TASK)


def test_a_reply_beyond_the_declaration_stays_at_the_node() -> None:
    method = read_config(None).method
    limit = find_limit(method, TASK) - ROOM_BYTES  # its head counts as well
    check_reply(bytes(limit), method, TASK)
    with pytest.raises(ValueError, match=rf"the reply has {limit + 1} B, but its method declares at most {limit} B"):
        check_reply(bytes(limit + 1), method, TASK)


def test_what_neighbours_say_counts_as_one_message() -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'laconic-fl[nn]'")
    method = read_config(None, ["method.name=dispfl", "method.training.model=mlp"]).method
    whole = bound_bytes(method.costliest_round(TASK))
    with pytest.raises(ConfigError, match="dispfl may send"):
        check_longest(method, TASK, whole // 2)
    check_longest(method, TASK, whole + ROOM_BYTES)


@pytest.mark.skipif(not find_broker(), reason="mosquitto is not installed: apt install mosquitto")
def test_a_broker_holds_as_many_connections_as_the_system_allows_and_reads_its_limit_again(
    lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell's usual 1,024 descriptors would be its end. If it does not read its limit, its owner hears what to do."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    folder = lab / "broker"
    log = folder / "broker.log"
    assert not limit_messages(folder, 5000)  # of one that does not run yet
    said: list[str] = []
    server = Server(lab / "server", said.append)
    server.link.is_up.set()  # to one that was started elsewhere
    server._limit_messages(5000)
    assert "the one that is reached was not started there" in said[0]
    few = ["/bin/sh", "-c", 'ulimit -Sn 256; exec "$@"', "sh"]
    broker = subprocess.Popen([*few, *broker_command()], cwd=folder, start_new_session=True)
    try:
        while b" running" not in (
            log.read_bytes() if log.exists() else b""
        ):  # one that is starting may end by a signal
            assert broker.poll() is None
            time.sleep(0.02)
        (pid,) = find_processes("mosquitto", folder)
        assert pid == int((folder / "broker.pid").read_text())
        assert resource.prlimit(pid, resource.RLIMIT_NOFILE) == (most, most)
        assert limit_messages(folder, 6000)
        assert "Reloading config." in (folder / "broker.log").read_text()
        assert (folder / "mosquitto.conf").read_text().count("message_size_limit") == 1
        monkeypatch.setattr(brokers, "RELOAD_SECONDS", 0.2)
        os.kill(pid, signal.SIGSTOP)
        server._limit_messages(7000)
        assert f"the broker has not read {folder / 'mosquitto.conf'} again" in said[1]
        assert said[1].endswith("not with 7000 B.  Restart it, or send its process SIGHUP as whoever runs it")
    finally:
        os.killpg(broker.pid, signal.SIGKILL)
        broker.wait()
    limit_messages(folder, None)
    assert "message_size_limit" not in (folder / "mosquitto.conf").read_text()


def test_what_sockets_took_is_written_round_by_round_in_one_row_of_each_kind(lab: Path, tmp_path: Path) -> None:
    """However many messages a node sends, and for however many months."""
    server = Server(lab / "server", lambda line: None)
    server._run = tmp_path
    for number in (1, 2):
        for k in range(1000):
            answer = Answer(1, 1, number, k, STEP, Outcome.DONE, Sent(10, 3), b"", linked=Sent(1, 0))
            server._weigh(number, 0, answer)
        assert len(server._weighed) == 2
        server._count(Ledger())
        assert not server._weighed
    of_one = [Sockets(1, 0, "exchange", 10_000, 3000), Sockets(1, 0, "connect", 1000, 0)]
    assert [*read_lines(tmp_path, Sockets)][:2] == of_one
    assert len([*read_lines(tmp_path, Sockets)]) == 4


def test_no_two_runs_of_a_server_begin_with_the_same_two_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is all that their messages tell them by."""
    drawn = iter(["ab12" + 28 * "0", "ab12" + 28 * "1", "ab13" + 28 * "0"])
    monkeypatch.setattr(runs, "uuid", SimpleNamespace(uuid4=lambda: SimpleNamespace(hex=next(drawn))))
    (tmp_path / runs.BEGUN).mkdir()
    for first in ("ab12", "ab13"):
        run = runs.draw_id(tmp_path)
        assert run[:4] == first
        (tmp_path / runs.BEGUN / run).touch()


def test_a_node_says_when_it_starts_what_is_wrong_with_its_examples(lab: Path) -> None:
    said: list[str] = []
    (lab / "node-000" / "data.npz").write_bytes(b"PK nonsense")
    Station(lab / "node-000", said.append).check_examples()
    assert "data.npz is damaged, cut short, or of Python objects" in said[0]
    assert said[0].endswith("Until then this node refuses every run")
