"""Fuzzy clauses (the Fuzzy-Pattern Tsetlin Machine): a clause votes by how many of its literals fail.

A clause with k literals of which m fail votes max(0, min(failures, k) - m) times its weight; on an image, its best
patch votes and learns. With failures = 1 all literals must hold, as in a classic clause.

Feedback differs in two points. A clause that votes as it should takes in true literals only while it has fewer than
`literals`; and every false literal that it does not include steps away, not one in s: what a clause includes it keeps
until it falls silent, and what it might include next must hold time and again.

Position literals count as all others do: a clause that must lie where it lay learns worse (docs/results/tsetlin.md).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np


@dataclass(frozen=True)
class Fuzzy:
    """How much a clause bears, and how large it grows."""

    failures: int  # LF: with so many failing literals a clause is silent; the largest vote, too
    literals: int  # L: a clause with so many takes in no more

    MOST: ClassVar[int] = 1 << 15  # of either; a vote times a weight is to fit 32 bits with room to spare

    def __post_init__(self) -> None:
        for name in ("failures", "literals"):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or not 1 <= value <= self.MOST:
                raise ValueError(f"fuzzy.{name} is {value!r}; give a whole number from 1 to {self.MOST}")
            object.__setattr__(self, name, int(value))


def check_fuzzy(fuzzy: Fuzzy | None) -> Fuzzy | None:
    if fuzzy is None or isinstance(fuzzy, Fuzzy):
        return fuzzy
    raise ValueError(f"fuzzy is {fuzzy!r}; give Fuzzy(failures, literals), or None for classic clauses")
