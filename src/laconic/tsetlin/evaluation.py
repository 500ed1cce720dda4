"""Which clauses fire on a sample, and where: the inner loops of training and prediction.

A pixel literal over all patches of an image is one shifted copy of its rows (a bitmap); a clause is the AND of its
literals' bitmaps inside its window. No branch depends on what the image shows, because clause outputs cannot be
predicted and a wrong guess costs more than a few useless ANDs.
"""

from typing import Any

from numba import int64, uint8
from numba import uint64 as word

from laconic.tsetlin.agenda import LIST_KEYS, WIDTHS
from laconic.tsetlin.compiling import inline, kernel
from laconic.tsetlin.vectors import (
    advance,
    and4,
    and8,
    and_not4,
    any4,
    any8,
    as_bytes,
    follow,
    keep_apart,
    load4,
    load8,
    load_word,
    not8,
    or8,
    prefetch,
    shift_right8,
    store4,
    store8,
    store_word,
)
from laconic.tsetlin.windows import DOUBLE, HALF, NEVER, SINGLE, WIDE

SIFTED_GROUPS = 2  # of four literals, looked at in the first sweep


@inline
def draw_layer(rows, source, bitmaps, target, layout):
    """Bitmaps of the pixel literals of one layer of an image whose rows fit a lane: shifted rows, their negations."""
    last, lane = layout.lanes_per_bitmap - 8, 0
    while True:
        at = min(lane, last)
        bits = load8(rows, source + 8 * at)
        to = target + at
        for column in range(layout.patch_width):
            shifted = shift_right8(bits, word(column))
            store8(bitmaps, to, shifted)
            store8(bitmaps, layout.negated + to, not8(shifted))
            to += layout.lanes_per_bitmap
        lane += 8
        if lane >= layout.lanes_per_bitmap:
            break


@kernel
def draw_bitmaps(rows, image, bitmaps, layout):
    """Bitmaps of all pixel literals of an image."""
    keep_apart()
    layer_bytes, layer_lanes = layout.image_bytes // layout.layers, layout.patch_width * layout.lanes_per_bitmap
    for layer in range(layout.layers):
        draw_layer(rows, image + layer * layer_bytes, bitmaps, layer * layer_lanes, layout)


@kernel
def draw_wide_bitmaps(rows, image, bitmaps, layout):
    """The same of an image wider than 64, whose rows take several lanes."""
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
def prefetch_all(data, start, n_bytes):
    for line in range(start, start + n_bytes, 64):
        prefetch(data, line)


@kernel
def draw_and_prefetch(samples, sample, upcoming, bitmaps, layout):
    """Bitmaps of a sample, while asking for the next one, which no hardware foresees: samples come in random order.

    Piece by piece, because of more than some twenty requests at once the CPU forgets some.
    """
    keep_apart()
    layer_bytes, layer_lanes = layout.image_bytes // layout.layers, layout.patch_width * layout.lanes_per_bitmap
    image, next_image = sample * layout.image_bytes, upcoming * layout.image_bytes
    next_patches, piece = upcoming * layout.patch_image_bytes, layout.patch_image_bytes // layout.layers + 1
    if layout.is_wide:
        draw_wide_bitmaps(samples.rows, image, bitmaps, layout)
        prefetch_all(samples.rows, next_image, layout.image_bytes)
        prefetch_all(samples.patches, next_patches, layout.patch_image_bytes)
        return
    for layer in range(layout.layers):
        draw_layer(samples.rows, image + layer * layer_bytes, bitmaps, layer * layer_lanes, layout)
        prefetch_all(samples.rows, next_image + layer * layer_bytes, layer_bytes)
        prefetch_all(samples.patches, next_patches + layer * piece, piece)


@inline
def conjoin8(bitmaps, literals, patches):
    """Those of the patches in 8 lanes on which all literals of a list hold; lists come in groups of four."""
    lists, entry, end = literals
    while entry < end:
        for i in range(4):
            patches = and8(patches, load8(bitmaps, int64(lists[entry + i])))
        entry += 4
    return patches


