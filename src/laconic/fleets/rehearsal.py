"""Who spoiled a round: the server's half of it is played again without one client after the other."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from laconic.algorithm import Algorithm, ClientId, Fleet, TooFew
from laconic.fleets.host import SERVER, stream
from laconic.state import find_not_finite
from laconic.wire import Sparse

if TYPE_CHECKING:
    from laconic.fleets.base import BaseFleet


UNSIZED = ("bits", "bool", "str")  # kinds of fields without numbers


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
    """Without whose replies the round can be merged, to a finite state; of several, who sent the largest numbers.

    None: nobody alone is to blame.
    """
    heard = sorted({client for _, replies in fleet.heard for client in replies})
    suspects = [client for client in heard if goes_well(algorithm, before, Rehearsal(fleet, client))]
    return max(suspects, key=lambda client: find_largest(fleet, client), default=None)


def find_largest(fleet: BaseFleet, client: ClientId) -> float:
    """Of all numbers in its replies."""
    told = [replies[client] for _, replies in fleet.heard if replies.get(client) is not None]
    values = [getattr(message, name) for message in told for name, kind, _ in message.schema if kind not in UNSIZED]
    arrays = [np.asarray(value.values if isinstance(value, Sparse) else value) for value in values if value is not None]
    return max((float(np.abs(array).max(initial=0)) for array in arrays), default=0.0)


def goes_well(algorithm: Algorithm, before: Any, rehearsal: Rehearsal) -> bool:
    server = copy.deepcopy(before)
    try:
        algorithm.run_round(server, cast(Fleet, rehearsal))  # all that it may ask for is there
    except (Over, TooFew):
        pass
    except Exception:
        return False
    return find_not_finite(server) is None
