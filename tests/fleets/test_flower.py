"""The fleet over Flower, with Flower's messages but without its processes: those are in tests/deploy."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from mean_label import MeanLabel
from rumour import Rumour

from laconic.algorithm import Algorithm, Examples, Task
from laconic.fleets.base import BaseFleet, Conditions
from laconic.fleets.host import Home
from laconic.fleets.notes import list_names, write_notes
from laconic.fleets.source import ClientData
from laconic.simulation import Federation, federate
from laconic.state import freeze
from laconic.wire import EMPTY, NOTES

pytest.importorskip("flwr", reason="flwr is not installed: pip install 'laconic-fl[flower]'")

from flwr.app import ConfigRecord, Error, Message, RecordDict

from laconic.fleets import flower
from laconic.fleets.flower import RECORD, FlowerFleet, Post, answer, read_score
from loop_grid import FIRST_NODE, Loop, pretend_task

N_CLIENTS, N_ROUNDS, SEED = 4, 3, 7
TASK = Task((2,), 3, N_CLIENTS)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flower, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(flower, "RETURN_SECONDS", 0.05)
    pretend_task(monkeypatch)


def make_source() -> ClientData:
    rng, parts = np.random.default_rng(0), []
    for _ in range(N_CLIENTS):
        x, y = rng.integers(0, 2, (9, 2)).astype(np.uint8), rng.integers(0, 3, 9)
        parts.append((Examples(x, y),) * 3)
    return ClientData.of(parts)


def open_flower(
    method: Algorithm, folder: Path, said: list[str], lost_replies: float = 0.2, *, sends_notes: bool = False
) -> FlowerFleet:
    home = Home(method, TASK, make_source(), SEED)

    def reply(letter: Message) -> Message:
        client = letter.metadata.dst_node_id - FIRST_NODE
        return answer(letter, home, client, folder / str(client), sends_notes=sends_notes)

    nodes = {client: FIRST_NODE + client for client in range(N_CLIENTS)}
    post = Post(Loop(N_CLIENTS, reply), nodes, 1, 5.0, said.append)
    return FlowerFleet(home, Conditions(lost_replies=lost_replies), lambda what, done, total: None, post)


def play_rounds(fleet: BaseFleet, first: int = 0, last: int = N_ROUNDS, server: object = None) -> tuple[object, list]:
    records, federation = [], Federation(fleet.home.algorithm, TASK, fleet)
    federation.server = server
    for number in range(first, last + 1):
        played = federation.play(number, is_evaluated=True)
        records.append(([*fleet.ledger.to_jsonl()], played.scores, fleet.client_notes, fleet.n_lost))
        fleet.settle()
    return federation.server, records


def leave_out_notes(rows: list[str]) -> list[str]:
    return [row for row in rows if json.loads(row)["field"] != NOTES]


@pytest.mark.parametrize("sends_notes", [False, True], ids=["", "notes"])
@pytest.mark.parametrize("method", [MeanLabel(), Rumour()], ids=["mean-label", "rumour"])
def test_same_states_ledger_and_scores_as_on_the_local_fleet(
    method: Algorithm, sends_notes: bool, tmp_path: Path
) -> None:
    """Ledgers but for notes, which cost bytes only there; and notes, where nodes let them go."""
    with federate(method, TASK, make_source(), SEED, conditions=Conditions(lost_replies=0.2)) as federation:
        server, records = play_rounds(federation.fleet)
        states = [federation.fleet._host.dump(client) for client in range(N_CLIENTS)]
    there, found = play_rounds(open_flower(method, tmp_path, [], sends_notes=sends_notes))
    assert [leave_out_notes(ledger) for ledger, *_ in found] == [ledger for ledger, *_ in records]
    for (ledger, scores, notes, n_lost), (_, *others) in zip(found, records, strict=True):
        assert [scores, notes, n_lost] == [others[0], others[1] if sends_notes else {}, others[2]]
        assert (len(leave_out_notes(ledger)) < len(ledger)) == bool(notes)
    assert freeze({"server": there}) == freeze({"server": server})
    for client, state in enumerate(states):
        newest = sorted((tmp_path / str(client)).glob("round-*"))[-1]
        assert (newest / "client.safetensors").read_bytes() == state


def test_an_error_in_place_of_a_reply_is_asked_again_and_nothing_is_done_twice(tmp_path: Path) -> None:
    method, said = Rumour(), []
    undisturbed = play_rounds(open_flower(method, tmp_path / "a", []))
    fleet, seen = open_flower(method, tmp_path / "b", said), set()

    def crash_once(letter: Message, reply: Message) -> Message:
        """The step was carried out, but its reply never left."""
        key = (letter.metadata.dst_node_id, letter.metadata.group_id, letter.metadata.message_type)
        if key in seen:
            return reply
        seen.add(key)
        return Message(Error(8, "the app crashed"), reply_to=letter)

    fleet.post.grid.meddle = crash_once
    server, records = play_rounds(fleet)
    assert (freeze({"server": server}), records) == (freeze({"server": undisturbed[0]}), undisturbed[1])
    assert any("error 8 the app crashed" in line for line in said)


def test_a_node_that_is_gone_is_a_lost_reply_until_it_is_back(tmp_path: Path) -> None:
    method, said = MeanLabel(), []
    fleet = open_flower(method, tmp_path, said)
    server, _ = play_rounds(fleet, 0, 1)
    fleet.post.grid.offline = {102}
    server, _ = play_rounds(fleet, 2, 2, server)
    assert fleet.n_lost >= 2  # it was asked twice in the round
    assert 2 not in fleet.replied
    assert sum("have gone" in line for line in said) == 1
    fleet.post.grid.offline = set()
    play_rounds(fleet, 3, 3, server)
    assert not fleet._away


def test_each_exchange_is_weighed_with_letters_that_were_sent_again(tmp_path: Path) -> None:
    method, rows = MeanLabel(), []
    fleet = open_flower(method, tmp_path, [], lost_replies=0)
    fleet.post = replace(fleet.post, weighed=rows.append)
    replies = fleet.ask(method.tell, dict.fromkeys(fleet.everyone, EMPTY))
    fleet.post.grid.offline = {102}
    fleet.evaluate()
    told, tested = rows
    assert (told["round"], told["kind"], told["n_letters"]) == (0, "train", 2 * len(replies))
    assert told["up_bytes"] > fleet.ledger.total(direction="up").sent_bytes > 0
    assert tested["n_letters"] == 2 * N_CLIENTS  # an error is an answer too


LIES = {
    "it answers round and call": {"call": 99},
    "bytes were expected": {"data": 3.5},
    "the node says: no": {"error": "no"},
}


@pytest.mark.parametrize("words", LIES)
def test_a_letter_that_is_unsound_is_refused_by_name(words: str, tmp_path: Path) -> None:
    method = MeanLabel()
    fleet = open_flower(method, tmp_path, [])

    def lie(letter: Message, reply: Message) -> Message:
        if letter.metadata.dst_node_id != 101 or letter.metadata.message_type != "train":
            return reply
        content = dict(reply.content[RECORD]) | LIES[words]
        return Message(RecordDict({RECORD: ConfigRecord(content)}), reply_to=letter)

    fleet.post.grid.meddle = lie
    federation = Federation(method, TASK, fleet)
    federation.server = method.start_server(TASK, fleet)
    federation.play(1, is_evaluated=True)
    assert all("client 1: reply to" in line and words in line for line in fleet.refused)
    assert fleet.refused


NAMES, ROOM = Rumour.client_notes, len(list_names(Rumour.client_notes, TASK.n_classes))
UNSOUND = {
    "they are a float, bytes were expected": 3.5,
    "they are a list, bytes were expected": [1.0, 2.0],
    "n_equal is nan, a number within": write_notes({"n_equal": float("nan")}, NAMES, TASK.n_classes),
    "n_equal[1] is 1e+13, a number within": write_notes({"n_equal[1]": 1e13}, NAMES, TASK.n_classes),
    f"bytes came, 33 for at most {ROOM} numbers": b"\xf0" + b"\0" * 64,
    f"bytes came, 41 for at most {ROOM} numbers": b"\xf8" + b"\0" * 40,  # one more than there are names
}


@pytest.mark.parametrize("words", UNSOUND)
def test_notes_that_are_unsound_are_dropped_and_counted_and_their_reply_is_not(words: str, tmp_path: Path) -> None:
    fleet = open_flower(Rumour(), tmp_path, [], lost_replies=0, sends_notes=True)

    def lie(letter: Message, reply: Message) -> Message:
        if letter.metadata.dst_node_id != 101 or letter.metadata.message_type != "train":
            return reply
        content = dict(reply.content[RECORD]) | {"notes": UNSOUND[words]}
        return Message(RecordDict({RECORD: ConfigRecord(content)}), reply_to=letter)

    fleet.post.grid.meddle = lie
    play_rounds(fleet, 0, 1)
    assert fleet.client_notes.keys() == {0, 2, 3}
    assert 1 in fleet.replied
    assert not fleet.refused
    assert fleet.dropped
    assert all("client 1: notes of" in line and words in line for line in fleet.dropped)
    if isinstance(UNSOUND[words], bytes):
        counted = fleet.ledger.total(direction="up", step="guess", client=1, field=NOTES)
        assert counted.sent_bytes == len(UNSOUND[words])


def test_notes_are_none_of_a_budgets_bytes(tmp_path: Path) -> None:
    """Nodes send none then; who does so nevertheless ends no run by it."""
    fleet = open_flower(Rumour(), tmp_path, [], lost_replies=0, sends_notes=True)
    fleet.conditions = replace(fleet.conditions, budget_bytes=10**6)
    play_rounds(fleet, 0, 1)
    assert not fleet.client_notes
    assert any("the byte budget leaves no room for them" in line for line in fleet.dropped)
    counted = fleet.ledger.total().sent_bytes - fleet.ledger.total(field=NOTES).sent_bytes
    assert sum(fleet.spent.values()) == counted + fleet.ledger.total(direction="peer").sent_bytes


def test_nothing_of_what_a_node_notes_leaves_it_unless_its_owner_lets_it(tmp_path: Path) -> None:
    fleet, contents = open_flower(Rumour(), tmp_path, []), []

    def overhear(letter: Message, reply: Message) -> Message:
        contents.append(dict(reply.content[RECORD]))
        return reply

    fleet.post.grid.meddle = overhear
    play_rounds(fleet)
    assert {name for content in contents for name in content} == {"round", "call", "data", "n_test", "n_correct"}
    about = json.loads(next((tmp_path / "0").glob("round-*-0001/about.json")).read_text())
    assert about["notes"]  # for the node's owner to see


@pytest.mark.parametrize("name", ["a\x1b[31mb", "<b>", "[red]", "x" * 41, 7])
def test_a_further_prediction_has_a_plain_name(name: str | int, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"has no name of letters"):
        read_score(0, {"n_test": 5, "n_correct": 2, "names": [name], "also": [1]})


@pytest.mark.parametrize("score", [{"n_test": 5, "n_correct": 7}, {"n_test": 10**9, "n_correct": 1}, {"n_test": 0.5}])
def test_a_score_beyond_belief_is_refused(score: dict, tmp_path: Path) -> None:
    fleet = open_flower(MeanLabel(), tmp_path, [])

    def lie(letter: Message, reply: Message) -> Message:
        if letter.metadata.dst_node_id != 101:
            return reply
        return Message(RecordDict({RECORD: ConfigRecord(score)}), reply_to=letter)

    fleet.post.grid.meddle = lie
    assert [score.client for score in fleet.evaluate()] == [0, 2, 3]
    (line,) = fleet.refused
    assert "client 1: reply to evaluate refused" in line


def test_a_letter_for_another_client_is_refused_by_the_node(tmp_path: Path) -> None:
    method = MeanLabel()
    fleet = open_flower(method, tmp_path, [], lost_replies=0)
    fleet.post.nodes[0], fleet.post.nodes[1] = 101, 100
    with pytest.raises(Exception, match="2 of 4 clients replied"):
        fleet.ask(method.tell, dict.fromkeys(fleet.everyone, EMPTY), at_least=4)
    assert "this is the node of client 1, not of 0" in fleet.refused[0]


def test_a_round_waits_while_nobody_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    method, said = MeanLabel(), []
    fleet = open_flower(method, tmp_path, said, lost_replies=0)
    away = iter(range(3))
    get_all = fleet.post.grid.get_node_ids
    monkeypatch.setattr(fleet.post.grid, "get_node_ids", lambda: get_all() if next(away, None) is None else [])
    assert len(fleet.ask(method.tell, dict.fromkeys(fleet.everyone, EMPTY))) == N_CLIENTS
    assert said == ["none of the nodes of 4 clients is there; waiting"]
