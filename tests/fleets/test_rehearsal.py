"""A round that one client spoils, in a way that nothing refused: void, that client named, and the next goes on."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from laconic.algorithm import Algorithm, Examples, Fleet, Site, Task, on_client
from laconic.fleets.source import ClientData
from laconic.simulation import Federation, Spoiled, federate
from laconic.wire import EMPTY, Floats, Message

LIAR, N_CLIENTS = 2, 4


class Told(Message):
    vector: Floats


@dataclass
class Server:
    total: NDArray[np.float64]


class Trusting(Algorithm):
    """Adds up whatever comes."""

    def start_server(self, task: Task, fleet: Fleet) -> Server:
        return Server(np.zeros(3))

    def run_round(self, server: Server, fleet: Fleet) -> None:
        replies = fleet.ask(self.tell, dict.fromkeys(fleet.sampled, EMPTY))
        with np.errstate(over="ignore"):
            server.total += sum(reply.vector**8 for reply in replies.values())

    def start_client(self, task: Task, site: Site) -> None: ...

    @on_client
    def tell(self, client: None, _: Message, site: Site) -> Told:
        return Told(LIE(site) if site.id == LIAR and site.round == 2 else np.ones(3))

    def predict(self, client: None, x: NDArray[np.uint8]) -> NDArray[np.int64]:
        return np.zeros(len(x), np.int64)


LIE: Callable[[Site], NDArray[np.float64]] = lambda site: np.full(3, 1e300)  # noqa: E731  # a test has another


def play(rounds: int) -> tuple[Federation, list[object]]:
    one = Examples(np.zeros((1, 2), np.uint8), np.zeros(1, np.int64))
    with federate(Trusting(), Task((2,), 1, N_CLIENTS), ClientData.of([(one, one, one)] * N_CLIENTS), 0) as federation:
        return federation, [federation.play(number, is_evaluated=False).trouble for number in range(rounds + 1)]


def test_a_state_that_is_not_finite_is_taken_back_and_its_author_left_out_from_then_on() -> None:
    federation, troubles = play(4)
    assert [trouble is None for trouble in troubles] == [True, True, False, True, True]
    assert isinstance(troubles[2], Spoiled)
    assert "client 2 spoiled it and is not asked again (state.total is not finite)" in str(troubles[2])
    assert federation.fleet.barred == {LIAR}
    assert federation.server.total.tolist() == [4.0 + 0 + 3 + 3] * 3  # rounds 1, 3 and 4


def test_a_reply_that_cannot_be_merged_voids_the_round_and_names_its_author(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "LIE", lambda site: np.ones(5))
    federation, troubles = play(3)
    assert "client 2 spoiled it" in str(troubles[2])
    assert "could not be broadcast" in str(troubles[2])
    assert federation.server.total.tolist() == [4.0 + 3] * 3


def test_what_is_nobodys_fault_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Trusting, server: Server, fleet: Fleet) -> None:
        raise RuntimeError("a mistake of the method's own")

    monkeypatch.setattr(Trusting, "run_round", fail)
    with pytest.raises(RuntimeError, match="a mistake of the method's own"):
        play(1)
