"""The training loop: one bank of clauses, one event after the other, exactly in the order a sequential machine would.

An event shows one sample to a bank: the votes of the sample's class are *raised* (Type I feedback to clauses with the
right sign, Type II to the others), those of one other class *lowered*. Classes never touch each other's clauses, so a
multi-class machine trains class by class, each on its own events, on as many threads as one likes, with the same
result. A coalesced machine has a single bank and does both in one event.

feedback.py has the three kinds of feedback; tests/naive_tm.py says all of this slowly.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import int64, uint8, uint16
from numba import uint64 as word
from numpy.typing import NDArray

from laconic.tsetlin.agenda import Agenda, add_strays, make_agenda, sort_agenda
from laconic.tsetlin.compiling import entry_point, inline
from laconic.tsetlin.evaluation import (
    clear_outputs,
    draw_and_prefetch,
    evaluate_windows,
    finish_flat,
    sift_flat,
)
from laconic.tsetlin.feedback import Pupils, erase, recognise, reject
from laconic.tsetlin.geometry import Geometry, Layout, Tables, aligned
from laconic.tsetlin.patches import COUNTER_STEP, draw_patch, scramble
from laconic.tsetlin.vectors import (
    advance,
    bare,
    every_byte,
    halves_at_most,
    load8,
    load_bytes,
    negative32,
    next_random,
    refer,
    store8,
    top_bits,
    trailing_zeros,
)
from laconic.tsetlin.windows import (
    LOW,
    ONE,
    Changes,
    Windows,
    make_windows,
    no_changes,
    note_changed,
    read_includes,
    read_windows,
    refresh_windows,
)

ODD = np.uint64(0xAAAAAAAA)  # multi-class: clauses with an odd index speak against their class
RESORT_EVERY = 4  # events between two sorts of the agenda


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
    sums: NDArray[np.int32]  # [event, 2] filled in: votes that the sample met, of the row raised and of that lowered


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
    cumulative: NDArray[np.uint64]
    literals: NDArray[np.uint64]  # of the patch drawn


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
        cumulative=aligned(layout.mask_lanes, np.uint64),
        literals=np.zeros(layout.n_words + 1, np.uint64),
    )
    return Room(workspace, make_windows(layout, n_windows, geometry.tables.offsets.dtype), make_agenda(n_windows))


# ---------------------------------------------------------------- training
N_RANDOM = 17  # numbers in the state of a bank's generators


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


class Odds(NamedTuple):
    """Probability 1/s as a limit for random bytes, which is rounded up or down at random, clause by clause."""

    whole: int
    fraction: int  # of 2**32
    plain: Any  # mask: true literals of a clause that matched are reinforced with 1 - 1/s only, not every time


class Lesson(NamedTuple):
    """What feedback to one clause hands on to the next."""

    dice: Any  # two vectors: the state of eight generators
    counter: int  # of random words
    changes: Changes


@inline
def choose_limit(odds, random):
    return odds.whole + (1 if (random & LOW) < odds.fraction else 0)


def make_feedback(is_flat: bool) -> Any:
    """Feedback to clauses of a block of 32, those that did not fire and those that did."""

    @inline
    def erase_silent(block, waiting, pupils, windows, odds, lesson):
        dice, counter, changes = lesson
        while waiting:
            clause = block + int64(trailing_zeros(waiting))
            waiting &= waiting - ONE
            counter += COUNTER_STEP
            limit = choose_limit(odds, scramble(counter))
            if limit > 0:
                moved, dice = erase(pupils, clause, uint8(limit - 1), dice)
                if not is_flat:
                    changes = note_changed(windows, changes, clause, moved)
        return Lesson(dice, counter, changes)

    @inline
    def answer_fired(chosen, ballot, shown, pupils, windows, odds, lesson):
        """Type I to clauses that agree with what was wanted, Type II to the others."""
        (block, waiting, agrees), (votes, sign, signs_fixed), (sample, literals, scene) = chosen, ballot, shown
        dice, counter, changes = lesson
        while waiting:
            bit = trailing_zeros(waiting)
            clause = block + int64(bit)
            waiting &= waiting - ONE
            counter += COUNTER_STEP
            random = scramble(counter)
            if not is_flat:
                draw_patch(sample, clause, random, scene)
            vote = votes[clause]
            if (agrees >> bit) & ONE:
                votes[clause] = vote + sign
                moved, dice = recognise(pupils, clause, choose_limit(odds, random), dice, literals, odds.plain)
            else:
                if not signs_fixed or abs(vote) > 1:
                    votes[clause] = vote + sign
                moved = reject(pupils, clause, literals)
            if not is_flat:
                changes = note_changed(windows, changes, clause, moved)
        return Lesson(dice, counter, changes)

    return erase_silent, answer_fired


# Not made inside make_trainer: Numba would take a function that closes over others for a new one in every process, and
# never find it in its cache.
(erase_silent_flat, answer_flat), (erase_silent, answer_fired) = (make_feedback(is_flat) for is_flat in (True, False))


def make_trainer(is_flat: bool) -> Any:
    """The training kernel; the flag is a constant to the compiler."""

    @entry_point
    def train(samples, events, banks, span, feedback, geometry, room):
        """The banks of a span: one call for all, as handing all these arrays over takes a tenth of a millisecond."""
        samples, events, banks = bare(samples), bare(events), bare(banks)
        layout, tables = bare(geometry)
        space, windows, agenda = bare(room)
        includes, n_clauses, threshold = space.includes, banks.n_clauses, feedback.threshold
        whole = int64(feedback.rate)
        odds = Odds(whole, word((feedback.rate - whole) * 4294967296.0), every_byte(not feedback.boost))

        for number in range(span[0], span[1]):
            bank = pick_bank(banks, number)
            pupils = Pupils(bank.states, includes, bank.n_words, bank.stride, tables.pixels, tables.valid)
            scene = refer(Scene(samples, bank, layout, tables, space, windows, agenda))
            dice, counter = (load8(bank.random, 0), load8(bank.random, 8)), bank.random[16]

            if is_flat:
                for clause in range(n_clauses):
                    read_includes(bank.states, includes, bank.stride, bank.n_words, clause)
            else:
                read_windows((n_clauses, bank.stride, bank.states), includes, windows, tables, layout)
                n_sorted, n_unsorted, since_sort = sort_agenda(agenda, windows, n_clauses), 0, 0
                n_listed = n_sorted

            last = events.starts[number + 1]
            for event in range(events.starts[number], last):
                sample = int64(events.sample[event])
                raised, lowered = int64(events.raised[event]), int64(events.lowered[event])
                rows = max(raised, 0) * bank.votes_stride, max(lowered, 0) * bank.votes_stride

                # --- which clauses fire, and how they vote
                clear_outputs(space.outputs, n_clauses)
                if is_flat:
                    first_literal = sample * bank.stride
                    literals = advance(samples.literals, first_literal)
                    alive = sift_flat(first_literal, scene)
                    sums = finish_flat(alive, rows, first_literal, scene)
                else:
                    literals = space.literals  # of a patch, once it is drawn
                    upcoming = int64(events.sample[min(event + 1, last - 1)])
                    draw_and_prefetch(samples, sample, upcoming, space.bitmaps, layout)
                    sums = evaluate_windows(rows, scene, n_sorted, n_listed)
                events.sums[2 * event], events.sums[2 * event + 1] = sums[0], sums[1]

                # --- feedback: first to the sample's class, then to the other one, on the outputs seen before either
                lesson = Lesson(dice, counter, no_changes())
                for is_other in range(2):
                    if (lowered if is_other else raised) < 0:
                        continue
                    row, sign = rows[is_other], -1 if is_other else 1
                    clamped = min(max(sums[is_other], -threshold), threshold)
                    chance = ((threshold - sign * clamped) * 65536) // (2 * threshold)
                    if chance == 0:
                        continue
                    ballot, shown = (advance(bank.votes, row), sign, feedback.signs_fixed), (sample, literals, scene)
                    for block in range(0, n_clauses, 32):
                        noise, _, low, high = next_random(lesson.dice[0], lesson.dice[1])
                        lesson = Lesson((low, high), lesson.counter, lesson.changes)
                        selected = halves_at_most(noise, uint16(chance - 1))
                        if n_clauses - block < 32:
                            selected &= (ONE << word(n_clauses - block)) - ONE
                        negative = ODD if feedback.signs_fixed else negative32(bank.votes, row + block)
                        agrees = negative if is_other else ~negative
                        fired = top_bits(load_bytes(space.outputs, block))
                        silent, chosen = selected & agrees & ~fired, (block, selected & fired, agrees)
                        if is_flat:
                            lesson = erase_silent_flat(block, silent, pupils, windows, odds, lesson)
                            lesson = answer_flat(chosen, ballot, shown, pupils, windows, odds, lesson)
                        else:
                            lesson = erase_silent(block, silent, pupils, windows, odds, lesson)
                            lesson = answer_fired(chosen, ballot, shown, pupils, windows, odds, lesson)
                dice, counter, changes = lesson

                # --- windows of the changed clauses, and the agenda
                if not is_flat:
                    refresh_windows(changes, includes, bank.stride, windows, tables, layout)
                    n_listed = add_strays(changes.n_changed, n_listed, windows, agenda)
                    n_unsorted, since_sort = n_unsorted + changes.n_changed, since_sort + 1
                    if n_unsorted and since_sort >= RESORT_EVERY:
                        n_sorted, n_unsorted, since_sort = sort_agenda(agenda, windows, n_clauses), 0, 0
                        n_listed = n_sorted

            store8(bank.random, 0, dice[0])
            store8(bank.random, 8, dice[1])
            bank.random[16] = counter

    return train
