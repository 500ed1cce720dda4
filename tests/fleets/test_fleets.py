"""What a method may count on on any fleet, seen through a local one; the conformance suite compares the others."""

import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from mean_label import MeanLabel, Verdict
from numpy.typing import NDArray
from rumour import Board, Rumour

from laconic.algorithm import Algorithm, Examples, Fleet, Site, Task, TooFew, on_client
from laconic.fleets.base import BaseFleet, Conditions, OverBudget
from laconic.fleets.source import ClientData
from laconic.simulation import federate
from laconic.wire import EMPTY, Message

N_CLIENTS = 6


@pytest.fixture
def open_local(tmp_path: Path) -> Iterator:
    def build(method: Algorithm, n_clients: int = N_CLIENTS, *, on_disk: bool = False, **conditions) -> BaseFleet:
        examples = Examples(np.zeros((3, 2), np.uint8), np.arange(3))
        task, source = Task((2,), 3, n_clients), ClientData.of([(examples,) * 3] * n_clients)
        options = {"workers": 2, "conditions": Conditions(**conditions), "folder": tmp_path, "on_disk": on_disk}
        return stack.enter_context(federate(method, task, source, 0, **options)).fleet

    with ExitStack() as stack:
        yield build


def ask_all(fleet: BaseFleet, method: Rumour, bits: NDArray[np.bool_], **options: int) -> dict:
    return fleet.ask(method.guess, dict.fromkeys(fleet.everyone, Board(bits)), **options)


def test_participation_samples_that_share_anew_each_round(open_local) -> None:
    fleet = open_local(MeanLabel(), n_clients=100, participation=0.3)
    samples = []
    for number in (1, 2):
        fleet.begin(number)
        samples.append(fleet.sampled)
        assert len(set(fleet.sampled)) == 30
    assert samples[0] != samples[1]


def test_replies_come_by_client_and_only_from_those_not_lost(open_local) -> None:
    method = MeanLabel()
    fleet = open_local(method, n_clients=40, lost_replies=0.4)
    replies = fleet.ask(method.tell, dict.fromkeys(reversed(fleet.everyone), EMPTY))
    assert list(replies) == sorted(replies)
    assert 10 < len(replies) < 35
    assert fleet.n_lost == 40 - len(replies)
    assert len(fleet.ledger.totals("client", direction="up")) == 40  # lost, but sent


def test_too_few_replies_void_the_round(open_local) -> None:
    method = MeanLabel()
    fleet = open_local(method, lost_replies=0.9)
    with pytest.raises(TooFew, match="6 are needed"):
        fleet.ask(method.tell, dict.fromkeys(fleet.everyone, EMPTY), at_least=6)


def test_what_repeats_is_coded_against_what_both_ends_hold(open_local) -> None:
    method = Rumour()
    fleet = open_local(method)
    bits = np.random.default_rng(0).random(method.n_bits) < 0.5
    sizes = []
    for number in (1, 2):
        fleet.begin(number)
        ask_all(fleet, method, bits)
        sizes.append(fleet.ledger.total(direction="down").sent_bytes)
        bits[3] ^= True  # in place: the base must be what was sent, not what the array has become
    assert sizes[0] > N_CLIENTS * method.n_bits / 8
    assert sizes[1] < N_CLIENTS * 40


def test_arrays_that_arrive_cannot_be_written_to(open_local) -> None:
    method = Scribbler()
    fleet = open_local(method)
    with pytest.raises(ValueError, match="read-only"):
        fleet.ask(method.scribble, {0: Board(np.zeros(9, np.bool_))})


def test_the_ledger_refuses_a_byte_beyond_the_budget(open_local) -> None:
    method = Rumour()
    fleet = open_local(method, budget_bytes=200)
    with pytest.raises(OverBudget, match=r"client 0: guess brings its bytes to \d+, the budget is 200"):
        ask_all(fleet, method, np.random.default_rng(0).random(method.n_bits) < 0.5)


def test_gossip_is_counted_for_each_pair(open_local) -> None:
    method = Rumour()
    fleet = open_local(method)
    fleet.gossip(method.whisper, method.listen, {0: [1, 2], 3: [1]})
    pairs = fleet.ledger.totals("client", "peer", direction="peer")
    assert set(pairs) == {(1, 0), (2, 0), (1, 3)}
    assert len({counts.sent_bytes for counts in pairs.values()}) <= 2


def test_what_is_addressed_to_who_is_away_costs_neither_end(open_local, monkeypatch: pytest.MonkeyPatch) -> None:
    method = Rumour()
    fleet = open_local(method)
    there = fleet._perform

    def perform(requests):
        fleet.unreached = {0}
        yield from there([request for request in requests if request.client != 0])

    monkeypatch.setattr(fleet, "_perform", perform)
    fleet.gossip(method.whisper, method.listen, {0: [1, 2], 3: [1]})
    ask_all(fleet, method, np.zeros(method.n_bits, np.bool_))
    sent = {client: fleet.ledger.total(client=client).sent_bytes for client in fleet.everyone}
    got = {client: fleet.ledger.total(peer=client).sent_bytes for client in fleet.everyone}
    assert {client: fleet.spent[client] for client in fleet.everyone} == {k: sent[k] + got[k] for k in sent}
    assert set(fleet.ledger.totals("client", "peer", direction="peer")) == {(1, 3)}
    assert fleet.spent[0] == 0


