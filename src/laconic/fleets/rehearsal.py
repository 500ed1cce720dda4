"""Who spoiled a round: the server's half of it is played again without one client after the other."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from laconic.algorithm import Algorithm, ClientId, Fleet, TooFew
from laconic.fleets.host import SERVER, stream
from laconic.state import find_not_finite

if TYPE_CHECKING:
    from laconic.fleets.base import BaseFleet


class Over(Exception):
    """More is asked than was heard: the round was spoiled before."""


class Rehearsal:
    """Gives a server the replies of a round once more, without those of one client; nobody is asked anything."""

    def __init__(self, fleet: BaseFleet, left_out: ClientId) -> None:
        self.task, self.round, self.everyone, self.sampled = fleet.task, fleet.round, fleet.everyone, fleet.sampled
        self.averaging, self.rng = fleet.averaging, stream(fleet.home.seed, SERVER, fleet.round)
        self._left_out, self._heard = left_out, iter(fleet.heard)

    def ask(
        self, step: Callable[..., Any], messages: Mapping[ClientId, Any], at_least: int = 1, **_: Any
    ) -> dict[ClientId, Any]:
        name, replies = next(self._heard, ("", {}))
        if name != step.__name__:
            raise Over
        kept = {client: reply for client, reply in sorted(replies.items()) if client != self._left_out}
        if len(kept) < at_least:
            raise TooFew(f"{len(kept)} replies")
        return kept

    def gossip(self, *_: Any, **__: Any) -> None: ...

    def note(self, **_: float) -> None: ...

    def note_pairs(self, clients: Sequence[ClientId], **_: Any) -> None: ...

    def note_matrix(self, down: str, across: str, **_: Any) -> None: ...


def find_culprit(algorithm: Algorithm, before: Any, fleet: BaseFleet) -> ClientId | None:
    """The first without whose replies the round can be merged, to a state that is finite; None: nobody alone."""
    heard = sorted({client for _, replies in fleet.heard for client in replies})
    return next((client for client in heard if goes_well(algorithm, before, Rehearsal(fleet, client))), None)


def goes_well(algorithm: Algorithm, before: Any, rehearsal: Rehearsal) -> bool:
    server = copy.deepcopy(before)
    try:
        algorithm.run_round(server, cast(Fleet, rehearsal))  # all that it may ask for is there
    except (Over, TooFew):
        pass
    except Exception:
        return False
    return find_not_finite(server) is None
