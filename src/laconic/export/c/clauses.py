"""Clauses as tables, and the C function that says of the next one where it holds.

A store is a way to keep clauses; each has the same function, `name_clause(bits, &clause)`: on how many patches the
clause holds (or whether it does, where nobody counts), after which `clause` is at the one behind it. Another kind of
clause is another store.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from laconic import tsetlin as tm
from laconic.export.c.tables import INTEGERS, define, fit_integer, write_table
from laconic.tsetlin.rules import patch_places

WORD = 32
KNOWN_FIELDS = {"shape", "threshold", "specificity", "boost", "coalesced", "states", "weights", "rivalry"}


class Clause(NamedTuple):
    ones: NDArray[np.int64]  # bits of a patch that have to be 1
    zeros: NDArray[np.int64]  # and 0
    rows: range  # where the patch may lie
    columns: range


def read_clauses(machine: tm.Machine, nesting: NDArray[np.int64]) -> list[Clause | None]:
    """Bank by bank; None: it can never hold. nesting: [layer] of bits in one field the later implies the earlier."""
    shape, includes = machine.shape, tm.include_bits(machine)
    place = np.arange(shape.n_pixels) // shape.layers
    field = place * (1 + nesting.max()) + np.tile(nesting, shape.n_pixels // shape.layers)
    return [read_clause(shape, include, field) for include in includes.reshape(-1, includes.shape[-1])]


def read_clause(shape: tm.Shape, include: NDArray[np.bool_], field: NDArray[np.int64]) -> Clause | None:
    rows, columns = patch_places(shape, include)
    all_ones, all_zeros = (np.flatnonzero(side[: shape.n_pixels]) for side in np.split(include, 2))
    ones = {field[k]: k for k in all_ones}  # the last of a field stays: it says most
    zeros = {field[k]: k for k in all_zeros[::-1]}
    contradicts = any(ones[each] >= zeros[each] for each in ones.keys() & zeros)
    if contradicts or not include.any() or not rows or not columns:
        return None
    return Clause(np.array([*ones.values()], int), np.array([*zeros.values()], int), rows, columns)


def check_known(machine: tm.Machine) -> None:
    """Machines may come to have clauses that mean something else; those would be compared in vain."""
    for field in fields(machine):
        if field.name not in KNOWN_FIELDS and np.any(getattr(machine, field.name) or 0):
            raise ValueError(f"the machine's clauses are {field.name}, which C export does not know; save it as a file")


class Store(ABC):
    """Of all machines of a model, for they look at the same bits."""

    def __init__(self, shape: tm.Shape, clauses: Sequence[Clause], *, counts: bool) -> None:
        self.shape, self.counts = shape, counts
        self.code = fit_integer(np.concatenate([[0], *(self.encode(clause) for clause in clauses)]))
        self.n_bytes = sum(len(self.encode(each)) for each in clauses) * np.dtype(INTEGERS[self.code]).itemsize

    @abstractmethod
    def encode(self, clause: Clause) -> NDArray[np.int64]: ...

    @abstractmethod
    def write_function(self) -> str: ...

    def write_type(self) -> str:
        return f"typedef {self.code} name_code; /* clauses are written in these */\n"

    def write_clauses(self, name: str, clauses: Sequence[Clause]) -> str:
        codes = [self.encode(clause) for clause in clauses]
        return write_table("name_code", name, np.concatenate([np.zeros(0, int), *codes]), "Clauses one by one.")


class FlatLists(Store):
    def encode(self, clause: Clause) -> NDArray[np.int64]:
        return np.concatenate([[len(clause.ones), len(clause.zeros)], clause.ones, clause.zeros])

    def write_function(self) -> str:
        return FLAT_LISTS


class FlatMasks(Store):
    def encode(self, clause: Clause) -> NDArray[np.int64]:
        return np.concatenate([self.write_mask(clause.ones), self.write_mask(clause.zeros)])

    def write_mask(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        bits = np.zeros(-(-self.shape.n_pixels // WORD) * WORD, np.uint8)
        bits[places] = 1
        return np.packbits(bits, bitorder="little").view("<u4").astype(np.int64)

    def write_function(self) -> str:
        return FLAT_MASKS


class PatchLists(Store):
    def encode(self, clause: Clause) -> NDArray[np.int64]:
        ends = [clause.rows[0], clause.rows[-1], clause.columns[0], clause.columns[-1]]
        literals = [self.find_place(bits) for bits in (clause.ones, clause.zeros)]
        return np.concatenate([[len(clause.ones), len(clause.zeros)], ends, *literals])

    @property
    def shift(self) -> int:
        return (self.shape.patch_width - 1).bit_length()

    def find_place(self, bits: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many image rows of all layers further down a bit lies, and in the low bits how many columns further."""
        layer, place = bits % self.shape.layers, bits // self.shape.layers
        row, column = np.divmod(place, self.shape.patch_width)
        return (row * self.shape.layers + layer) << self.shift | column

    def write_function(self) -> str:
        body = (PATCHES if self.shape.width <= WORD else WIDE_PATCHES).replace("FOUND", COUNT if self.counts else FIRE)
        sizes = define(layers=self.shape.layers, shift=self.shift)
        return sizes + (POPCOUNT if self.counts else "") + body