def test_a_damaged_reply_is_refused_by_name_and_the_round_goes_on(open_local, monkeypatch: pytest.MonkeyPatch) -> None:
    method = MeanLabel()
    fleet = open_local(method)
    honest = fleet._perform

    def damage(requests):
        for reply in honest(requests):
            data = reply.encoded.data
            worse = bytes([*data[:-1], data[-1] ^ 1]) if reply.client == 2 else data
            yield reply._replace(encoded=reply.encoded._replace(data=worse))

    monkeypatch.setattr(fleet, "_perform", damage)
    replies = fleet.ask(method.tell, dict.fromkeys(fleet.everyone, EMPTY))
    assert sorted(replies) == [0, 1, 3, 4, 5]
    (line,) = fleet.refused
    assert "client 2: reply to tell refused (checksum fails" in line
    assert (
        fleet.ledger.total(client=2, direction="up").sent_bytes
        == fleet.ledger.total(client=3, direction="up").sent_bytes
    )
    monkeypatch.undo()
    assert len(fleet.ask(method.tell, dict.fromkeys(fleet.everyone, EMPTY))) == 6  # both ends still agree


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda fleet, method: fleet.ask(method.tell, {99: EMPTY}), r"no clients \[99\]; they are numbered 0 to 5"),
        (lambda fleet, method: fleet.ask(method.install, {0: EMPTY}), "got a Message; its annotation says Verdict"),
        (lambda fleet, method: fleet.ask(method.predict, {0: EMPTY}), "is no step; mark it with @on_client"),
        (lambda fleet, _: fleet.ask(MeanLabel(blend=0.1).tell, {0: EMPTY}), r"is no step of MeanLabel\(blend=0.5\)"),
    ],
)
def test_a_mistaken_request_is_refused_by_name(open_local, ask, words: str) -> None:
    method = MeanLabel()
    with pytest.raises((ValueError, TypeError), match=words):
        ask(open_local(method), method)


def test_a_client_met_late_starts_as_it_would_have_at_first(open_local) -> None:
    method = Rumour()
    early, late = open_local(method), open_local(method)
    bits = np.zeros(method.n_bits, np.bool_)
    ask_all(early, method, bits)
    late.begin(0)
    late.ask(method.guess, {5: Board(bits)}, at_least=0)
    assert np.array_equal(early._host.ends.get(5).state.bits, late._host.ends.get(5).state.bits)


def test_memory_does_not_follow_the_number_of_clients_when_states_live_on_disk(open_local) -> None:
    peaks = {}
    for on_disk in (False, True):
        method = Hoarder()
        fleet = open_local(method, n_clients=60, on_disk=on_disk)
        tracemalloc.start()
        for number in (1, 2):
            fleet.begin(number)
            fleet.ask(method.touch, dict.fromkeys(fleet.everyone, EMPTY))
        peaks[on_disk] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peaks[False] > 60 * Hoarder.hoard_bytes
    assert peaks[True] < 12 * Hoarder.hoard_bytes


class Solo(Algorithm):
    """What these methods do not need, done."""

    def start_server(self, task: Task, fleet: Fleet) -> None: ...

    def run_round(self, server: None, fleet: Fleet) -> None: ...

    def predict(self, client: object, x: NDArray[np.uint8]) -> NDArray[np.int64]:
        return np.zeros(len(x), np.int64)


@dataclass
class Hoard:
    things: NDArray[np.float64]


class Hoarder(Solo):
    hoard_bytes: int = 1 << 20

    def start_client(self, task: Task, site: Site) -> Hoard:
        return Hoard(np.zeros(self.hoard_bytes // 8))

    @on_client
    def touch(self, client: Hoard, _: Message, site: Site) -> Verdict:
        client.things += 1
        return Verdict(float(client.things[0]))


class Scribbler(Solo):
    def start_client(self, task: Task, site: Site) -> Hoard:
        return Hoard(np.zeros(1))

    @on_client
    def scribble(self, client: Hoard, board: Board, site: Site) -> None:
        board.bits[0] = True


def test_a_matrix_is_noted_of_as_many_clients_as_it_has_rows_and_only_for_its_round(open_local) -> None:
    fleet = open_local(MeanLabel())
    fleet.note_pairs([2, 5], alike=np.eye(2))
    assert fleet.pair_notes["alike"][0] == [2, 5]
    with pytest.raises(ValueError, match=r"alike is \(2, 2\); a row and a column for each of 3 clients"):
        fleet.note_pairs([1, 2, 3], alike=np.eye(2))
    fleet.begin(1)
    assert not fleet.pair_notes