@inline
def narrow(width, bitmaps, lane, n_lanes, literals, source, target):
    """Patches of a window from `source`, less those on which a literal fails, to `target`; -1 if any are left, else 0.

    The window starts at `lane` of n_lanes; literals are (lists, first entry, end), source and target (array, index).
    """
    lists, entry, end = literals
    (origin, at), (goal, to) = source, target
    first = as_bytes(advance(bitmaps, lane))
    if width == HALF:  # as conjoin8 with half the lanes
        half = load4(origin, at)
        while entry < end:
            for i in range(4):
                half = and4(half, load4(first, int64(lists[entry + i])))
            entry += 4
        store4(goal, to, half)
        return any4(half)
    if width == SINGLE:
        single = conjoin8(first, literals, load8(origin, at))
        store8(goal, to, single)
        return any8(single)
    if width == DOUBLE:  # both vectors in one pass through the list; the second one ends with the grid
        second = as_bytes(advance(bitmaps, min(lane + 8, n_lanes - 8)))
        one, two = load8(origin, at), load8(origin, at + 8)
        while entry < end:
            for i in range(4):
                literal = int64(lists[entry + i])
                one = and8(one, load8(first, literal))
                two = and8(two, load8(second, literal))
            entry += 4
        store8(goal, to, one)
        store8(goal, to + 8, two)
        return any8(or8(one, two))
    left = int64(0)
    for v in range(width - 1):  # none if nothing can match
        here = as_bytes(advance(bitmaps, min(lane + 8 * v, n_lanes - 8)))
        some = conjoin8(here, literals, load8(origin, at + 8 * v))
        store8(goal, to + 8 * v, some)
        left |= any8(some)
    return left


# Clauses whose windows have one width are evaluated in two sweeps without a branch that depends on the image. The first
# looks at a few literals of each clause, which is the end of half of them; the second one sees the survivors through.
@inline
def sift(width, stretch, scene):
    """Survivors among the clauses order[first:end], their patches in matches[start:]; how many."""
    scene = follow(scene)
    layout, space, windows = scene.layout, scene.space, scene.windows
    first, end, at = stretch
    alive, lanes = int64(0), 4 if width == HALF else 8 * (width - 1)
    for i in range(first, end):
        clause = int64(scene.agenda.order[i])
        if windows.width[clause] != width:  # since the last sort
            continue
        entry = clause * layout.list_capacity
        few = windows.lists, entry, entry + 4 * min(int64(windows.n_groups[clause]), SIFTED_GROUPS)
        mask = windows.masks, clause * layout.mask_lanes
        lane = int64(windows.first_lane[clause])
        left = narrow(width, space.bitmaps, lane, layout.n_lanes, few, mask, (space.matches, at))
        space.survivors[alive] = clause
        alive -= left
        at += lanes & left  # what did not survive is overwritten: a smaller working set
    return alive


@inline
def finish(width, alive, rows, scene, tally):
    """Outputs and matches of the survivors; the tally is (lanes of matches in use, two sums of votes)."""
    scene = follow(scene)
    layout, space, windows = scene.layout, scene.space, scene.windows
    matched, raised_sum, lowered_sum = tally
    at, lanes = matched, 4 if width == HALF else 8 * (width - 1)
    raised_votes, lowered_votes = advance(scene.bank.votes, rows[0]), advance(scene.bank.votes, rows[1])
    for i in range(alive):
        clause = int64(space.survivors[i])
        entry = clause * layout.list_capacity
        end = entry + 4 * int64(windows.n_groups[clause])
        others = windows.lists, entry + 4 * SIFTED_GROUPS, end
        source, target = (space.matches, at), (space.matches, matched)
        lane = int64(windows.first_lane[clause])
        fired = narrow(width, space.bitmaps, lane, layout.n_lanes, others, source, target)
        at += lanes
        space.match_at[clause] = matched
        matched += lanes & fired
        space.outputs[clause] = uint8(fired)
        raised_sum += int64(raised_votes[clause]) & fired
        lowered_sum += int64(lowered_votes[clause]) & fired
    return matched, raised_sum, lowered_sum