def choose_store(shape: tm.Shape, clauses: Sequence[Clause], *, counts: bool) -> Store:
    """The smallest."""
    if not shape.is_flat:
        return PatchLists(shape, clauses, counts=counts)
    stores = (FlatLists(shape, clauses, counts=counts), FlatMasks(shape, clauses, counts=counts))
    return min(stores, key=lambda store: store.n_bytes)


FLAT_LISTS = """
/* Whether the next clause holds: how many bits have to be 1, how many 0, then these bits. */
static inline int name_clause(const uint32_t *bits, const name_code **clause)
{
    const name_code *at = *clause + 2, *zeros = at + (*clause)[0], *end = zeros + (*clause)[1];
    *clause = end;
    for (; at < zeros; at++)
        if (!(bits[*at >> 5] >> (*at & 31) & 1))
            return 0;
    for (; at < end; at++)
        if (bits[*at >> 5] >> (*at & 31) & 1)
            return 0;
    return 1;
}
"""

FLAT_MASKS = """
/* Whether the next clause holds: a mask of the bits that have to be 1, then one of those that have to be 0. */
static inline int name_clause(const uint32_t *bits, const name_code **clause)
{
    const name_code *ones = *clause, *zeros = ones + NAME_WORDS;
    int k;
    *clause = zeros + NAME_WORDS;
    for (k = 0; k < NAME_WORDS; k++)
        if ((~bits[k] & ones[k]) | (bits[k] & zeros[k]))
            return 0;
    return 1;
}
"""

POPCOUNT = """
static inline int name_count(uint32_t word)
{
    word -= word >> 1 & 0x55555555u;
    word = (word & 0x33333333u) + (word >> 2 & 0x33333333u);
    return (int)(((word + (word >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24);
}
"""
COUNT = "count += name_count(patches);"
FIRE = "if (patches) return 1;"

PATCHES = """
/* The next clause: how many bits have to be 1, how many 0, the first and last row and column of its patches, then where
   in a patch these bits lie. All patches of a row are looked at together: bit x of a word is the patch at column x. */
static inline int name_clause(const uint32_t *bits, const name_code **clause)
{
    const name_code *head = *clause, *first = head + 6, *zeros = first + head[0], *end = zeros + head[1], *at;
    const uint32_t within = (0xffffffffu >> (31 - head[5])) & (0xffffffffu << head[4]);
    int row, count = 0;
    *clause = end;
    for (row = head[2]; row <= head[3]; row++) {
        const uint32_t *rows = bits + row * NAME_LAYERS;
        uint32_t patches = within;
        for (at = first; at < zeros && patches; at++)
            patches &= rows[*at >> NAME_SHIFT] >> (*at & ((1 << NAME_SHIFT) - 1));
        for (; at < end && patches; at++)
            patches &= ~(rows[*at >> NAME_SHIFT] >> (*at & ((1 << NAME_SHIFT) - 1)));
        FOUND
    }
    return count;
}
"""

WIDE_PATCHES = """
/* 32 columns from this one on, of what lies at this place of a patch. */
static inline uint32_t name_columns_at(const uint32_t *rows, int place, int column)
{
    const uint32_t *row = rows + (place >> NAME_SHIFT) * NAME_STEP;
    column += place & ((1 << NAME_SHIFT) - 1);
    return row[column >> 5] >> (column & 31) | row[(column >> 5) + 1] << 1 << (31 - (column & 31));
}

/* The next clause: how many bits have to be 1, how many 0, the first and last row and column of its patches, then where
   in a patch these bits lie. 32 patches of a row are looked at together. */
static inline int name_clause(const uint32_t *bits, const name_code **clause)
{
    const name_code *head = *clause, *first = head + 6, *zeros = first + head[0], *end = zeros + head[1], *at;
    int row, column, count = 0;
    *clause = end;
    for (row = head[2]; row <= head[3]; row++)
        for (column = head[4]; column <= head[5]; column += 32) {
            const uint32_t *rows = bits + row * NAME_LAYERS * NAME_STEP;
            const int n_more = head[5] - column < 31 ? head[5] - column : 31;
            uint32_t patches = 0xffffffffu >> (31 - n_more);
            for (at = first; at < zeros && patches; at++)
                patches &= name_columns_at(rows, (int)*at, column);
            for (; at < end && patches; at++)
                patches &= ~name_columns_at(rows, (int)*at, column);
            FOUND
        }
    return count;
}
"""
