"""Models made of Tsetlin Machines: the votes of one, of several together, or linear heads on their clauses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic import linear
from laconic import tsetlin as tm
from laconic.models.base import PersonalModel, Scores


@dataclass
class Ballot(PersonalModel):
    """The class with most votes of one machine; sums are not clamped, so that they tell strong classes apart."""

    kind = "ballot"

    machine: tm.Machine
    among: NDArray[np.bool_] | None = None  # [class] those that may be chosen; None: all

    @property
    def unit(self) -> float:
        """A class as sure as training makes it is e² times as likely as one that nothing speaks for."""
        return self.machine.threshold / 2

    def scores(self, x: NDArray[np.uint8]) -> Scores:
        return only(tm.class_sums(self.machine, x), self.among)


@dataclass
class Composite(PersonalModel):
    """Several machines vote together, the clamped sums of each divided by how far they spread."""

    kind = "composite"

    machines: dict[str, tm.Machine]  # by what they are called, "private" and "shared"
    spans: tuple[float, ...] | None  # of each machine's sums; None: of every example's own sums over its classes
    among: NDArray[np.bool_] | None = None

    def scores(self, x: NDArray[np.uint8]) -> Scores:
        sums = [tm.clamped_sums(machine, x) for machine in self.machines.values()]
        return only(tm.combine(sums, self.spans), self.among)


@dataclass
class ClauseHead:
    """A linear head on how far clauses speak above their middle, see tsetlin.clauses and linear."""

    clauses: tm.Machine  # its weights have no meaning here
    scales: NDArray[Any]  # [clause of all banks, 2]
    head: linear.Matrix  # [held class, 1 + such clause]

    def logits(self, x: NDArray[np.uint8]) -> linear.Matrix:
        """[example, held class]"""
        spoken = tm.read_machine(self.clauses, self.scales, x) if len(self.scales) else np.zeros((len(x), 0))
        logits: linear.Matrix = linear.as_features(spoken) @ self.head.T
        return logits


@dataclass
class ClauseHeads(PersonalModel):
    """Logits of a head on a pool's clauses, and so much of those of a head on the client's own."""

    kind = "clause-heads"

    own: ClauseHead
    pooled: ClauseHead | None  # None: no pool, or nothing of it has arrived
    blend: float  # weight of the own head beside the pooled one
    holds: NDArray[np.bool_]  # [class] that the heads have rows of
    log_shares: linear.Matrix  # [held class] of the client's examples

    def scores(self, x: NDArray[np.uint8]) -> Scores:
        return linear.spread(self.logits(x), self.holds)

    def logits(self, x: NDArray[np.uint8]) -> linear.Matrix:
        """[example, held class]"""
        alone = self.own.logits(x) + self.log_shares
        if self.pooled is None:
            return alone
        return self.pooled.logits(x) + self.log_shares + self.blend * alone


def only(votes: NDArray[Any], among: NDArray[np.bool_] | None) -> Scores:
    """-inf for classes that are not to be chosen."""
    if among is None or among.all():
        return votes
    return np.where(among, votes, -np.inf)
