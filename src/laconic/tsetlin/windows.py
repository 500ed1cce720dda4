"""What training keeps per clause beside its automata, so that a clause is judged on a whole image in a few loads.

window   position literals never become bitmaps: together they are a rectangle of patch positions, kept as its first
         lane, its width in vectors (see below) and a mask.
list     where the bitmaps of a clause's pixel literals start; of nested thermometer levels only the tightest counts.
         Padded to whole groups of four by repeating the first entry, and rebuilt only when the set changed.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import int64, uint32
from numba import uint64 as word
from numpy.typing import NDArray

from laconic.tsetlin.compiling import inline, kernel
from laconic.tsetlin.geometry import Layout, aligned
from laconic.tsetlin.vectors import (
    and8,
    and_not8,
    any8,
    can_store_chosen,
    keep_apart,
    leading_zeros,
    load8,
    load_bytes,
    or8,
    popcount,
    shift_left8,
    shift_right8,
    splat8,
    store8,
    store_chosen,
    top_bits,
    trailing_zeros,
    xor8,
)

LOW = np.uint64(0xFFFFFFFF)  # the features of a word
ONE = np.uint64(1)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)

# window widths: 0 nothing can match, 1 half a vector (4 lanes), w > 1: w - 1 vectors of 8 lanes
NEVER, HALF, SINGLE, DOUBLE, WIDE = 0, 1, 2, 3, 4


class Windows(NamedTuple):
    """Per clause; see the top of this file."""

    first_lane: NDArray[np.int32]
    width: NDArray[np.int32]
    rectangle: NDArray[np.int32]  # width by the position literals alone
    contradicts: NDArray[np.int32]  # -1 if pixel literals exclude each other, else 0
    outdated: NDArray[np.int32]  # -1 if the list lags behind the effective literals, else 0
    n_groups: NDArray[np.int32]  # of four list entries
    masks: NDArray[np.uint64]
    effective: NDArray[np.uint64]  # words of the literals that count
    lists: NDArray[Any]
    # clauses to be brought up to date, in any order; one may come twice
    changed: NDArray[np.int32]  # with new literals, of whatever kind
    repositioned: NDArray[np.int32]  # with new position literals
    repainted: NDArray[np.int32]  # with new pixel literals
    relisted: NDArray[np.int32]  # with a list to be made


class Changes(NamedTuple):
    """How many clauses the lists of changes hold."""

    n_changed: int
    n_repositioned: int
    n_repainted: int


def make_windows(layout: Layout, n_clauses: int, offset_dtype: Any) -> Windows:
    n = n_clauses
    first_lane, width, rectangle, contradicts, outdated, n_groups = np.zeros((6, n), np.int32)
    masks, effective = aligned(n * layout.mask_lanes, np.uint64), aligned(n * layout.effective_words, np.uint64)
    lists, changes = aligned(n * layout.list_capacity, offset_dtype), np.zeros((4, 2 * n + 1), np.int32)
    return Windows(first_lane, width, rectangle, contradicts, outdated, n_groups, masks, effective, lists, *changes)


@inline
def _interval(includes, first_word, start, n_levels):
    """Positions allowed by the thermometer of n_levels features from `start` on: first, last."""
    at = first_word + (start >> 5)
    shift = start & 31
    if n_levels < 64 - shift:  # the usual case lies in two words: no loop, no branches
        one, two, levels = includes[at], includes[at + 1], (ONE << word(n_levels)) - ONE
        above = (((one & LOW) | (two << word(32))) >> word(shift)) & levels
        not_above = (((one >> word(32)) | (two & ~LOW)) >> word(shift)) & levels
        return 64 - int64(leading_zeros(above)), min(n_levels, int64(trailing_zeros(not_above)))
    first, last = 0, n_levels
    for level in range(n_levels):
        bits = includes[first_word + ((start + level) >> 5)] >> word((start + level) & 31)
        if bits & ONE:
            first = level + 1
        if (bits >> word(32)) & ONE and level < last:
            last = level
    return first, last


@inline
def _column_mask(first, last):
    return ((word(2) << word(last)) - ONE) & ~((ONE << word(first)) - ONE)


@inline
def update_window(includes, first_word, windows, tables, layout, clause):
    """Position literals → rectangle, first lane and mask; no branch depends on them if the grid fits two vectors."""
    top, bottom = _interval(includes, first_word, layout.n_pixels, layout.n_rows - 1)
    left, right = _interval(includes, first_word, layout.n_pixels + layout.n_rows - 1, layout.n_columns - 1)
    per_row, log_rows = layout.lanes_per_row, 6 - layout.log_row_bits
    first, last = (top >> log_rows) * per_row, (bottom >> log_rows) * per_row + per_row - 1
    is_half = per_row == 1 and last - first < 4
    vectors = (last - first + 8) >> 3
    start = max(0, min(first, layout.n_lanes - (4 if is_half else 8 * vectors)))
    mask, last_start = clause * layout.mask_lanes, layout.n_lanes - 8
    if per_row == 1:
        columns = splat8(_column_mask(left, right) * word(layout.row_starts))
        rows = and8(
            load8(tables.rows_from, top * layout.n_lanes + start),
            load8(tables.rows_to, bottom * layout.n_lanes + start),
        )
        store8(windows.masks, mask, and8(rows, columns))  # of half a vector, only the first half is ever read
        # two vectors where one would do, if there is room for them, because windows of both widths mix
        for v in range(1, max(vectors, min(2, layout.mask_lanes >> 3))):
            # the last vector is moved back to end with the grid; its overlap with the one before is masked out
            lane = min(start + 8 * v, last_start)
            from_row = max(top, min((start + 8 * v) << log_rows, layout.n_rows))
            rows = and8(
                load8(tables.rows_from, from_row * layout.n_lanes + lane),
                load8(tables.rows_to, bottom * layout.n_lanes + lane),
            )
            store8(windows.masks, mask + 8 * v, and8(rows, columns))
    else:
        for v in range(vectors):
            lane = min(start + 8 * v, last_start)
            for j in range(lane, lane + 8):
                bits = word(0)
                if j >= start + 8 * v and j >= first and j <= last:
                    offset = 64 * (j % per_row)
                    low, high = max(left - offset, 0), min(right - offset, 63)
                    if low <= high:
                        bits = _column_mask(low, high)
                windows.masks[mask + 8 * v + j - lane] = bits
    windows.first_lane[clause] = start
    is_empty = (top > bottom) | (left > right)
    windows.rectangle[clause] = NEVER if is_empty else HALF if is_half else vectors + 1


@inline
def update_effective(includes, first_word, windows, tables, layout, clause):
    """Include bits → the pixel literals that count, whether they contradict, whether the list lags behind."""
    base = clause * layout.effective_words
    differs, conflict, low = splat8(word(0)), splat8(word(0)), splat8(LOW)
    for w in range(0, layout.effective_words, 8):
        kept = and8(load8(includes, first_word + w), load8(tables.pixels, w))
        true = and8(kept, low)  # features that must hold, in the low halves
        false = xor8(kept, true)  # features that must not, in the high halves
        if layout.nest_steps:
            # a level implies those below it; its negation implies the negations above it
            for step in range(layout.nest_steps):
                partner = load8(tables.nesting, step * layout.effective_words + w)
                distance = ONE << word(step)
                true = or8(true, and8(shift_right8(true, distance), and8(partner, low)))
                false = or8(false, shift_left8(and_not8(and8(false, partner), low), distance))
            partner = load8(tables.nesting, w)
            implied_true = and8(shift_right8(true, ONE), and8(partner, low))
            implied_false = shift_left8(and_not8(and8(false, partner), low), ONE)
            kept = and_not8(and_not8(kept, implied_true), implied_false)
        conflict = or8(conflict, and8(true, shift_right8(false, word(32))))
        differs = or8(differs, xor8(kept, load8(windows.effective, base + w)))
        store8(windows.effective, base + w, kept)
    windows.contradicts[clause] = any8(conflict)
    windows.outdated[clause] |= any8(differs)


@inline
def _list_word_at_once(lists, entry, offsets, slot, bits):
    """Offsets of the literals of one word, to the end of a list; where the list ends now."""
    chosen = uint32(bits)
    store_chosen(lists, entry, offsets, slot, chosen)
    entry += int64(popcount(word(chosen)))
    store_chosen(lists, entry, offsets, slot + 32, uint32(bits >> word(32)))
    return entry + int64(popcount(bits >> word(32)))


@inline
def _list_word_by_bits(lists, entry, offsets, slot, bits):
    """The same for a CPU that cannot pick numbers out of a vector."""
    end = entry + int64(popcount(bits))
    while True:  # four stores without a branch; one too many is overwritten by the next word
        for _ in range(4):
            lists[entry] = offsets[slot + int64(trailing_zeros(bits))]
            bits &= bits - ONE
            entry += 1
        if bits == 0:
            break
    return end


list_word = _list_word_at_once if can_store_chosen() else _list_word_by_bits


@inline
def update_list(windows, tables, layout, clause):
    lists, start = windows.lists, clause * layout.list_capacity
    entry = start
    for w in range(layout.n_pixel_words):
        bits = windows.effective[clause * layout.effective_words + w]
        entry = list_word(lists, entry, tables.offsets, w * 64, bits)
    for i in range(3):
        lists[entry + i] = lists[start]
    windows.n_groups[clause] = (entry - start + 3) >> 2
    windows.outdated[clause] = 0


@inline
def no_changes():
    return Changes(int64(0), int64(0), int64(0))


@inline
def note_changed(windows, changes, clause, moved):
    """Appends a clause to the lists of what changed; moved are the literals that did: position, pixels."""
    windows.changed[changes.n_changed] = clause
    windows.repositioned[changes.n_repositioned] = clause
    windows.repainted[changes.n_repainted] = clause
    return Changes(
        changes.n_changed + (1 if moved[0] | moved[1] else 0),
        changes.n_repositioned + (1 if moved[0] else 0),
        changes.n_repainted + (1 if moved[1] else 0),
    )


@kernel
def refresh_windows(changes, includes, stride, windows, tables, layout):
    """Brings the windows of changed clauses up to date, one kind of work after the other.

    Clauses differ in what they need, so going clause by clause a CPU would keep guessing wrong.
    """
    keep_apart()
    for i in range(changes.n_repositioned):
        clause = int64(windows.repositioned[i])
        update_window(includes, clause * stride, windows, tables, layout, clause)
    for i in range(changes.n_repainted):
        clause = int64(windows.repainted[i])
        update_effective(includes, clause * stride, windows, tables, layout, clause)
    n_relisted = 0
    for i in range(changes.n_changed):
        clause = int64(windows.changed[i])
        width = windows.rectangle[clause] & ~windows.contradicts[clause]
        windows.width[clause] = width
        windows.relisted[n_relisted] = clause
        n_relisted += 1 if (windows.outdated[clause] != 0) & (width != NEVER) else 0
    for i in range(n_relisted):
        update_list(windows, tables, layout, int64(windows.relisted[i]))


@inline
def read_includes(states, includes, stride, n_words, clause):
    for w in range(n_words):
        includes[clause * stride + w] = top_bits(load_bytes(states, (clause * n_words + w) * 64))


@kernel
def read_windows(clauses, includes, windows, tables, layout):
    """Include bits and windows of all clauses, from their states; clauses are (number, stride of includes, states)."""
    n_clauses, stride, states = clauses
    changes = no_changes()
    for clause in range(n_clauses):
        read_includes(states, includes, stride, layout.n_words, clause)
        changes = note_changed(windows, changes, clause, (ONE, ONE))
    refresh_windows(changes, includes, stride, windows, tables, layout)
