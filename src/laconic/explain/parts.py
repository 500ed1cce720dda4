"""A model on Tsetlin Machines taken apart: which clauses it has, what each says of every class, what its scores add up.

A clause votes where it fires. Under a linear head it speaks all the time, from -1 to 1: the further above its middle,
the more patches it holds on; it then counts as firing where it speaks above that middle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic import tsetlin as tm
from laconic.models.base import PersonalModel
from laconic.models.machines import Ballot, ClauseHead, ClauseHeads, Composite
from laconic.tsetlin.balance import choose_bias
from laconic.tsetlin.clauses import as_levels
from laconic.tsetlin.rules import votes_by_class

Amounts = NDArray[np.float64]
CLAUSES, PRIVATE, POOLED = "clauses", "private", "pooled"  # names of parts; a composite names its own
BIAS, SHARES = "bias", "class shares"  # what scores have beside their clauses


@dataclass(frozen=True)
class Part:
    """Clauses that are read alike."""

    name: str
    machine: tm.Machine
    votes: NDArray[Any]  # [bank, clause, class] what a clause adds to a class where it speaks in full
    scales: NDArray[np.integer[Any]] | None = None  # [clause of all banks, 2] of clauses under a head
    span: float | None = 1.0  # that votes are divided by; None: by the span of the example's own sums

    @property
    def least(self) -> NDArray[np.int64] | None:
        """[bank, clause] patches that a clause must hold on to speak above its middle; all where these are too few."""
        if self.scales is None:
            return None
        shape = self.machine.shape
        n_patches = shape.n_rows * shape.n_columns
        levels = as_levels(np.arange(n_patches + 1, dtype=np.int32))
        least = np.searchsorted(levels, self.scales[:, 0], side="right").clip(1, n_patches)
        return least.reshape(self.votes.shape[:2])

    def fires(self, x: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """[example, bank, clause]"""
        if self.least is None:
            return tm.clause_outputs(self.machine, x)
        fires: NDArray[np.bool_] = tm.clause_counts(self.machine, x) >= self.least
        return fires

    def speaks(self, x: NDArray[np.uint8]) -> Amounts:
        """[example, bank, clause] how far: 0 or 1, or under a head from -1 to 1."""
        if self.scales is None:
            return self.fires(x).astype(np.float64)
        return tm.read_machine(self.machine, self.scales, x).reshape(len(x), *self.votes.shape[:2])

    def spans(self, x: NDArray[np.uint8]) -> Amounts:
        """[example] that its votes are divided by."""
        if self.span is not None:
            return np.full(len(x), self.span)
        own = np.ptp(tm.clamped_sums(self.machine, x), axis=1).astype(np.float64)
        return np.where(own, own, 1.0)


@dataclass(frozen=True)
class Anatomy:
    """Scores are the sum of what `add_up` gives, for the classes that may be chosen."""

    parts: tuple[Part, ...]
    among: NDArray[np.bool_]  # [class] that may be chosen
    add_up: Callable[[NDArray[np.uint8]], dict[str, Amounts]]  # by what adds it: [example, class]


def dissect(model: PersonalModel) -> Anatomy | None:
    """None: it is not made of clauses."""
    if isinstance(model, Ballot):
        return dissect_ballot(model)
    if isinstance(model, Composite):
        return dissect_composite(model)
    return dissect_heads(model) if isinstance(model, ClauseHeads) else None


def dissect_ballot(model: Ballot) -> Anatomy:
    machine = model.machine

    def add_up(x: NDArray[np.uint8]) -> dict[str, Amounts]:
        votes = tm.class_sums(machine, x).astype(np.float64)
        if machine.rivalry is None:
            return {CLAUSES: votes}
        bias = np.tile(choose_bias(machine.rivalry).astype(np.float64), (len(x), 1))
        return {CLAUSES: votes - bias, BIAS: bias}

    return Anatomy((Part(CLAUSES, machine, votes_by_class(machine)),), find_among(model.among, machine), add_up)


def dissect_composite(model: Composite) -> Anatomy:
    spans: tuple[float | None, ...] = model.spans or (None,) * len(model.machines)
    parts = [
        Part(name, machine, votes_by_class(machine), span=span)
        for (name, machine), span in zip(model.machines.items(), spans, strict=True)
    ]

    def add_up(x: NDArray[np.uint8]) -> dict[str, Amounts]:
        return {part.name: tm.clamped_sums(part.machine, x) / part.spans(x)[:, None] for part in parts}

    return Anatomy(tuple(parts), find_among(model.among, parts[0].machine), add_up)


def dissect_heads(model: ClauseHeads) -> Anatomy:
    heads = {PRIVATE: (model.own, 1.0 if model.pooled is None else model.blend)}
    if model.pooled is not None:
        heads = {POOLED: (model.pooled, 1.0)} | heads
    trained = {name: (head, weight) for name, (head, weight) in heads.items() if len(head.scales)}
    parts = [head_part(name, head, weight, model.holds) for name, (head, weight) in trained.items()]
    bias, shares = np.zeros((2, len(model.holds)))
    for head, weight in heads.values():
        bias[model.holds] += weight * head.head[:, 0]
        shares[model.holds] += weight * model.log_shares

    def add_up(x: NDArray[np.uint8]) -> dict[str, Amounts]:
        sums = {part.name: np.einsum("nbk,bkc->nc", part.speaks(x), part.votes) for part in parts}
        return sums | {BIAS: np.tile(bias, (len(x), 1)), SHARES: np.tile(shares, (len(x), 1))}

    return Anatomy(tuple(parts), model.holds, add_up)


def head_part(name: str, head: ClauseHead, weight: float, holds: NDArray[np.bool_]) -> Part:
    n_banks, n_clauses = head.clauses.states.shape[:2]
    votes = np.zeros((n_banks, n_clauses, len(holds)))
    votes[..., holds] = weight * head.head[:, 1:].T.reshape(n_banks, n_clauses, -1)
    return Part(name, head.clauses, votes, head.scales)


def find_among(among: NDArray[np.bool_] | None, machine: tm.Machine) -> NDArray[np.bool_]:
    return np.ones(machine.n_classes, np.bool_) if among is None else among
