"""Clauses as tables, and the C function that says of the next one where it holds.

A store is a way to keep clauses; each has the same function, `name_clause(bits, &clause)`: how strongly the clause
votes, 0 or 1, or where `counts` on how many patches it holds; after which `clause` is at the one behind it. Another
kind of clause is another store: see fuzzy.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from laconic import tsetlin as tm
from laconic.export.c.tables import INTEGERS, define, fit_integer, write_table
from laconic.tsetlin.rules import patch_places

WORD = 32
Codes = NDArray[np.int64]  # a clause as numbers


class Store(ABC):
    """Of all machines of a model, for they look at the same bits. clauses: [machine][clause]; None: it never holds."""

    def __init__(self, machines: Sequence[tm.Machine], nesting: NDArray[np.int64], *, counts: bool) -> None:
        """nesting: [layer] the field of a bit: of two in one field the later implies the earlier."""
        self.shape, self.counts = machines[0].shape, counts
        self.field = np.arange(self.shape.n_pixels) // self.shape.layers * (1 + nesting.max())
        self.field += np.tile(nesting, self.shape.n_pixels // self.shape.layers)
        self.clauses = [self.encode_all(machine) for machine in machines]
        codes = [codes for clauses in self.clauses for codes in clauses if codes is not None]
        self.code = fit_integer(np.concatenate([[0], *codes]))
        self.n_bytes = sum(map(len, codes)) * np.dtype(INTEGERS[self.code]).itemsize

    @abstractmethod
    def encode_all(self, machine: tm.Machine) -> list[Codes | None]:
        """Bank by bank."""

    @abstractmethod
    def write_function(self) -> str: ...

    def write_type(self) -> str:
        return f"typedef {self.code} name_code; /* clauses are written in these */\n"

    def write_clauses(self, name: str, clauses: Sequence[Codes]) -> str:
        return write_table("name_code", name, np.concatenate([np.zeros(0, int), *clauses]), "Clauses one by one.")


class Clause(NamedTuple):
    ones: NDArray[np.int64]  # bits of a patch that have to be 1
    zeros: NDArray[np.int64]  # and 0
    rows: range  # where the patch may lie
    columns: range


class ClassicStore(Store):
    """Of clauses all of whose literals have to hold."""

    @abstractmethod
    def encode(self, clause: Clause) -> Codes: ...

    def encode_all(self, machine: tm.Machine) -> list[Codes | None]:
        includes = tm.include_bits(machine)
        clauses = (self.read(include) for include in includes.reshape(-1, includes.shape[-1]))
        return [None if clause is None else self.encode(clause) for clause in clauses]

    def read(self, include: NDArray[np.bool_]) -> Clause | None:
        """None: it can never hold. Of the bits of one field the one that says most is enough."""
        rows, columns = patch_places(self.shape, include)
        all_ones, all_zeros = (np.flatnonzero(side[: self.shape.n_pixels]) for side in np.split(include, 2))
        ones = {self.field[k]: k for k in all_ones}  # the last of a field stays
        zeros = {self.field[k]: k for k in all_zeros[::-1]}
        contradicts = any(ones[each] >= zeros[each] for each in ones.keys() & zeros)
        if contradicts or not include.any() or not rows or not columns:
            return None
        return Clause(np.array([*ones.values()], int), np.array([*zeros.values()], int), rows, columns)


class FlatLists(ClassicStore):
    def encode(self, clause: Clause) -> Codes:
        return np.concatenate([[len(clause.ones), len(clause.zeros)], clause.ones, clause.zeros])

    def write_function(self) -> str:
        return FLAT_LISTS


class FlatMasks(ClassicStore):
    def encode(self, clause: Clause) -> Codes:
        return np.concatenate([self.write_mask(clause.ones), self.write_mask(clause.zeros)])

    def write_mask(self, places: NDArray[np.int64]) -> Codes:
        bits = np.zeros(-(-self.shape.n_pixels // WORD) * WORD, np.uint8)
        bits[places] = 1
        return np.packbits(bits, bitorder="little").view("<u4").astype(np.int64)

    def write_function(self) -> str:
        return FLAT_MASKS


class PatchLists(ClassicStore):
    def encode(self, clause: Clause) -> Codes:
        ends = [clause.rows[0], clause.rows[-1], clause.columns[0], clause.columns[-1]]
        literals = [find_places(self.shape, bits) for bits in (clause.ones, clause.zeros)]
        return np.concatenate([[len(clause.ones), len(clause.zeros)], ends, *literals])

    def write_function(self) -> str:
        body = (PATCHES if self.shape.width <= WORD else WIDE_PATCHES).replace("FOUND", COUNT if self.counts else FIRE)
        return define_patches(self.shape) + (POPCOUNT if self.counts else "") + body


def define_patches(shape: tm.Shape) -> str:
    return define(layers=shape.layers, shift=find_shift(shape))


def find_shift(shape: tm.Shape) -> int:
    """Bits of a place that say the column."""
    return (shape.patch_width - 1).bit_length()


def find_places(shape: tm.Shape, bits: NDArray[np.int64]) -> Codes:
    """How many image rows of all layers further down a bit lies, and in the low bits how many columns further."""
    layer, place = bits % shape.layers, bits // shape.layers
    row, column = np.divmod(place, shape.patch_width)
    places: Codes = (row * shape.layers + layer) << find_shift(shape) | column
    return places


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
