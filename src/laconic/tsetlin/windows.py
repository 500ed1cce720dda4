"""What training keeps per clause beside its automata, so that a clause is judged on a whole image in a few loads.

window   position literals never become bitmaps: together they are a rectangle of patch positions, kept as its first
         lane, its width in lanes and a mask.
list     where the bitmaps of a clause's pixel literals start; of nested thermometer levels only the tightest counts.
         Padded to whole groups of four by repeating the first entry, and rebuilt only when the set changed.
agenda   the clauses that can match at all, sorted by window width and list length: neighbours then take the same
         branches and the loop over clauses is hardly ever mispredicted.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import int64
from numba import uint64 as word
from numpy.typing import NDArray

from laconic.tsetlin.compiling import inline, kernel
from laconic.tsetlin.geometry import Layout, aligned
from laconic.tsetlin.vectors import (
    and8,
    and_not8,
    any8,
    keep_apart,
    leading_zeros,
    load8,
    load_bytes,
    low_half8,
    or8,
    popcount,
    shift_left8,
    shift_right8,
    splat8,
    store8,
    top_bits,
    trailing_zeros,
    xor8,
)

LOW = np.uint64(0xFFFFFFFF)  # the features of a word
ONE = np.uint64(1)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)

# window widths: 0 nothing can match, 1 half a vector (4 lanes), w > 1: w - 1 vectors of 8 lanes
NEVER, HALF, SINGLE, DOUBLE, WIDE = 0, 1, 2, 3, 4
WIDTHS, STRAY = 7, 8  # of Agenda.listed: the width under which a clause is listed (WIDE and more: WIDE), and a flag
LIST_KEYS = 19  # lists of 18 groups and more sort together
N_KEYS = 1 + 4 * LIST_KEYS


class Windows(NamedTuple):
    """Per clause; see the top of this file."""

    first_lane: NDArray[np.int32]
    width: NDArray[np.int32]
    rectangle: NDArray[np.int32]  # width by the position literals alone
    contradicts: NDArray[np.int32]  # pixel literals exclude each other
    outdated: NDArray[np.int32]  # the list lags behind the effective literals
    n_groups: NDArray[np.int32]  # of four list entries
    key: NDArray[np.int32]  # place in the agenda; 0 = not on it
    masks: NDArray[np.uint64]
    effective: NDArray[np.uint64]  # words of the literals that count
    lists: NDArray[Any]


class Agenda(NamedTuple):
    order: NDArray[np.int32]  # clauses on the agenda, sorted; then those whose window changed width since (strays)
    listed: NDArray[np.uint8]  # per clause: under which width it was sorted, and whether it is a stray
    starts: NDArray[np.int32]  # per key


def make_windows(layout: Layout, n_clauses: int, offset_dtype: Any) -> Windows:
    n = n_clauses
    first_lane, width, rectangle, contradicts, outdated, n_groups, key = np.zeros((7, n), np.int32)
    masks, effective = aligned(n * layout.mask_lanes, np.uint64), aligned(n * layout.effective_words, np.uint64)
    lists = np.zeros(n * layout.list_capacity, offset_dtype)
    return Windows(first_lane, width, rectangle, contradicts, outdated, n_groups, key, masks, effective, lists)


def make_agenda(n_clauses: int) -> Agenda:
    return Agenda(np.zeros(2 * n_clauses + 1, np.int32), np.zeros(n_clauses, np.uint8), np.zeros(N_KEYS, np.int32))


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


@kernel
def update_window(includes, first_word, windows, tables, layout, clause):
    """Position literals → rectangle, first lane and mask."""
    top, bottom = _interval(includes, first_word, layout.n_pixels, layout.n_rows - 1)
    left, right = _interval(includes, first_word, layout.n_pixels + layout.n_rows - 1, layout.n_columns - 1)
    if top > bottom or left > right:
        windows.rectangle[clause] = NEVER
        return
    mask = clause * layout.mask_lanes
    per_row, last_start = layout.lanes_per_row, layout.n_lanes - 8
    first = top // layout.rows_per_lane * per_row
    last = bottom // layout.rows_per_lane * per_row + per_row - 1
    vectors = (last - first + 8) >> 3
    start = max(0, min(first, layout.n_lanes - 8 * vectors))
    width = vectors + 1
    if per_row == 1:
        columns = _column_mask(left, right)
        bits = 64 // layout.rows_per_lane
        while bits < 64:
            columns |= columns << word(bits)
            bits *= 2
        if last - first < 4:
            start, width = min(first, layout.n_lanes - 4), HALF
            rows = and8(
                load8(tables.rows_from, top * layout.n_lanes + start),
                load8(tables.rows_to, bottom * layout.n_lanes + start),
            )
            store8(windows.masks, mask, low_half8(and8(rows, splat8(columns))))
        else:
            for v in range(vectors):
                # the last vector is moved back to end with the grid; its overlap with the one before is masked out
                lane = min(start + 8 * v, last_start)
                from_row = max(top, (start + 8 * v) * layout.rows_per_lane) if v else top
                rows = and8(
                    load8(tables.rows_from, from_row * layout.n_lanes + lane),
                    load8(tables.rows_to, bottom * layout.n_lanes + lane),
                )
                store8(windows.masks, mask + 8 * v, and8(rows, splat8(columns)))
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
    windows.rectangle[clause] = width


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


@kernel
def update_list(windows, tables, layout, clause):
    start = clause * layout.list_capacity
    entry = start
    lists, offsets = windows.lists, tables.offsets
    for w in range(layout.n_pixel_words):
        bits = windows.effective[clause * layout.effective_words + w]
        end = entry + int64(popcount(bits))
        slot = w * 64
        while True:  # four stores without a branch; one too many is overwritten by the next word
            for _ in range(4):
                lists[entry] = offsets[slot + int64(trailing_zeros(bits))]
                bits &= bits - ONE
                entry += 1
            if bits == 0:
                break
        entry = end
    for i in range(3):
        lists[entry + i] = lists[start]
    windows.n_groups[clause] = (entry - start + 3) >> 2
    windows.outdated[clause] = 0


@inline
def refresh_window(position_changed, pixels_changed, includes, first_word, windows, tables, layout, clause):
    """Brings the window of a clause up to date; true if its place in the agenda moved."""
    if position_changed:
        update_window(includes, first_word, windows, tables, layout, clause)
    if pixels_changed:
        update_effective(includes, first_word, windows, tables, layout, clause)
    width = NEVER if windows.contradicts[clause] else windows.rectangle[clause]
    windows.width[clause] = width
    key = 0
    if width != NEVER:
        if windows.outdated[clause]:
            update_list(windows, tables, layout, clause)
        key = 1 + (min(width, WIDE) - 1) * LIST_KEYS + min(windows.n_groups[clause], LIST_KEYS - 1)
    moved = windows.key[clause] != key
    windows.key[clause] = key
    return moved


@inline
def read_includes(states, includes, stride, n_words, clause):
    for w in range(n_words):
        includes[clause * stride + w] = top_bits(load_bytes(states, (clause * n_words + w) * 64))


@kernel
def read_windows(clauses, includes, windows, tables, layout):
    """Include bits and windows of all clauses, from their states; clauses are (number, stride of includes, states)."""
    keep_apart()
    n_clauses, stride, states = clauses
    for clause in range(n_clauses):
        read_includes(states, includes, stride, layout.n_words, clause)
        refresh_window(int64(1), int64(1), includes, clause * stride, windows, tables, layout, clause)


@inline
def sort_agenda(agenda, windows, n_clauses):
    """Counting sort by key; the number of clauses on the agenda."""
    order, listed, starts = agenda.order, agenda.listed, agenda.starts
    for key in range(N_KEYS):
        starts[key] = 0
    for clause in range(n_clauses):
        starts[windows.key[clause]] += 1
    total = 0
    for key in range(1, N_KEYS):
        count = starts[key]
        starts[key] = total
        total += count
    starts[0] = n_clauses  # clauses that never match go behind the agenda
    for clause in range(n_clauses):
        key = windows.key[clause]
        order[starts[key]] = clause
        starts[key] += 1
        listed[clause] = min(windows.width[clause], WIDE)
    return int64(total)
