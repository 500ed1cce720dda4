"""A model on Tsetlin Machines taken apart: which clauses it has, what each says of every class, what its scores add up.

A clause votes where it fires. Under a linear head it speaks all the time, from -1 to 1: the further above its middle,
the more patches it holds on; it then counts as firing where it speaks above that middle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from laconic import linear
from laconic import tsetlin as tm
from laconic.models.base import PersonalModel
from laconic.models.machines import Ballot, ClauseHead, ClauseHeads, Composite
from laconic.models.seeds import SeededHeads, SeedHead
from laconic.tsetlin.balance import choose_bias
from laconic.tsetlin.clauses import as_levels
from laconic.tsetlin.rules import votes_by_class

Amounts = NDArray[np.float64]
CLAUSES, PRIVATE, POOLED = "clauses", "private", "pooled"  # names of parts; a composite names its own
BIAS, SHARES, SEEDS = "bias", "class shares", "seed features"  # what scores have beside their clauses


@dataclass(frozen=True)
class Part:
    """Clauses that are read alike."""

    name: str
    machine: tm.Machine
    votes: NDArray[Any]  # [bank, clause, class] what a clause adds to a class where it speaks in full
    scales: NDArray[np.integer[Any]] | None = None  # [clause of all banks, 2] of clauses under a head
    span: float | None = 1.0  # that votes are divided by; None: by the span of the example's own sums
    byte_layers: int = 0  # the last so many layers of an example are not for clauses

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
        fires: NDArray[np.bool_] = tm.clause_counts(self.machine, self.bits(x)) >= self.least
        return fires

    def speaks(self, x: NDArray[np.uint8]) -> Amounts:
        """[example, bank, clause] how far: 0 or 1, fuzzy clauses several times, or under a head from -1 to 1."""
        if self.scales is None:
            return tm.clause_votes(self.machine, x).astype(np.float64)
        return tm.read_machine(self.machine, self.scales, self.bits(x)).reshape(len(x), *self.votes.shape[:2])

    def bits(self, x: NDArray[np.uint8]) -> NDArray[np.uint8]:
        return np.ascontiguousarray(x[..., : -self.byte_layers]) if self.byte_layers else x

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
    """None: a network."""
    if isinstance(model, Ballot):
        return dissect_ballot(model)
    if isinstance(model, Composite):
        return dissect_composite(model)
    if isinstance(model, ClauseHeads):
        return dissect_heads(model)
    if isinstance(model, SeededHeads):
        return dissect_seeded(model)
    return dissect_seed_head(model) if isinstance(model, SeedHead) else None


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
    own = 1.0 if model.pooled is None else model.blend
    heads = {POOLED: (model.pooled, 1.0), PRIVATE: (model.own, own)}
    return join_heads(model, heads, {}, 1 if model.pooled is None else 1 + own)


def dissect_seeded(model: SeededHeads) -> Anatomy:
    """Of own heads on clauses and on seed features the mean counts."""
    has_common = model.together is not None
    own = model.heads.blend if has_common else 1.0
    each = own if model.alone is None else own / 2
    heads = {POOLED: (model.heads.pooled if has_common else None, 1.0), PRIVATE: (model.heads.own, each)}
    seeds = {
        SEEDS: Seeds(model.read_bank, model.together, 1.0),
        f"{PRIVATE} {SEEDS}": Seeds(model.read_wide, model.alone, each),
    }
    return join_heads(model.heads, heads, seeds, own + has_common, model.byte_layers)


def dissect_seed_head(model: SeedHead) -> Anatomy:
    return join_heads(model, {}, {SEEDS: Seeds(model.bank.read, model.head, 1.0)}, 1)


class Seeds(NamedTuple):
    """A head on a bank's features."""

    read: Callable[[NDArray[np.uint8]], Amounts]  # [example, feature]
    head: Amounts | None  # [held class, 1 + feature]
    weight: float


def join_heads(
    model: ClauseHeads | SeedHead,
    heads: dict[str, tuple[ClauseHead | None, float]],
    seeds: dict[str, Seeds],
    n_shares: float,
    byte_layers: int = 0,
) -> Anatomy:
    """heads: with their weights; n_shares: how many times the log of the client's class shares is added."""
    holds = model.holds
    parts, bias = list[Part](), np.zeros(len(holds))
    for name, (head, weight) in heads.items():
        if head is not None:
            bias[holds] += weight * head.head[:, 0]
            if len(head.scales):  # else its clauses have yet to be trained
                parts.append(head_part(name, head, weight, holds, byte_layers))
    banks = {name: seed for name, seed in seeds.items() if seed.head is not None}
    for seed in banks.values():
        assert seed.head is not None
        bias[holds] += seed.weight * seed.head[:, 0]
    shares = linear.spread(n_shares * model.log_shares[None], holds)[0]
    shares[~holds] = 0

    def add_up(x: NDArray[np.uint8]) -> dict[str, Amounts]:
        sums = {part.name: np.einsum("nbk,bkc->nc", part.speaks(x), part.votes) for part in parts}
        for name, seed in banks.items():
            assert seed.head is not None
            sums[name] = np.zeros((len(x), len(holds)))
            sums[name][:, holds] = seed.weight * seed.read(x) @ seed.head[:, 1:].T
        return sums | {BIAS: np.tile(bias, (len(x), 1)), SHARES: np.tile(shares, (len(x), 1))}

    return Anatomy(tuple(parts), holds, add_up)


def head_part(name: str, head: ClauseHead, weight: float, holds: NDArray[np.bool_], byte_layers: int) -> Part:
    n_banks, n_clauses = head.clauses.states.shape[:2]
    votes = np.zeros((n_banks, n_clauses, len(holds)))
    votes[..., holds] = weight * head.head[:, 1:].T.reshape(n_banks, n_clauses, -1)
    return Part(name, head.clauses, votes, head.scales, byte_layers=byte_layers)


def find_among(among: NDArray[np.bool_] | None, machine: tm.Machine) -> NDArray[np.bool_]:
    return np.ones(machine.n_classes, np.bool_) if among is None else among
