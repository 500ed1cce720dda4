"""The fleet over MQTT with its frames, but without a broker: real ones are in tests/deploy."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from mean_label import MeanLabel
from rumour import Rumour

from laconic.algorithm import Algorithm, Examples, Task, steps_of
from laconic.fleets.base import BaseFleet, Conditions
from laconic.fleets.frames import (
    BEGIN,
    END,
    EVALUATE,
    FIRST_STEP,
    SKETCH,
    STEP,
    Answer,
    Head,
    Outcome,
    Sent,
    read_numbers,
    read_request,
    read_score,
    write_numbers,
    write_reply,
    write_score,
)
from laconic.fleets.host import Home, Score
from laconic.fleets.node import Node, Stage
from laconic.fleets.remote import evaluate, perform
from laconic.fleets.source import ClientData
from laconic.simulation import Federation, federate
from laconic.state import freeze
from laconic.wire import EMPTY, NOTES, WireError

pytest.importorskip("paho.mqtt", reason="paho-mqtt is not installed: pip install 'laconic-fl[mqtt]'")

from laconic.fleets import mqtt
from laconic.fleets.mqtt import GONE, HERE, Board, MqttFleet, Post

N_CLIENTS, N_ROUNDS, SEED, RUN = 4, 3, 7, 0xAB12
TASK = Task((2,), 3, N_CLIENTS)


def make_source() -> ClientData:
    rng, parts = np.random.default_rng(0), []
    for _ in range(N_CLIENTS):
        x, y = rng.integers(0, 2, (9, 2)).astype(np.uint8), rng.integers(0, 3, 9)
        parts.append((Examples(x, y),) * 3)
    return ClientData.of(parts)


class LoopLink:
    """In place of a broker: nodes answer at once. meddle(client, head, answer): what comes in place of it."""

    def __init__(self, home: Home, folder: Path, *, sends_notes: bool = False) -> None:
        self.home, self.folder, self.sends_notes = home, folder, sends_notes
        self.board = Board(N_CLIENTS)
        self.steps = [step.name for step in steps_of(type(home.algorithm))]
        self.asked: list[tuple[int, Head]] = []
        self.known = set(range(N_CLIENTS))
        self.meddle: Callable[[int, Head, bytes], list[bytes]] = lambda client, head, answer: [answer]
        for client in range(N_CLIENTS):
            self.board.hear(f"l/{client:03d}/s", HERE)

    def publish(self, topic: str, payload: bytes) -> None:
        client, (head, body) = int(topic.split("/")[1]), Head.read(payload)
        self.asked.append((client, head))
        if head.kind == BEGIN:
            self.known.add(client)
            return
        for answer in self.meddle(client, head, self.answer(client, head, body)):
            self.board.hear(f"l/{client:03d}/r", answer)

    def answer(self, client: int, head: Head, body: bytes) -> bytes:
        node, stage = Node(self.home, client, self.folder / str(client)), Stage(head.attempt, head.round - head.lag)
        outcome, reply = Outcome.DONE, b""
        try:
            if client not in self.known:
                outcome = Outcome.UNKNOWN
            elif head.kind == EVALUATE:
                reply = write_score(evaluate(node, head.round, stage))
            elif head.kind != END:
                request = read_request(head, body, self.steps, client)
                reply = write_reply(*perform(node, request, stage, sends_notes=self.sends_notes))
        except (ValueError, WireError) as error:
            outcome, reply = Outcome.REFUSED, str(error).encode()
        return Answer(*head.place, outcome, Sent(60, 70), reply).write()


@pytest.fixture
def open_mqtt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mqtt, "LOOK_SECONDS", 0.02)

    def open_fleet(
        method: Algorithm,
        lost_replies: float = 0.0,
        *,
        attempt: int = 1,
        wait: float = 5.0,
        sends_notes: bool = False,
        folder: str = "",
    ) -> MqttFleet:
        home = Home(method, TASK, make_source(), SEED)
        link = LoopLink(home, tmp_path / folder, sends_notes=sends_notes)
        open_fleet.said = []
        described, say = [(BEGIN, b"settings")], open_fleet.said.append
        post = Post(link, link.board, RUN, attempt, lambda: described, wait, 0.0, say, most_bytes=5000)
        return MqttFleet(home, Conditions(lost_replies=lost_replies), lambda what, done, total: None, post)

    return open_fleet


def play_rounds(fleet: BaseFleet, first: int = 0, last: int = N_ROUNDS, server: object = None) -> tuple[object, list]:
    records, federation = [], Federation(fleet.home.algorithm, TASK, fleet)
    federation.server = server
    for number in range(first, last + 1):
        played = federation.play(number, is_evaluated=True)
        records.append(([*fleet.ledger.to_jsonl()], played.scores, fleet.client_notes, fleet.n_lost))
        fleet.settle()
    return federation.server, records


@pytest.mark.parametrize("sends_notes", [False, True], ids=["", "notes"])
@pytest.mark.parametrize("method", [MeanLabel(), Rumour()], ids=["mean-label", "rumour"])
def test_same_states_ledger_and_scores_as_on_the_local_fleet(
    method: Algorithm, sends_notes: bool, open_mqtt, tmp_path: Path
) -> None:
    """Ledgers but for notes, which cost bytes only there; and notes, where nodes let them go."""
    with federate(method, TASK, make_source(), SEED, conditions=Conditions(lost_replies=0.2)) as federation:
        server, records = play_rounds(federation.fleet)
        states = [federation.fleet._host.dump(client) for client in range(N_CLIENTS)]
    there, found = play_rounds(open_mqtt(method, 0.2, sends_notes=sends_notes))
    for (ledger, scores, notes, n_lost), (due, *others) in zip(found, records, strict=True):
        assert [row for row in ledger if json.loads(row)["field"] != NOTES] == due
        assert [scores, notes, n_lost] == [others[0], others[1] if sends_notes else {}, others[2]]
    assert freeze({"server": there}) == freeze({"server": server})
    for client, state in enumerate(states):
        newest = sorted((tmp_path / str(client)).glob("round-*"))[-1]
        assert (newest / "client.safetensors").read_bytes() == state


def test_a_frame_is_twelve_bytes_or_less_beside_the_payload() -> None:
    for number, call in ((1, 1), (127, 3), (16_000, 12)):
        head = Head(RUN, FIRST_STEP + 3 * 9, 3, number, call, 1)
        answer = Answer(RUN, 3, number, call, STEP, Outcome.DONE, Sent(137, 9_000), b"")
        assert len(head.write()) <= 12
        assert len(answer.write()) <= 12
        assert Head.read(head.write() + b"body") == (head, b"body")
        assert Answer.read(answer.write()) == answer
        assert answer.is_to(head)


def test_numbers_of_any_size_read_back_and_half_of_one_is_refused() -> None:
    numbers = [0, 1, 127, 128, 300, 2**31, 2**49]
    data = write_numbers(numbers)
    assert read_numbers(data + b"rest", len(numbers)) == (numbers, b"rest")
    for broken in (data[:-1], b"\xff" * 20, b""):
        with pytest.raises(ValueError, match="in the midst of a number"):
            read_numbers(broken, len(numbers))


def test_a_node_is_told_of_a_run_once_and_again_if_it_says_it_knows_of_none(open_mqtt) -> None:
    method = MeanLabel()
    fleet = open_mqtt(method)
    fleet.ask(method.tell, dict.fromkeys(fleet.everyone, EMPTY))
    fleet.ask(method.tell, dict.fromkeys(fleet.everyone, EMPTY))
    link = fleet.post.link
    assert [client for client, head in link.asked if head.kind == BEGIN] == [0, 1, 2, 3]
    again = open_mqtt(method, attempt=2)  # a server that resumes does not tell anybody unasked
    again.post.link.known -= {2}
    assert len(again.ask(method.tell, dict.fromkeys(again.everyone, EMPTY))) == N_CLIENTS
    assert [client for client, head in again.post.link.asked if head.kind == BEGIN] == [2]


def test_answers_that_come_twice_or_late_change_nothing_and_are_named(open_mqtt) -> None:
    method = Rumour()
    undisturbed = play_rounds(open_mqtt(method), 0, 2)
    fleet, before = open_mqtt(method, folder="again"), {}

    def replay(client: int, head: Head, answer: bytes) -> list[bytes]:
        """Its last answer, then this one twice."""
        old, before[client] = before.get(client), answer
        return [old or answer, answer, answer]

    fleet.post.link.meddle = replay
    server, records = play_rounds(fleet, 0, 2)
    assert freeze({"server": server}) == freeze({"server": undisturbed[0]})
    assert [row[:2] for row in records] == [row[:2] for row in undisturbed[1]]
    assert any("answers round" in line and "which nobody waits for; left aside" in line for line in open_mqtt.said)
    assert not fleet.refused


def test_an_answer_to_another_kind_of_request_of_the_same_round_is_left_aside() -> None:
    """A sketch and a test are asked for in round 0, both as call 0."""
    sketch, test = (Head(RUN, kind, 1, 0, 0, 1) for kind in (SKETCH, EVALUATE))
    late = Answer.read(Answer(*sketch.place, Outcome.DONE, Sent(), b"").write())
    assert late.is_to(sketch)
    assert not late.is_to(test)


def test_answers_of_another_run_or_an_older_start_are_named_as_such_and_not_without_end(open_mqtt) -> None:
    method = MeanLabel()
    fleet = open_mqtt(method, attempt=2)

    def meddle(client: int, head: Head, answer: bytes) -> list[bytes]:
        other, older = head._replace(run=0xCD34), head._replace(attempt=1)
        strays = [Answer(*stray.place, Outcome.DONE, Sent(), b"lie").write() for stray in (other, older)]
        return [*strays, answer] if client == 1 else [answer]

    fleet.post.link.meddle = meddle
    for _ in range(12):
        assert len(fleet.ask(method.tell, dict.fromkeys(fleet.everyone, EMPTY))) == N_CLIENTS
    said = [line for line in open_mqtt.said if "client 1 answers" in line]
    assert "answers round 0, call 1 of run cd34, and this is ab12, which nobody waits for; left aside" in said[0]
    assert "answers round 0, call 1 of start 1 of the server, and this is start 2, which" in said[1]
    assert len(said) == 20
    assert said[-1].endswith("no more is said of such")


def test_what_a_socket_took_counts_once_though_its_answer_comes_twice(open_mqtt) -> None:
    method, rows = MeanLabel(), []
    fleet = open_mqtt(method)
    object.__setattr__(fleet.post, "weighed", lambda number, client, answer: rows.append(client))
    fleet.post.link.meddle = lambda client, head, answer: [answer, answer]
    fleet.ask(method.tell, dict.fromkeys(fleet.everyone, EMPTY))
    fleet.begin(1)
    fleet.ask(method.tell, dict.fromkeys(fleet.everyone, EMPTY))
    assert sorted(rows) == sorted([*fleet.everyone] * 2)


def test_what_comes_while_no_run_is_under_way_is_not_kept() -> None:
    board = Board(N_CLIENTS)
    for _ in range(3):
        board.hear("l/002/r", bytes(1000))
    board.hear("l/001/s", HERE)
    assert board.empty() == {2}
    assert board.take() is None
    assert board.here == {1}


def test_what_comes_while_nobody_reads_is_bounded_for_each_client_and_the_rest_named(open_mqtt) -> None:
    method = MeanLabel()
    fleet = open_mqtt(method)
    board = fleet.post.board
    board.empty()
    for _ in range(50):
        board.hear("l/001/r", bytes(1000))
        board.hear("l/002/s", GONE)
        board.hear("l/002/s", HERE)
    board.hear("l/000/r", b"late")
    kept = [event.client for event in iter(board.take, None)]
    assert sorted(kept) == [0, 1, 1, 1, 1, 2]
    assert board.take_surplus() == {1: 46}
    for _ in range(50):
        board.hear("l/001/r", bytes(1000))
    assert len(fleet.ask(method.tell, dict.fromkeys(fleet.everyone, EMPTY))) == N_CLIENTS
    assert "client 1 sent 46 answers before 4 others were read; left aside" in open_mqtt.said


LIES = {
    "in the midst of a number": b"\xab\x12\xff",
    "its outcome is 7f": b"\xab\x12\x01\x00\x01\x7f\x00\x00",
    "the node says: no": Answer(RUN, 1, 0, 1, STEP, Outcome.REFUSED, Sent(), b"no").write(),
    "the node says: <not here>": Answer(RUN, 1, 0, 1, STEP, Outcome.UNFIT, Sent(), b"<not here>").write(),
    "5001 bytes came, no answer in this run has more than 5000": bytes(5001),
}


@pytest.mark.parametrize("words", LIES)
def test_an_answer_that_is_unsound_or_a_refusal_is_named_and_the_others_count(words: str, open_mqtt) -> None:
    method = MeanLabel()
    fleet = open_mqtt(method)
    fleet.post.link.meddle = lambda client, head, answer: [LIES[words] if client == 1 else answer]
    assert [*fleet.ask(method.tell, dict.fromkeys(fleet.everyone, EMPTY))] == [0, 2, 3]
    (line,) = fleet.refused
    assert "client 1: reply to tell refused" in line
    assert words in line


def test_a_run_that_nobody_can_take_part_in_ends_with_what_they_say(open_mqtt) -> None:
    method = MeanLabel()
    fleet = open_mqtt(method)
    unfit = Answer(RUN, 1, 0, 1, STEP, Outcome.UNFIT, Sent(), b"x_train has shape (3, 2)").write()
    fleet.post.link.meddle = lambda client, head, answer: [unfit]
    with pytest.raises(
        ValueError, match=r"none of the 4 nodes that answered can take part: client 0: x_train has shape"
    ):
        fleet.ask(method.tell, dict.fromkeys(fleet.everyone, EMPTY))


def test_a_run_goes_on_for_those_who_can_though_only_others_are_asked(open_mqtt) -> None:
    method = MeanLabel()
    fleet = open_mqtt(method)

    def meddle(client: int, head: Head, answer: bytes) -> list[bytes]:
        return [answer if client == 0 else Answer(*head.place, Outcome.UNFIT, Sent(), b"no examples").write()]

    fleet.post.link.meddle = meddle
    assert not fleet.ask(method.tell, dict.fromkeys([1, 2, 3], EMPTY), at_least=0)
    assert [*fleet.ask(method.tell, dict.fromkeys(fleet.everyone, EMPTY))] == [0]


def test_a_run_goes_on_for_those_who_could_though_they_are_away(open_mqtt) -> None:
    method = MeanLabel()
    fleet = open_mqtt(method)
    assert fleet.ask(method.tell, dict.fromkeys([0, 1], EMPTY))
    for client in (0, 1, 2):
        fleet.post.link.board.hear(f"l/{client:03d}/s", GONE)
    fleet.post.link.meddle = lambda client, head, answer: [
        Answer(*head.place, Outcome.UNFIT, Sent(), b"no examples").write()
    ]
    assert not fleet.ask(method.tell, {3: EMPTY}, at_least=0)
    fleet.part()


def test_who_was_not_asked_is_not_heard_however_often_it_talks(open_mqtt) -> None:
    method = MeanLabel()
    fleet = open_mqtt(method)

    def meddle(client: int, head: Head, answer: bytes) -> list[bytes]:
        for _ in range(5):
            fleet.post.link.board.hear("l/003/r", b"rubbish")
        return [answer]

    fleet.post.link.meddle = meddle
    assert [*fleet.ask(method.tell, dict.fromkeys([0, 1], EMPTY))] == [0, 1]
    assert not fleet.refused


def test_who_has_left_is_not_waited_for_and_is_asked_again_at_its_birth(open_mqtt) -> None:
    method = MeanLabel()
    fleet = open_mqtt(method)
    link = fleet.post.link
    link.board.hear("l/002/s", GONE)
    assert [*fleet.ask(method.tell, dict.fromkeys(fleet.everyone, EMPTY))] == [0, 1, 3]
    assert [*fleet.ledger.totals("client", direction="down")] == [(0,), (1,), (3,)]  # what never left costs nothing
    assert "no reply from clients 2" in open_mqtt.said[-1]
    fleet.begin(1)
    assert fleet.sampled == [0, 1, 3]

    def bear_third(client: int, head: Head, answer: bytes) -> list[bytes]:
        """Before the others have all answered."""
        if client == 0:
            link.board.hear("l/002/s", HERE)
        return [answer]

    link.meddle = bear_third
    assert [*fleet.ask(method.tell, dict.fromkeys(fleet.everyone, EMPTY))] == [0, 1, 2, 3]


def test_who_is_there_but_silent_is_missed_once_and_waited_for_again_when_heard_of(open_mqtt) -> None:
    method = MeanLabel()
    fleet = open_mqtt(method, wait=3.0)
    fleet.post.link.meddle = lambda client, head, answer: [] if client == 3 else [answer]
    assert 3 not in fleet.ask(method.tell, dict.fromkeys(fleet.everyone, EMPTY))
    assert not fleet._is_expected(3)
    fleet.post.board.hear("l/003/r", b"\xab\x12\x01\x00\x01\x00\x00\x00")
    fleet.post.link.meddle = lambda client, head, answer: [answer]
    assert 3 in fleet.ask(method.tell, dict.fromkeys(fleet.everyone, EMPTY))
    assert fleet._is_expected(3)


def test_a_broker_that_went_away_makes_nobody_absent(open_mqtt) -> None:
    board = open_mqtt(MeanLabel()).post.board
    board.lose_broker()
    assert not board.here
    assert set(board.left.values()) == {float("inf")}
    board.find_broker()
    assert max(board.left.values()) < float("inf")


def test_what_sockets_took_is_handed_on_by_round_and_client(open_mqtt) -> None:
    method, rows = MeanLabel(), []
    fleet = open_mqtt(method)
    object.__setattr__(fleet.post, "weighed", lambda number, client, answer: rows.append((number, client, answer)))
    fleet.ask(method.tell, dict.fromkeys(fleet.everyone, EMPTY))
    fleet.part()
    assert [(number, client) for number, client, _ in rows] == [(0, client) for client in range(N_CLIENTS)] * 2
    assert {answer.exchanged for _, _, answer in rows} == {Sent(60, 70)}


@pytest.mark.parametrize("name", ["a\x1b[31mb", "<b>", "[red]", "x" * 41, ""])
def test_a_further_prediction_has_a_plain_name(name: str) -> None:
    with pytest.raises(ValueError, match="has no name of letters"):
        read_score(0, write_score(Score(0, 5, 2, ((name, 1),))))


@pytest.mark.parametrize("score", [Score(0, 5, 7), Score(0, 10**9, 1), Score(0, 5, 2, (("also", 9),))])
def test_a_score_beyond_belief_is_refused(score: Score) -> None:
    with pytest.raises(ValueError, match="right of"):
        read_score(0, write_score(score))
    assert read_score(0, write_score(Score(0, 5, 2, (("also", 3),)))) == Score(0, 5, 2, (("also", 3),))
