"""Which clauses fire on a sample, and where: the inner loops of training and prediction.

A pixel literal over all patches of an image is one shifted copy of its rows (a bitmap); a clause is the AND of its
literals' bitmaps inside its window. No branch depends on what the image shows, because clause outputs cannot be
predicted and a wrong guess costs more than a few useless ANDs.
"""

from typing import Any

from numba import int64, uint8
from numba import uint64 as word

from laconic.tsetlin.vectors import (
    advance,
    and4,
    and8,
    and_not4,
    any4,
    any8,
    keep_apart,
    load4,
    load8,
    load_word,
    not8,
    or8,
    shift_right8,
    store4,
    store8,
    store_word,
)
from laconic.tsetlin.windows import (
    DOUBLE,
    HALF,
    LIST_KEYS,
    NEVER,
    SINGLE,
    WIDE,
    WIDTHS,
    inline,
    kernel,
)

SIFTED_GROUPS = 2  # of four literals, looked at in the first sweep


@kernel
def draw_bitmaps(rows, image, bitmaps, layout):
    """Bitmaps of all pixel literals of an image whose rows fit a lane: shifted rows and their negations."""
    keep_apart()
    element = 8 // layout.rows_per_lane
    step = layout.rows_per_lane * layout.lanes_per_bitmap
    last = layout.lanes_per_bitmap - 8
    for layer in range(layout.layers):
        for phase in range(layout.rows_per_lane):
            source = image + (layer * layout.rows_per_layer + phase) * element
            target = (layer * layout.patch_width * layout.rows_per_lane + phase) * layout.lanes_per_bitmap
            lane = 0
            while True:
                at = min(lane, last)
                bits = load8(rows, source + 8 * at)
                to = target + at
                for column in range(layout.patch_width):
                    shifted = shift_right8(bits, word(column))
                    store8(bitmaps, to, shifted)
                    store8(bitmaps, layout.negated + to, not8(shifted))
                    to += step
                lane += 8
                if lane >= layout.lanes_per_bitmap:
                    break


@kernel
def draw_wide_bitmaps(rows, image, bitmaps, layout):
    """The same for images wider than 64, whose rows take several lanes."""
    keep_apart()
    words_per_row = layout.image_bytes // (layout.layers * layout.height * 8)
    target = 0
    for layer in range(layout.layers):
        for column in range(layout.patch_width):
            shift = word(column & 63)
            lane = target
            for row in range(layout.height):
                source = image + ((layer * layout.height + row) * words_per_row + (column >> 6)) * 8
                for _ in range(layout.lanes_per_row):
                    bits = load_word(rows, source) >> shift
                    source += 8
                    if shift:
                        bits |= load_word(rows, source) << (word(64) - shift)
                    bitmaps[lane] = bits
                    bitmaps[layout.negated + lane] = ~bits
                    lane += 1
            target += layout.lanes_per_bitmap


@inline
def conjoin4(bitmaps, lane, lists, entry, end, patches):
    """The patches, of these in 4 lanes, on which all literals of a list hold; lists come in groups of four."""
    while entry < end:
        for i in range(4):
            patches = and4(patches, load4(bitmaps, lane + int64(lists[entry + i])))
        entry += 4
    return patches


@inline
def conjoin8(bitmaps, lane, lists, entry, end, patches):
    while entry < end:
        for i in range(4):
            patches = and8(patches, load8(bitmaps, lane + int64(lists[entry + i])))
        entry += 4
    return patches


@inline
def conjoin16(bitmaps, lane, second, lists, entry, end, patches, more):
    """Two vectors at once, the second one starting `second` lanes after the first."""
    while entry < end:
        for i in range(4):
            literal = lane + int64(lists[entry + i])
            patches = and8(patches, load8(bitmaps, literal))
            more = and8(more, load8(bitmaps, literal + second))
        entry += 4
    return patches, more


