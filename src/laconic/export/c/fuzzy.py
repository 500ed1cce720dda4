"""Stores of fuzzy clauses, which vote by how many of their literals fail; where a patch lies is a literal as any other.

Of a clause with k literals the vote is min(failures, k) less those that fail, and no less than 0; on an image, that of
its best patch. A bit that has to be both 1 and 0 fails once wherever it is: the pair is left out, with one vote.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from laconic import tsetlin as tm
from laconic.export.c.clauses import POPCOUNT, WORD, Codes, Store, define_patches, find_places
from laconic.export.c.tables import define


class FuzzyClause(NamedTuple):
    most: int  # votes
    ones: NDArray[np.int64]  # features that have to be 1
    zeros: NDArray[np.int64]


class FuzzyStore(Store):
    @abstractmethod
    def encode(self, clause: FuzzyClause) -> Codes: ...

    def encode_all(self, machine: tm.Machine) -> list[Codes | None]:
        """A classic clause is one that bears no failure."""
        includes, failures = tm.include_bits(machine), machine.fuzzy.failures if machine.fuzzy else 1
        clauses = [read_fuzzy(include, failures) for include in includes.reshape(-1, includes.shape[-1])]
        return [self.encode(clause) if clause.most > 0 else None for clause in clauses]


def read_fuzzy(include: NDArray[np.bool_], failures: int) -> FuzzyClause:
    ones, zeros = np.split(include, 2)
    both = ones & zeros
    most = min(failures, int(include.sum())) - int(both.sum())
    return FuzzyClause(most, np.flatnonzero(ones & ~both), np.flatnonzero(zeros & ~both))


class FuzzyLists(FuzzyStore):
    def encode(self, clause: FuzzyClause) -> Codes:
        return np.concatenate([[clause.most, len(clause.ones), len(clause.zeros)], clause.ones, clause.zeros])

    def write_function(self) -> str:
        return FLAT.replace("VOTES", "left > 0" if self.counts else "left")


class FuzzyPatches(FuzzyStore):
    def encode(self, clause: FuzzyClause) -> Codes:
        starts = np.cumsum([self.shape.n_pixels, self.shape.n_rows - 1])
        (ones, after, right), (zeros, up_to, left) = (
            np.split(side, np.searchsorted(side, starts)) for side in (clause.ones, clause.zeros)
        )
        bits = [find_places(self.shape, side) for side in (ones, zeros)]
        places = [after - starts[0], up_to - starts[0], right - starts[1], left - starts[1]]
        return np.concatenate([[clause.most, *map(len, bits + places)], *bits, *places])

    def write_function(self) -> str:
        if self.shape.width > WORD:
            raise ValueError(f"images are {self.shape.width} pixels wide; C export of fuzzy clauses takes up to {WORD}")
        most = max((codes[0] for clauses in self.clauses for codes in clauses if codes is not None), default=1)
        sizes = define(
            planes=max(1, (int(most) - 1).bit_length()), rows=self.shape.n_rows, columns=self.shape.n_columns
        )
        found = "votes += name_count(alive);" if self.counts else STRONGEST
        return (
            define_patches(self.shape) + sizes + (POPCOUNT if self.counts else VOTES) + PATCHES.replace("FOUND", found)
        )


FLAT = """
/* How strongly the next clause votes: its most votes, how many bits should be 1, how many 0, then these bits; each that
   fails takes one away. */
static inline int name_clause(const uint32_t *bits, const name_code **clause)
{
    const name_code *at = *clause + 3, *zeros = at + (*clause)[1], *end = zeros + (*clause)[2];
    int left = (*clause)[0];
    *clause = end;
    for (; at < zeros && left; at++)
        left -= !(bits[*at >> 5] >> (*at & 31) & 1);
    for (; at < end && left; at++)
        left -= (int)(bits[*at >> 5] >> (*at & 31) & 1);
    return VOTES;
}
"""

# what fails is counted for all patches of a row at once: plane k has bit k of every patch's counter
VOTES = """
/* Of the patches that are left, the one with the lowest counter. */
static inline int name_votes(const uint32_t *planes, uint32_t alive)
{
    int k, lowest = 0;
    for (k = NAME_PLANES - 1; k >= 0; k--) {
        if (alive & ~planes[k])
            alive &= ~planes[k];
        else
            lowest |= 1 << k;
    }
    return (1 << NAME_PLANES) - lowest;
}
"""
STRONGEST = """if (alive && name_votes(planes, alive) > votes)
            votes = name_votes(planes, alive);"""

PATCHES = """
/* Adds 1 to the counters of these patches; those whose counter runs over. */
static inline uint32_t name_fail(uint32_t *planes, uint32_t fails)
{
    int k;
    for (k = 0; k < NAME_PLANES && fails; k++) {
        const uint32_t carry = planes[k] & fails;
        planes[k] ^= fails;
        fails = carry;
    }
    return fails;
}

/* The next clause: its most votes; how many bits should be 1 and 0, how many rows the patch should lie below, how many
   it should not, the same of columns; then all these. A counter begins so that it runs over when no vote is left. */
static inline int name_clause(const uint32_t *bits, const name_code **clause)
{
    const name_code *head = *clause, *ones = head + 7, *zeros = ones + head[1], *after = zeros + head[2];
    const name_code *up_to = after + head[3], *right = up_to + head[4], *left = right + head[5], *at;
    int row, k, votes = 0;
    *clause = left + head[6];
    for (row = 0; row < NAME_ROWS; row++) {
        const uint32_t *rows = bits + row * NAME_LAYERS;
        uint32_t planes[NAME_PLANES], alive = 0xffffffffu >> (32 - NAME_COLUMNS);
        int start = (1 << NAME_PLANES) - head[0];
        for (at = after; at < up_to; at++)
            start += row <= (int)*at;
        for (; at < right; at++)
            start += row > (int)*at;
        if (start >> NAME_PLANES)
            continue;
        for (k = 0; k < NAME_PLANES; k++)
            planes[k] = 0u - (uint32_t)(start >> k & 1);
        for (at = right; at < left && alive; at++)
            alive &= ~name_fail(planes, ~(0xffffffffu << *at << 1));
        for (; at < *clause && alive; at++)
            alive &= ~name_fail(planes, 0xffffffffu << *at << 1);
        for (at = ones; at < zeros && alive; at++)
            alive &= ~name_fail(planes, ~(rows[*at >> NAME_SHIFT] >> (*at & ((1 << NAME_SHIFT) - 1))));
        for (; at < after && alive; at++)
            alive &= ~name_fail(planes, rows[*at >> NAME_SHIFT] >> (*at & ((1 << NAME_SHIFT) - 1)));
        FOUND
    }
    return votes;
}
"""
