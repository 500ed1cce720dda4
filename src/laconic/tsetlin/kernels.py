"""The training loop: one bank of clauses, one event after the other, exactly in the order a sequential machine would.

An event shows one sample to a bank: clauses that speak for the sample's class are *raised* (Type I feedback to clauses
with the right sign, Type II to the others), those of one other class *lowered*. Classes never touch each other's clauses,
so a multi-class machine trains class by class, each on its own events, on as many threads as one likes, with the same
result. A coalesced machine has a single bank and does both in one event.

`erase`, `recognise` and `reject` are the three kinds of feedback; tests/naive_tm.py says the same slowly.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import int64, uint8, uint16
from numba import uint64 as word
from numpy.typing import NDArray

from laconic.tsetlin.geometry import Geometry, aligned
from laconic.tsetlin.vectors import (
    add_where,
    and4,
    and8,
    and_not8,
    any4,
    any8,
    bare,
    bytes_at_most,
    halves_at_most,
    load4,
    load8,
    load_bytes,
    load_word,
    mask_and_not,
    mask_of,
    negative32,
    next_random,
    no_mask,
    not8,
    or8,
    popcount,
    prefetch,
    shift_right8,
    store8,
    store_bytes,
    subtract_where,
    top_bits,
    trailing_zeros,
    widen4,
)
from laconic.tsetlin.windows import (
    DOUBLE,
    HALF,
    LOW,
    NEVER,
    ONE,
    SINGLE,
    Agenda,
    Windows,
    inline,
    kernel,
    make_agenda,
    make_windows,
    read_includes,
    refresh_window,
    sort_agenda,
)

ODD = np.uint64(0xAAAAAAAA)  # multi-class: clauses with an odd index speak against their class
RESORT_EVERY = 4  # events between two sorts of the agenda; its order is a matter of speed only


class Samples(NamedTuple):
    """Packed data: images in two copies, or flat samples as literal words."""

    rows: NDArray[np.uint8]  # [image, layer, row]: bits of a row together, for bitmaps
    patches: NDArray[np.uint8]  # [image, row, column, layer]: bits of a patch together, for feedback
    literals: NDArray[np.uint64]  # flat: [sample, word], padded to whole vectors


class Events(NamedTuple):
    """Which sample raises and lowers which row of the weights; -1 for none."""

    count: int
    sample: NDArray[np.int32]
    raised: NDArray[np.int32]
    lowered: NDArray[np.int32]


class Bank(NamedTuple):
    n_clauses: int
    n_words: int
    stride: int  # words of a clause's include bits
    states: NDArray[np.uint8]  # [clause, slot]
    weights: NDArray[np.int32]  # [row, clause], rows padded to whole blocks of 32
    weight_stride: int
    random: NDArray[np.uint64]  # eight generators, and one more for what takes a single number per clause


class Feedback(NamedTuple):
    threshold: int  # T
    rate: float  # 256 / s: erase probability in units of a random byte
    boost: bool


class Workspace(NamedTuple):
    """Room for one bank at a time; one per thread."""

    includes: NDArray[np.uint64]  # [clause, word]
    outputs: NDArray[np.uint8]  # [clause] 255 where the clause fired
    bitmaps: NDArray[np.uint64]
    matches: NDArray[np.uint64]  # patches matched by the clauses that fired, one after the other
    match_at: NDArray[np.int64]  # [clause] where in matches
    changed: NDArray[np.int64]  # clauses whose include bits changed, with two flags
    cumulative: NDArray[np.uint64]
    literals: NDArray[np.uint64]


class Room(NamedTuple):
    workspace: Workspace
    windows: Windows
    agenda: Agenda


def make_room(geometry: Geometry, n_clauses: int, stride: int, *, is_flat: bool) -> Room:
    layout = geometry.layout
    n_windows = 0 if is_flat else n_clauses
    workspace = Workspace(
        includes=aligned(n_clauses * stride + 16, np.uint64),
        outputs=aligned(n_clauses + 64, np.uint8),
        bitmaps=aligned(0 if is_flat else geometry.bitmap_lanes + 64, np.uint64),
        matches=aligned((n_windows + 1) * layout.mask_lanes, np.uint64),
        match_at=np.zeros(n_clauses, np.int64),
        changed=np.zeros(2 * n_clauses + 1, np.int64),
        cumulative=aligned(layout.mask_lanes, np.uint64),
        literals=np.zeros(layout.n_words + 1, np.uint64),
    )
    return Room(workspace, make_windows(layout, n_windows, geometry.tables.offsets.dtype), make_agenda(n_windows))


# ---------------------------------------------------------------- evaluation
@inline
def draw_bitmaps(rows, image, bitmaps, layout):  # type: ignore[no-untyped-def]
    """Bitmaps of all pixel literals of an image whose rows fit a lane: shifted rows and their negations."""
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
def draw_wide_bitmaps(rows, image, bitmaps, layout):  # type: ignore[no-untyped-def]
    """The same for images wider than 64, whose rows take several lanes."""
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
def match_clause(bitmaps, windows, layout, clause, matches, at):  # type: ignore[no-untyped-def]
    """Stores the patches on which all literals of a clause hold; -1 if there are any, else 0."""
    width = windows.width[clause]
    lane = int64(windows.first_lane[clause])
    mask = clause * layout.mask_lanes
    entry = clause * layout.list_capacity
    end = entry + 4 * int64(windows.n_groups[clause])
    lists, masks = windows.lists, windows.masks
    if width == HALF:
        half = load4(masks, mask)
        while entry < end:
            half = and4(half, and4(load4(bitmaps, lane + int64(lists[entry])), load4(bitmaps, lane + int64(lists[entry + 1]))))
            entry += 2
            half = and4(half, and4(load4(bitmaps, lane + int64(lists[entry])), load4(bitmaps, lane + int64(lists[entry + 1]))))
            entry += 2
        store8(matches, at, widen4(half))
        return any4(half)
    if width == SINGLE:
        single = load8(masks, mask)
        while entry < end:
            for i in range(4):
                single = and8(single, load8(bitmaps, lane + int64(lists[entry + i])))
            entry += 4
        store8(matches, at, single)
        return any8(single)
    if width == DOUBLE:
        second = min(8, layout.n_lanes - 8 - lane)  # the second vector ends with the grid
        one, two = load8(masks, mask), load8(masks, mask + 8)
        while entry < end:
            for i in range(4):
                literal = lane + int64(lists[entry + i])
                one = and8(one, load8(bitmaps, literal))
                two = and8(two, load8(bitmaps, literal + second))
            entry += 4
        store8(matches, at, one)
        store8(matches, at + 8, two)
        return any8(or8(one, two))
    fired = int64(0)
    for v in range(width - 1):
        start = min(lane + 8 * v, layout.n_lanes - 8)
        some = load8(masks, mask + 8 * v)
        for i in range(entry, end):
            some = and8(some, load8(bitmaps, start + int64(lists[i])))
        store8(matches, at + 8 * v, some)
        fired |= any8(some)
    return fired


@inline
def match_flat(literals, sample, includes, clause, stride):  # type: ignore[no-untyped-def]
    """-1 if no included literal is false, else 0."""
    first = clause * stride
    for w in range(0, stride, 8):
        if any8(and_not8(load8(includes, first + w), load8(literals, sample + w))):
            return int64(0)
    return int64(-1)


# ---------------------------------------------------------------- a matching patch
@inline
def nth_set_bit(bits, n):  # type: ignore[no-untyped-def]
    """Position of the set bit with n set bits below it: halve the range six times, without branches."""
    place = word(0)
    for half in (32, 16, 8, 4, 2, 1):
        below = popcount(bits & ((ONE << word(half)) - ONE))
        skip = word(half) if n >= below else word(0)
        n -= below if n >= below else word(0)
        bits >>= skip
        place += skip
    return place


@inline
def pick_patch(matches, at, width, lane, layout, cumulative, chance):  # type: ignore[no-untyped-def]
    """A patch drawn uniformly from those a clause matched, by the upper half of a random word: row, column."""
    n_lanes = 8 * max(1, width - 1)
    total = word(0)
    for j in range(n_lanes):
        cumulative[j] = total
        total += popcount(matches[at + j])
    rank = ((chance >> word(32)) * total) >> word(32)
    j = -1
    for i in range(n_lanes):  # counting instead of searching: nothing to mispredict
        j += 1 if cumulative[i] <= rank else 0
    bit = int64(nth_set_bit(matches[at + j], rank - cumulative[j]))
    start = min(lane + (j & ~7), layout.n_lanes - 8) if width > SINGLE else lane
    lane = start + (j & 7)
    if layout.lanes_per_row == 1:
        bits_per_row = 64 // layout.rows_per_lane
        return lane * layout.rows_per_lane + bit // bits_per_row, bit % bits_per_row
    return lane // layout.lanes_per_row, lane % layout.lanes_per_row * 64 + bit


@inline
def read_patch(patches, image, row, column, tables, layout, literals):  # type: ignore[no-untyped-def]
    """Literal words of one patch, gathered from the pixel-major copy in pieces of up to 32 bits."""
    w, filled, gathered = 0, 0, word(0)
    run = layout.patch_width * layout.layers
    for line in range(layout.patch_height):
        base = image + (row + line) * layout.patch_row_bytes
        bit, left = column * layout.layers, run
        while left > 0:
            piece = min(left, 32)
            bits = load_word(patches, base + (bit >> 3)) >> word(bit & 7)
            gathered |= (bits & ((ONE << word(piece)) - ONE)) << word(filled)
            filled += piece
            bit += piece
            left -= piece
            if filled >= 32:
                literals[w] = (gathered & LOW) | ((gathered & LOW ^ LOW) << word(32))
                w += 1
                filled -= 32
                gathered >>= word(32)
    if filled:
        literals[w] = (gathered | ((gathered ^ LOW) << word(32))) & tables.pixels_only[w]
    for w in range(layout.position_word, layout.n_words):
        here = tables.row_literals[row * layout.n_words + w] | tables.column_literals[column * layout.n_words + w]
        literals[w] = here | literals[w] if w < layout.n_pixel_words else here


# ---------------------------------------------------------------- feedback
# Each returns (position literals whose inclusion changed, pixel literals likewise, generator state).
@inline
def erase(bank, includes, pixels, clause, limit, low, high):  # type: ignore[no-untyped-def]
    """Type I, clause false: each automaton steps towards exclusion with probability 1/s."""
    moved_position, moved_pixels = word(0), word(0)
    for w in range(bank.n_words):
        noise, low, high = next_random(low, high)
        at = (clause * bank.n_words + w) * 64
        states = subtract_where(load_bytes(bank.states, at), bytes_at_most(noise, limit))
        store_bytes(bank.states, at, states)
        now = top_bits(states)
        moved = now ^ includes[clause * bank.stride + w]
        includes[clause * bank.stride + w] = now
        moved_position |= moved & ~pixels[w]
        moved_pixels |= moved & pixels[w]
    return moved_position, moved_pixels, low, high


@inline
def recognise(bank, includes, pixels, clause, limit, low, high, literals, first, boost):  # type: ignore[no-untyped-def]
    """Type I, clause true: true literals step towards inclusion (boosted: surely), false ones away with 1/s."""
    moved_position, moved_pixels = word(0), word(0)
    for w in range(bank.n_words):
        noise, low, high = next_random(low, high)
        forgotten = bytes_at_most(noise, uint8(limit - 1)) if limit > 0 else no_mask()
        true = mask_of(literals[first + w])
        at = (clause * bank.n_words + w) * 64
        states = load_bytes(bank.states, at)
        states = add_where(states, true) if boost else add_where(states, mask_and_not(true, forgotten))
        states = subtract_where(states, mask_and_not(forgotten, true))
        store_bytes(bank.states, at, states)
        now = top_bits(states)
        moved = now ^ includes[clause * bank.stride + w]
        includes[clause * bank.stride + w] = now
        moved_position |= moved & ~pixels[w]
        moved_pixels |= moved & pixels[w]
    return moved_position, moved_pixels, low, high


@inline
def reject(bank, includes, pixels, valid, clause, literals, first):  # type: ignore[no-untyped-def]
    """Type II, clause true: excluded false literals step towards inclusion."""
    moved_position, moved_pixels = word(0), word(0)
    for w in range(bank.n_words):
        before = includes[clause * bank.stride + w]
        at = (clause * bank.n_words + w) * 64
        states = add_where(load_bytes(bank.states, at), mask_of(~literals[first + w] & ~before & valid[w]))
        store_bytes(bank.states, at, states)
        now = top_bits(states)
        includes[clause * bank.stride + w] = now
        moved_position |= (now ^ before) & ~pixels[w]
        moved_pixels |= (now ^ before) & pixels[w]
    return moved_position, moved_pixels


@inline
def scramble(counter):  # type: ignore[no-untyped-def]
    """splitmix64: a random word from a counter."""
    z = (counter ^ (counter >> word(30))) * word(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> word(27))) * word(0x94D049BB133111EB)
    return z ^ (z >> word(31))


COUNTER_STEP = np.uint64(0x9E3779B97F4A7C15)


def make_trainer(is_flat: bool, is_coalesced: bool) -> Any:
    """The training kernel; the two flags are constants to the compiler."""

    @kernel
    def train(samples, events, bank, feedback, geometry, room):  # type: ignore[no-untyped-def]
        samples, events, bank = bare(samples), bare(events), bare(bank)
        layout, tables = bare(geometry)
        space, windows, agenda = bare(room)
        includes, outputs = space.includes, space.outputs
        n_clauses, threshold = bank.n_clauses, feedback.threshold
        low, high, counter = load8(bank.random, 0), load8(bank.random, 8), bank.random[16]
        # Probability 1/s as a byte limit that is rounded at random, clause by clause.
        whole = int64(feedback.rate)
        fraction = word((feedback.rate - whole) * 4294967296.0)

        for clause in range(n_clauses):
            outputs[clause] = 0  # clauses that can't match are never evaluated
            read_includes(bank.states, includes, bank.stride, bank.n_words, clause)
            if not is_flat:
                refresh_window(ONE, ONE, includes, clause * bank.stride, windows, tables, layout, clause)
        if not is_flat:
            n_listed, n_moved, since_sort = sort_agenda(agenda, windows, n_clauses), 0, 0

        for event in range(events.count):
            sample = int64(events.sample[event])
            raised, lowered = int64(events.raised[event]), int64(events.lowered[event])
            raised_row, lowered_row = raised * bank.weight_stride, lowered * bank.weight_stride
            row = max(raised, lowered) * bank.weight_stride

            # --- which clauses fire, and how they vote
            votes, votes_lowered = int64(0), int64(0)
            if is_flat:
                first_literal = sample * bank.stride
                for clause in range(n_clauses):
                    fired = match_flat(samples.literals, first_literal, includes, clause, bank.stride)
                    outputs[clause] = uint8(fired)
                    if is_coalesced:
                        votes += int64(bank.weights[raised_row + clause]) & fired
                        votes_lowered += int64(bank.weights[lowered_row + clause]) & fired
                    else:
                        against = -(clause & 1)
                        votes += ((int64(bank.weights[row + clause]) ^ against) - against) & fired
            else:
                if layout.is_wide:
                    draw_wide_bitmaps(samples.rows, sample * layout.image_bytes, space.bitmaps, layout)
                else:
                    draw_bitmaps(samples.rows, sample * layout.image_bytes, space.bitmaps, layout)
                if event + 1 < events.count:
                    upcoming = int64(events.sample[event + 1]) * layout.image_bytes
                    for line in range(0, layout.image_bytes, 64):
                        prefetch(samples.rows, upcoming + line)
                matched = int64(0)
                for i in range(n_listed):
                    clause = int64(agenda.order[i])
                    if windows.width[clause] == NEVER:  # since the last sort
                        continue
                    fired = match_clause(space.bitmaps, windows, layout, clause, space.matches, matched)
                    space.match_at[clause] = matched
                    matched += layout.mask_lanes & fired  # what did not fire is overwritten: a smaller working set
                    outputs[clause] = uint8(fired)
                    if is_coalesced:
                        votes += int64(bank.weights[raised_row + clause]) & fired
                        votes_lowered += int64(bank.weights[lowered_row + clause]) & fired
                    else:
                        against = -(clause & 1)
                        votes += ((int64(bank.weights[row + clause]) ^ against) - against) & fired

            # --- feedback: first to the sample's class, then to the other one, on the outputs seen before either
            n_changed = 0
            for is_other in range(2):
                if (lowered if is_other else raised) < 0:
                    continue
                if is_coalesced:
                    row = lowered_row if is_other else raised_row
                    votes = votes_lowered if is_other else votes
                clamped = min(max(votes, -threshold), threshold)
                doubt = threshold + clamped if is_other else threshold - clamped
                chance = (doubt * 65536) // (2 * threshold)
                if chance == 0:
                    continue
                for block in range(0, n_clauses, 32):
                    noise, low, high = next_random(low, high)
                    selected = halves_at_most(noise, uint16(chance - 1))
                    if n_clauses - block < 32:
                        selected &= (ONE << word(n_clauses - block)) - ONE
                    negative = negative32(bank.weights, row + block) if is_coalesced else ODD
                    agrees = negative if is_other else ~negative
                    fired = top_bits(load_bytes(outputs, block))
                    waiting = selected & agrees & ~fired
                    while waiting:
                        clause = block + int64(trailing_zeros(waiting))
                        waiting &= waiting - ONE
                        counter += COUNTER_STEP
                        limit = whole + (1 if (scramble(counter) & LOW) < fraction else 0)
                        if limit > 0:
                            position, pixels, low, high = erase(
                                bank, includes, tables.pixels, clause, uint8(limit - 1), low, high
                            )
                            if not is_flat:
                                space.changed[n_changed] = clause * 4 + (1 if position else 0) + (2 if pixels else 0)
                                n_changed += 1 if position | pixels else 0
                    waiting = selected & fired
                    while waiting:
                        bit = trailing_zeros(waiting)
                        clause = block + int64(bit)
                        waiting &= waiting - ONE
                        counter += COUNTER_STEP
                        random = scramble(counter)
                        if is_flat:
                            literals, first = samples.literals, first_literal
                        else:
                            literals, first = space.literals, 0
                            patch_row, patch_column = pick_patch(
                                space.matches,
                                space.match_at[clause],
                                int64(windows.width[clause]),
                                int64(windows.first_lane[clause]),
                                layout,
                                space.cumulative,
                                random,
                            )
                            read_patch(
                                samples.patches,
                                sample * layout.patch_image_bytes,
                                patch_row,
                                patch_column,
                                tables,
                                layout,
                                literals,
                            )
                        weight = row + clause
                        if (agrees >> bit) & ONE:
                            limit = whole + (1 if (random & LOW) < fraction else 0)
                            position, pixels, low, high = recognise(
                                bank, includes, tables.pixels, clause, limit, low, high, literals, first, feedback.boost
                            )
                            if is_coalesced:
                                bank.weights[weight] += -1 if is_other else 1
                            else:
                                bank.weights[weight] += 1
                        else:
                            position, pixels = reject(bank, includes, tables.pixels, tables.valid, clause, literals, first)
                            if is_coalesced:
                                bank.weights[weight] += -1 if is_other else 1
                            elif bank.weights[weight] > 1:
                                bank.weights[weight] -= 1
                        if not is_flat:
                            space.changed[n_changed] = clause * 4 + (1 if position else 0) + (2 if pixels else 0)
                            n_changed += 1 if position | pixels else 0

            # --- windows of the changed clauses, and the agenda
            if not is_flat:
                for i in range(n_changed):
                    clause, flags = space.changed[i] >> 2, space.changed[i]
                    if refresh_window(
                        flags & 1, flags & 2, includes, clause * bank.stride, windows, tables, layout, clause
                    ):
                        n_moved += 1
                        if windows.width[clause] == NEVER:
                            outputs[clause] = 0
                        elif agenda.listed[clause] == 0:
                            agenda.order[n_listed] = clause
                            agenda.listed[clause] = 1
                            n_listed += 1
                since_sort += 1
                if n_moved and since_sort >= RESORT_EVERY:
                    n_listed, n_moved, since_sort = sort_agenda(agenda, windows, n_clauses), 0, 0

        store8(bank.random, 0, low)
        store8(bank.random, 8, high)
        bank.random[16] = counter

    return train