@inline
def match_clause(bitmaps, windows, layout, clause, matches, at):
    """Stores the patches on which all literals of a clause hold; -1 if there are any, else 0."""
    width = windows.width[clause]
    lane = int64(windows.first_lane[clause])
    mask = clause * layout.mask_lanes
    entry = clause * layout.list_capacity
    end = entry + 4 * int64(windows.n_groups[clause])
    lists, masks = windows.lists, windows.masks
    if width == HALF:
        half = conjoin4(bitmaps, lane, lists, entry, end, load4(masks, mask))
        store4(matches, at, half)
        return any4(half)
    if width == SINGLE:
        single = conjoin8(bitmaps, lane, lists, entry, end, load8(masks, mask))
        store8(matches, at, single)
        return any8(single)
    if width == DOUBLE:
        second = min(8, layout.n_lanes - 8 - lane)  # the second vector ends with the grid
        one, two = conjoin16(bitmaps, lane, second, lists, entry, end, load8(masks, mask), load8(masks, mask + 8))
        store8(matches, at, one)
        store8(matches, at + 8, two)
        return any8(or8(one, two))
    fired = int64(0)
    for v in range(width - 1):  # none if nothing can match
        start = min(lane + 8 * v, layout.n_lanes - 8)
        some = conjoin8(bitmaps, start, lists, entry, end, load8(masks, mask + 8 * v))
        store8(matches, at + 8 * v, some)
        fired |= any8(some)
    return fired


def make_evaluator(width: int) -> Any:
    """Evaluates the clauses whose windows have one width, in two sweeps without a branch that depends on the image.

    The first sweep looks at a few literals of each clause, which is the end of half of them; the second one sees the
    survivors through. Each is a function of its own, to have the registers to itself.
    """
    lanes = 4 if width == HALF else 8 * (width - 1)

    @kernel
    def sift(stretch, layout, space, windows, order):
        keep_apart()
        bitmaps, matches, survivors, lists, masks = (
            space.bitmaps,
            space.matches,
            space.survivors,
            windows.lists,
            windows.masks,
        )
        alive, at = int64(0), stretch[2]
        for i in range(stretch[0], stretch[1]):
            clause = int64(order[i])
            if windows.width[clause] != width:  # since the last sort
                continue
            lane = int64(windows.first_lane[clause])
            entry = clause * layout.list_capacity
            end = entry + 4 * min(int64(windows.n_groups[clause]), SIFTED_GROUPS)
            mask = clause * layout.mask_lanes
            if width == HALF:
                half = conjoin4(bitmaps, lane, lists, entry, end, load4(masks, mask))
                store4(matches, at, half)
                fired = any4(half)
            elif width == SINGLE:
                single = conjoin8(bitmaps, lane, lists, entry, end, load8(masks, mask))
                store8(matches, at, single)
                fired = any8(single)
            else:
                second = min(8, layout.n_lanes - 8 - lane)
                one, two = load8(masks, mask), load8(masks, mask + 8)
                one, two = conjoin16(bitmaps, lane, second, lists, entry, end, one, two)
                store8(matches, at, one)
                store8(matches, at + 8, two)
                fired = any8(or8(one, two))
            survivors[alive] = clause
            alive -= fired
            at += lanes & fired
        return alive

    @kernel
    def finish(alive, votes, rows, layout, space, windows, tally):
        keep_apart()
        matched, raised_sum, lowered_sum = tally
        at = matched
        bitmaps, matches, lists = space.bitmaps, space.matches, windows.lists
        raised_votes, lowered_votes = advance(votes, rows[0]), advance(votes, rows[1])
        for i in range(alive):
            clause = int64(space.survivors[i])
            lane = int64(windows.first_lane[clause])
            entry = clause * layout.list_capacity
            end = entry + 4 * int64(windows.n_groups[clause])
            entry += 4 * SIFTED_GROUPS
            if width == HALF:
                half = conjoin4(bitmaps, lane, lists, entry, end, load4(matches, at))
                store4(matches, matched, half)
                fired = any4(half)
            elif width == SINGLE:
                single = conjoin8(bitmaps, lane, lists, entry, end, load8(matches, at))
                store8(matches, matched, single)
                fired = any8(single)
            else:
                second = min(8, layout.n_lanes - 8 - lane)
                one, two = load8(matches, at), load8(matches, at + 8)
                one, two = conjoin16(bitmaps, lane, second, lists, entry, end, one, two)
                store8(matches, matched, one)
                store8(matches, matched + 8, two)
                fired = any8(or8(one, two))
            at += lanes
            space.match_at[clause] = matched
            matched += lanes & fired  # what did not fire is overwritten: a smaller working set
            space.outputs[clause] = uint8(fired)
            raised_sum += int64(raised_votes[clause]) & fired
            lowered_sum += int64(lowered_votes[clause]) & fired
        return matched, raised_sum, lowered_sum

    return sift, finish


