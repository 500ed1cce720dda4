"""The training loop: one bank of clauses, one event after the other, exactly in the order a sequential machine would.

An event shows one sample to a bank: the votes of the sample's class are *raised* (Type I feedback to clauses with the
right sign, Type II to the others), those of one other class *lowered*. Classes never touch each other's clauses, so a
multi-class machine trains class by class, each on its own events, on as many threads as one likes, with the same
result. A coalesced machine has a single bank and does both in one event.

`erase`, `recognise` and `reject` are the three kinds of feedback; tests/naive_tm.py says the same slowly.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import int64, uint8, uint16
from numba import uint64 as word
from numpy.typing import NDArray

from laconic.tsetlin.compiling import entry_point, inline, kernel
from laconic.tsetlin.evaluation import (
    clear_outputs,
    draw_bitmaps,
    draw_wide_bitmaps,
    evaluate_windows,
    finish_flat,
    sift_flat,
)
from laconic.tsetlin.geometry import Geometry, Layout, Tables, aligned
from laconic.tsetlin.vectors import (
    add_where,
    advance,
    bare,
    bytes_at_most,
    every_byte,
    follow,
    halves_at_most,
    keep_apart,
    load8,
    load_bytes,
    load_word,
    mask_and,
    mask_and_not,
    mask_of,
    negative32,
    next_random,
    popcount,
    prefetch,
    refer,
    store8,
    store_bytes,
    subtract_where,
    top_bits,
    trailing_zeros,
)
from laconic.tsetlin.windows import (
    HALF,
    LOW,
    NEVER,
    ONE,
    SINGLE,
    STRAY,
    WIDE,
    WIDTHS,
    Agenda,
    Windows,
    make_agenda,
    make_windows,
    read_includes,
    read_windows,
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
    """Bank by bank: which sample raises and lowers which row of its votes; -1 for none."""

    starts: NDArray[np.int64]  # [bank + 1] where the events of a bank begin
    sample: NDArray[np.int32]
    raised: NDArray[np.int32]
    lowered: NDArray[np.int32]
    sums: NDArray[
        np.int32
    ]  # [event, 2] filled in: the votes that the sample met, of the row raised and of that lowered


class Bank(NamedTuple):
    """One bank, or several that follow each other in memory."""

    n_clauses: int
    n_words: int
    stride: int  # words of a clause's include bits
    states: NDArray[np.uint8]  # [clause, slot]
    votes: NDArray[np.int32]  # [row, clause] signed weights, rows padded to whole blocks of 32
    votes_stride: int
    n_rows: int  # of votes
    random: NDArray[np.uint64]  # eight generators, and one more for what takes a single number per clause


class Feedback(NamedTuple):
    threshold: int  # T
    rate: float  # 256 / s: erase probability in units of a random byte
    boost: bool
    signs_fixed: bool  # odd clauses always speak against (multi-class), or each as its vote says (coalesced)


class Workspace(NamedTuple):
    """Room for one bank at a time; one per thread."""

    includes: NDArray[np.uint64]  # [clause, word]
    outputs: NDArray[np.uint8]  # [clause] 255 where the clause fired
    bitmaps: NDArray[np.uint64]
    matches: NDArray[np.uint64]  # patches matched by the clauses that fired, one after the other
    match_at: NDArray[np.int64]  # [clause] where in matches; flat: the word at which it last failed
    survivors: NDArray[np.int32]
    changed: NDArray[np.int64]  # clauses whose include bits changed, with two flags
    cumulative: NDArray[np.uint64]
    literals: NDArray[np.uint64]


class Room(NamedTuple):
    workspace: Workspace
    windows: Windows
    agenda: Agenda


class Scene(NamedTuple):
    """All that an event touches, arrays as bare pointers; handed on by reference."""

    samples: Samples
    bank: Bank
    layout: Layout
    tables: Tables
    space: Workspace
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
        survivors=np.zeros(n_clauses + 1, np.int32),
        changed=np.zeros(2 * n_clauses + 1, np.int64),
        cumulative=aligned(layout.mask_lanes, np.uint64),
        literals=np.zeros(layout.n_words + 1, np.uint64),
    )
    return Room(workspace, make_windows(layout, n_windows, geometry.tables.offsets.dtype), make_agenda(n_windows))


# ---------------------------------------------------------------- a matching patch
@inline
def nth_set_bit(bits, n):
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
def pick_patch(matches, at, width, lane, layout, cumulative, chance):
    """A patch drawn uniformly from those a clause matched, by the upper half of a random word: row, column."""
    n_lanes = 4 if width == HALF else 8 * (width - 1)
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
def read_patch(patches, image, row, column, tables, layout, literals):
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


@kernel
def draw_patch(sample, clause, chance, scene):
    """Literals of a patch drawn from those a clause matched."""
    keep_apart()
    samples, _, layout, tables, space, windows, _ = follow(scene)
    width, lane = int64(windows.width[clause]), int64(windows.first_lane[clause])
    row, column = pick_patch(space.matches, space.match_at[clause], width, lane, layout, space.cumulative, chance)
    read_patch(samples.patches, sample * layout.patch_image_bytes, row, column, tables, layout, space.literals)


# ---------------------------------------------------------------- feedback
@inline
def note_change(states, includes, at, pixels, moved):
    """Include bits of one word from its new states; adds what changed to (position literals, pixel literals)."""
    now = top_bits(states)
    change = now ^ includes[at]
    includes[at] = now
    return moved[0] | (change & ~pixels), moved[1] | (change & pixels)


@inline
def erase_word(bank, includes, pixels, clause, w, forgotten, moved):
    at = (clause * bank.n_words + w) * 64
    states = subtract_where(load_bytes(bank.states, at), forgotten)
    store_bytes(bank.states, at, states)
    return note_change(states, includes, clause * bank.stride + w, pixels[w], moved)


@inline
def erase(bank, includes, pixels, clause, limit, low, high):
    """Type I, clause false: each automaton steps towards exclusion with probability 1/s."""
    moved = word(0), word(0)
    for w in range(0, bank.n_words, 2):
        noise, more, low, high = next_random(low, high)
        moved = erase_word(bank, includes, pixels, clause, w, bytes_at_most(noise, limit), moved)
        if w + 1 < bank.n_words:
            moved = erase_word(bank, includes, pixels, clause, w + 1, bytes_at_most(more, limit), moved)
    return moved, low, high


@inline
def recognise_word(bank, includes, pixels, clause, w, forgotten, literals, plain, moved):
    true = mask_of(literals)
    at = (clause * bank.n_words + w) * 64
    states = add_where(load_bytes(bank.states, at), mask_and_not(true, mask_and(forgotten, plain)))
    states = subtract_where(states, mask_and_not(forgotten, true))
    store_bytes(bank.states, at, states)
    return note_change(states, includes, clause * bank.stride + w, pixels[w], moved)


@inline
def recognise(bank, includes, pixels, clause, limit, low, high, literals, plain):
    """Type I, clause true: true literals step towards inclusion (with 1 - 1/s if plain), false ones away with 1/s."""
    moved, last, at_all = (word(0), word(0)), uint8(limit - 1), every_byte(limit > 0)
    for w in range(0, bank.n_words, 2):
        noise, more, low, high = next_random(low, high)
        forgotten = mask_and(bytes_at_most(noise, last), at_all)
        moved = recognise_word(bank, includes, pixels, clause, w, forgotten, literals[w], plain, moved)
        if w + 1 < bank.n_words:
            forgotten = mask_and(bytes_at_most(more, last), at_all)
            moved = recognise_word(bank, includes, pixels, clause, w + 1, forgotten, literals[w + 1], plain, moved)
    return moved, low, high


@inline
def reject(bank, includes, pixels, valid, clause, literals):
    """Type II, clause true: excluded false literals step towards inclusion."""
    moved = word(0), word(0)
    for w in range(bank.n_words):
        excluded = ~includes[clause * bank.stride + w] & valid[w]
        at = (clause * bank.n_words + w) * 64
        states = add_where(load_bytes(bank.states, at), mask_of(excluded & ~literals[w]))
        store_bytes(bank.states, at, states)
        moved = note_change(states, includes, clause * bank.stride + w, pixels[w], moved)
    return moved


@inline
def scramble(counter):
    """splitmix64: a random word from a counter."""
    z = (counter ^ (counter >> word(30))) * word(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> word(27))) * word(0x94D049BB133111EB)
    return z ^ (z >> word(31))


@inline
def remember(changed, count, clause, moved):
    """Appends a clause whose literals changed, with two flags: position, pixels."""
    changed[count] = clause * 4 + (1 if moved[0] else 0) + (2 if moved[1] else 0)
    return count + (1 if moved[0] | moved[1] else 0)


@inline
def prefetch_all(data, start, n_bytes):
    """Samples come in random order, which no hardware foresees."""
    for line in range(start, start + n_bytes, 64):
        prefetch(data, line)


N_RANDOM = 17  # numbers in the state of a bank's generators
COUNTER_STEP = np.uint64(0x9E3779B97F4A7C15)


@inline
def pick_bank(banks, number):
    n_states, n_votes = banks.n_clauses * banks.n_words * 64, banks.n_rows * banks.votes_stride
    return Bank(
        banks.n_clauses,
        banks.n_words,
        banks.stride,
        advance(banks.states, number * n_states),
        advance(banks.votes, number * n_votes),
        banks.votes_stride,
        banks.n_rows,
        advance(banks.random, number * N_RANDOM),
    )


def make_trainer(is_flat: bool) -> Any:
    """The training kernel; the flag is a constant to the compiler."""

    @entry_point
    def train(samples, events, banks, span, feedback, geometry, room):
        """The banks of a span: one call for all, as handing all these arrays over takes a tenth of a millisecond."""
        samples, events, banks = bare(samples), bare(events), bare(banks)
        layout, tables = bare(geometry)
        space, windows, agenda = bare(room)
        includes, outputs = space.includes, space.outputs
        n_clauses, threshold = banks.n_clauses, feedback.threshold
        # Probability 1/s as a byte limit that is rounded at random, clause by clause.
        whole = int64(feedback.rate)
        plain = every_byte(not feedback.boost)
        fraction = word((feedback.rate - whole) * 4294967296.0)

        for number in range(span[0], span[1]):
            bank = pick_bank(banks, number)
            scene = refer(Scene(samples, bank, layout, tables, space, windows, agenda))
            low, high, counter = load8(bank.random, 0), load8(bank.random, 8), bank.random[16]

            if is_flat:
                for clause in range(n_clauses):
                    read_includes(bank.states, includes, bank.stride, bank.n_words, clause)
            else:
                read_windows((n_clauses, bank.stride, bank.states), includes, windows, tables, layout)
                n_sorted, n_moved, since_sort = sort_agenda(agenda, windows, n_clauses), 0, 0
                n_listed = n_sorted

            last = events.starts[number + 1]
            for event in range(events.starts[number], last):
                sample = int64(events.sample[event])
                raised, lowered = int64(events.raised[event]), int64(events.lowered[event])
                rows = max(raised, 0) * bank.votes_stride, max(lowered, 0) * bank.votes_stride

                # --- which clauses fire, and how they vote
                clear_outputs(outputs, n_clauses)
                if is_flat:
                    first_literal = sample * bank.stride
                    alive = sift_flat(first_literal, scene)
                    sums = finish_flat(alive, rows, first_literal, scene)
                else:
                    if layout.is_wide:
                        draw_wide_bitmaps(samples.rows, sample * layout.image_bytes, space.bitmaps, layout)
                    else:
                        draw_bitmaps(samples.rows, sample * layout.image_bytes, space.bitmaps, layout)
                    if event + 1 < last:
                        upcoming = int64(events.sample[event + 1])
                        prefetch_all(samples.rows, upcoming * layout.image_bytes, layout.image_bytes)
                        prefetch_all(samples.patches, upcoming * layout.patch_image_bytes, layout.patch_image_bytes)
                    sums = evaluate_windows(rows, scene, n_sorted, n_listed)
                events.sums[2 * event], events.sums[2 * event + 1] = sums[0], sums[1]

                # --- feedback: first to the sample's class, then to the other one, on the outputs seen before either
                n_changed = 0
                for is_other in range(2):
                    if (lowered if is_other else raised) < 0:
                        continue
                    row, sign = rows[is_other], -1 if is_other else 1
                    clamped = min(max(sums[is_other], -threshold), threshold)
                    chance = ((threshold - sign * clamped) * 65536) // (2 * threshold)
                    if chance == 0:
                        continue
                    for block in range(0, n_clauses, 32):
                        noise, _, low, high = next_random(low, high)
                        selected = halves_at_most(noise, uint16(chance - 1))
                        if n_clauses - block < 32:
                            selected &= (ONE << word(n_clauses - block)) - ONE
                        negative = ODD if feedback.signs_fixed else negative32(bank.votes, row + block)
                        agrees = negative if is_other else ~negative
                        fired = top_bits(load_bytes(outputs, block))
                        waiting = selected & agrees & ~fired
                        while waiting:
                            clause = block + int64(trailing_zeros(waiting))
                            waiting &= waiting - ONE
                            counter += COUNTER_STEP
                            limit = whole + (1 if (scramble(counter) & LOW) < fraction else 0)
                            if limit > 0:
                                moved, low, high = erase(
                                    bank, includes, tables.pixels, clause, uint8(limit - 1), low, high
                                )
                                if not is_flat:
                                    n_changed = remember(space.changed, n_changed, clause, moved)
                        waiting = selected & fired
                        while waiting:
                            bit = trailing_zeros(waiting)
                            clause = block + int64(bit)
                            waiting &= waiting - ONE
                            counter += COUNTER_STEP
                            random = scramble(counter)
                            if is_flat:
                                literals = advance(samples.literals, first_literal)
                            else:
                                literals = space.literals
                                draw_patch(sample, clause, random, scene)
                            vote = bank.votes[row + clause]
                            if (agrees >> bit) & ONE:
                                bank.votes[row + clause] = vote + sign
                                limit = whole + (1 if (random & LOW) < fraction else 0)
                                moved, low, high = recognise(
                                    bank, includes, tables.pixels, clause, limit, low, high, literals, plain
                                )
                            else:
                                if not feedback.signs_fixed or abs(vote) > 1:
                                    bank.votes[row + clause] = vote + sign
                                moved = reject(bank, includes, tables.pixels, tables.valid, clause, literals)
                            if not is_flat:
                                n_changed = remember(space.changed, n_changed, clause, moved)

                # --- windows of the changed clauses, and the agenda
                if not is_flat:
                    for i in range(n_changed):
                        clause, flags = space.changed[i] >> 2, space.changed[i]
                        if refresh_window(
                            flags & 1, flags & 2, includes, clause * bank.stride, windows, tables, layout, clause
                        ):
                            n_moved += 1
                            listed, width = agenda.listed[clause], min(windows.width[clause], WIDE)
                            if width != NEVER and width != listed & WIDTHS and listed < STRAY:
                                agenda.order[n_listed] = clause
                                agenda.listed[clause] = listed | STRAY
                                n_listed += 1
                    since_sort += 1
                    if n_moved and since_sort >= RESORT_EVERY:
                        n_sorted, n_moved, since_sort = sort_agenda(agenda, windows, n_clauses), 0, 0
                        n_listed = n_sorted

            store8(bank.random, 0, low)
            store8(bank.random, 8, high)
            bank.random[16] = counter

    return train
