"""Who has put clauses into a pool, what each was told, and whether all are still getting better."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.algorithm import ClientId

LEAST_GAIN = 0.001  # share of validation examples; less is no progress


@dataclass
class Member:
    holds: NDArray[np.bool_]  # [class]
    n_examples: int
    n_val: int
    offered: int  # round from which its offer ages
    told: int = 0  # serial up to which it has the pool
    heard: int = 0  # round in which it last said something
    n_right: NDArray[np.integer[Any]] = field(default_factory=lambda: np.zeros(0, np.int64))  # [guess] then


@dataclass
class Members:
    by_id: dict[ClientId, Member] = field(default_factory=dict)
    best: float = 0.0  # share of all validation examples guessed right, when it last rose
    best_round: int = 0

    def add(self, client: ClientId, member: Member, round: int) -> None:
        """All go on: there is something new to learn."""
        self.by_id[client], self.best, self.best_round = member, 0.0, round

    def is_due(self, client: ClientId, round: int, refresh_every: int) -> bool:
        """To offer clauses: for the first time, or again."""
        return client not in self.by_id or 0 < refresh_every <= round - self.by_id[client].offered

    def is_wanted(self, client: ClientId, round: int, patience: int) -> bool:
        """While there is progress; afterwards until it has had its last head."""
        end = self.best_round + patience
        return not patience or round <= end or self.by_id[client].heard < end

    def hear(
        self, client: ClientId, round: int, n_right: NDArray[np.integer[Any]], holds: NDArray[np.bool_] | None
    ) -> None:
        """holds: [class] if it holds others than before."""
        member = self.by_id[client]
        member.n_right, member.heard = n_right, round
        member.holds = member.holds if holds is None else holds

    def see_progress(self, round: int) -> None:
        """By what everyone guessed right when last heard of, so that it does not matter who takes part."""
        heard = [member for member in self.by_id.values() if member.heard]
        n_right = np.sum([member.n_right for member in heard], axis=0).max(initial=0)
        share = float(n_right / max(1, sum(member.n_val for member in heard)))
        if share > self.best + LEAST_GAIN:
            self.best, self.best_round = share, round