(sift_half, finish_half), (sift_single, finish_single), (sift_double, finish_double) = (
    make_evaluator(width) for width in (HALF, SINGLE, DOUBLE)
)


@kernel
def finish_others(stretch, votes, rows, layout, space, windows, agenda, tally):
    """Evaluates wide windows, and the clauses whose window changed its width since the last sort."""
    keep_apart()
    matched, raised_sum, lowered_sum = tally
    for i in range(stretch[0], stretch[1]):
        clause = int64(agenda.order[i])
        width, listed = min(windows.width[clause], WIDE), agenda.listed[clause] & WIDTHS
        if width == NEVER or (width != WIDE if i < stretch[2] else width == listed):
            continue  # listed elsewhere
        fired = match_clause(space.bitmaps, windows, layout, clause, space.matches, matched)
        space.match_at[clause] = matched
        matched += layout.mask_lanes & fired
        space.outputs[clause] = uint8(fired)
        raised_sum += int64(votes[rows[0] + clause]) & fired
        lowered_sum += int64(votes[rows[1] + clause]) & fired
    return matched, raised_sum, lowered_sum


@kernel
def evaluate_windows(bank, rows, layout, space, windows, agenda, n_sorted, n_listed):
    """Outputs and matches of the clauses on the agenda, and their sums over two rows of the votes."""
    starts, order, votes, zero = agenda.starts, agenda.order, bank.votes, int64(0)
    halves, singles, doubles = int64(starts[LIST_KEYS]), int64(starts[2 * LIST_KEYS]), int64(starts[3 * LIST_KEYS])
    tally = zero, zero, zero
    alive = sift_half((zero, halves, zero), layout, space, windows, order)
    tally = finish_half(alive, votes, rows, layout, space, windows, tally)
    alive = sift_single((halves, singles, tally[0]), layout, space, windows, order)
    tally = finish_single(alive, votes, rows, layout, space, windows, tally)
    alive = sift_double((singles, doubles, tally[0]), layout, space, windows, order)
    tally = finish_double(alive, votes, rows, layout, space, windows, tally)
    tally = finish_others((doubles, n_listed, n_sorted), votes, rows, layout, space, windows, agenda, tally)
    return tally[1], tally[2]


@kernel
def sift_flat(bank, literals, sample, space):
    """Flat clauses that hold where they failed last time: most fail there again, and are done with."""
    keep_apart()
    alive = int64(0)
    for clause in range(bank.n_clauses):
        at = int64(space.match_at[clause])
        missing = and_not4(load4(space.includes, clause * bank.stride + at), load4(literals, sample + at))
        space.survivors[alive] = clause
        alive += 1 + any4(missing)
    return alive


@kernel
def finish_flat(alive, votes, rows, bank, literals, sample, space):
    """Outputs of the survivors, and their sums over two rows of the votes."""
    keep_apart()
    raised_sum, lowered_sum = int64(0), int64(0)
    for i in range(alive):
        clause = int64(space.survivors[i])
        first, failed, fired = clause * bank.stride, int64(space.match_at[clause]), int64(-1)
        for w in range(0, bank.stride, 4):
            missing = any4(and_not4(load4(space.includes, first + w), load4(literals, sample + w)))
            fired &= ~missing
            failed = w if missing else failed
        space.match_at[clause] = failed
        space.outputs[clause] = uint8(fired)
        raised_sum += int64(votes[rows[0] + clause]) & fired
        lowered_sum += int64(votes[rows[1] + clause]) & fired
    return raised_sum, lowered_sum


@inline
def clear_outputs(outputs, n_clauses):
    for clause in range(0, n_clauses, 8):
        store_word(outputs, clause, word(0))