def make_evaluator(width: int) -> Any:
    """Both sweeps for one width, which is a constant to the compiler; each has the registers to itself."""

    @kernel
    def sift_width(stretch, scene):
        keep_apart()
        return sift(int64(width), stretch, scene)

    @kernel
    def finish_width(alive, rows, scene, tally):
        keep_apart()
        return finish(int64(width), alive, rows, scene, tally)

    return sift_width, finish_width


(sift_half, finish_half), (sift_single, finish_single), (sift_double, finish_double) = (
    make_evaluator(width) for width in (HALF, SINGLE, DOUBLE)
)


@kernel
def finish_others(stretch, rows, scene, tally):
    """Evaluates wide windows, and the clauses whose window changed its width since the last sort."""
    keep_apart()
    scene = follow(scene)
    layout, space, windows, agenda, votes = scene.layout, scene.space, scene.windows, scene.agenda, scene.bank.votes
    matched, raised_sum, lowered_sum = tally
    for i in range(stretch[0], stretch[1]):
        clause = int64(agenda.order[i])
        width, listed = min(windows.width[clause], WIDE), agenda.listed[clause] & WIDTHS
        if width == NEVER or (width != WIDE if i < stretch[2] else width == listed):
            continue  # listed elsewhere
        entry = clause * layout.list_capacity
        literals = windows.lists, entry, entry + 4 * int64(windows.n_groups[clause])
        mask = windows.masks, clause * layout.mask_lanes
        lane, target = int64(windows.first_lane[clause]), (space.matches, matched)
        fired = narrow(windows.width[clause], space.bitmaps, lane, layout.n_lanes, literals, mask, target)
        space.match_at[clause] = matched
        matched += layout.mask_lanes & fired
        space.outputs[clause] = uint8(fired)
        raised_sum += int64(votes[rows[0] + clause]) & fired
        lowered_sum += int64(votes[rows[1] + clause]) & fired
    return matched, raised_sum, lowered_sum


@kernel
def evaluate_windows(rows, scene, n_sorted, n_listed):
    """Outputs and matches of the clauses on the agenda, and their sums over two rows of the votes."""
    starts, zero = follow(scene).agenda.starts, int64(0)
    halves, singles, doubles = int64(starts[LIST_KEYS]), int64(starts[2 * LIST_KEYS]), int64(starts[3 * LIST_KEYS])
    tally = zero, zero, zero
    alive = sift_half((zero, halves, zero), scene)
    tally = finish_half(alive, rows, scene, tally)
    alive = sift_single((halves, singles, tally[0]), scene)
    tally = finish_single(alive, rows, scene, tally)
    alive = sift_double((singles, doubles, tally[0]), scene)
    tally = finish_double(alive, rows, scene, tally)
    tally = finish_others((doubles, n_listed, n_sorted), rows, scene, tally)
    return tally[1], tally[2]


@kernel
def sift_flat(sample, scene):
    """Flat clauses that hold where they failed last time: most fail there again, and are done with."""
    keep_apart()
    scene = follow(scene)
    bank, space, literals = scene.bank, scene.space, scene.samples.literals
    alive = int64(0)
    for clause in range(bank.n_clauses):
        at = int64(space.match_at[clause])
        missing = and_not4(load4(space.includes, clause * bank.stride + at), load4(literals, sample + at))
        space.survivors[alive] = clause
        alive += 1 + any4(missing)
    return alive


@kernel
def finish_flat(alive, rows, sample, scene):
    """Outputs of the survivors, and their sums over two rows of the votes."""
    keep_apart()
    scene = follow(scene)
    bank, space, literals, votes = scene.bank, scene.space, scene.samples.literals, scene.bank.votes
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
