"""The training loop of machines with fuzzy clauses (fuzzy.py); events, banks and random streams are as in kernels.py.

Flat clauses are counted word by word: popcounts of what a clause includes and the sample lacks. On images all patches
are counted at once (counting.py). tests/naive_tm.py says all of this slowly.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import int64, uint8, uint16
from numba import uint64 as word
from numpy.typing import NDArray

from laconic.tsetlin.compiling import entry_point, inline, kernel
from laconic.tsetlin.counting import (
    MOST_PLANES,
    count_failures,
    count_included,
    count_planes,
    find_fewest,
    list_failing,
)
from laconic.tsetlin.evaluation import draw_and_prefetch
from laconic.tsetlin.failing import Failing
from laconic.tsetlin.feedback import Pupils, erase, reject, set_states, states_of
from laconic.tsetlin.geometry import Geometry, Layout, Tables, aligned
from laconic.tsetlin.kernels import ODD, Bank, Samples, choose_limit, pick_bank
from laconic.tsetlin.patches import COUNTER_STEP, pick_patch, read_patch, scramble
from laconic.tsetlin.vectors import (
    add8,
    add_where,
    advance,
    and8,
    and_not4,
    and_not8,
    as_bytes,
    bare,
    bytes_at_most,
    every_byte,
    follow,
    halves_at_most,
    keep_apart,
    load4,
    load8,
    load_bytes,
    mask_and,
    mask_and_not,
    mask_of,
    negative32,
    next_random,
    popcount4,
    popcount8,
    refer,
    splat8,
    store8,
    subtract_where,
    sum4,
    sum8,
    top_bits,
    trailing_zeros,
)
from laconic.tsetlin.windows import ALL, ONE, read_includes

WORDS_AT_ONCE = 64  # of a flat clause; then those that fail too often are done with


class Limits(NamedTuple):
    failures: int
    literals: int


class Space(NamedTuple):
    """Room for one bank at a time; one per thread."""

    includes: NDArray[np.uint64]  # [clause, word]
    n_included: NDArray[np.int32]  # [clause] literals
    strengths: NDArray[np.int32]  # [clause] its vote, without the weight
    outputs: NDArray[np.uint8]  # [clause] 255 where it votes
    literals: NDArray[np.uint64]  # of the patch drawn
    # for images
    bitmaps: NDArray[np.uint64]
    planes: NDArray[np.uint64]  # of counts
    lists: NDArray[np.int32]  # [clause, entry] where its literals fail
    list_ends: NDArray[np.int64]  # [clause]
    fewest: NDArray[np.int64]  # [vector] failing literals of one clause
    best: NDArray[np.uint64]  # [clause, lane] patches on which fewest fail
    cumulative: NDArray[np.uint64]


class Scene(NamedTuple):
    """All that an event touches, arrays as bare pointers; handed on by reference."""

    samples: Samples
    bank: Bank
    layout: Layout
    tables: Tables
    failing: Failing
    space: Space
    limits: Limits


def make_space(geometry: Geometry, failing: Failing, n_clauses: int, stride: int, *, is_flat: bool) -> Space:
    layout = geometry.layout
    n_convolved = 0 if is_flat else n_clauses
    bitmaps = aligned(0 if is_flat else failing.first_lane + len(failing.standing) + 8, np.uint64)
    bitmaps[failing.first_lane :][: len(failing.standing)] = failing.standing[: len(bitmaps)]
    return Space(
        includes=aligned(n_clauses * stride + 16, np.uint64),
        n_included=np.zeros(n_clauses, np.int32),
        strengths=np.zeros(n_clauses, np.int32),
        outputs=aligned(n_clauses + 64, np.uint8),
        literals=np.zeros(layout.n_words + 1, np.uint64),
        bitmaps=bitmaps,
        planes=aligned(8 * MOST_PLANES, np.uint64),
        lists=aligned(n_convolved * failing.list_capacity, np.int32),
        list_ends=np.zeros(n_convolved, np.int64),
        fewest=np.zeros(layout.mask_lanes // 8, np.int64),
        best=aligned(n_convolved * layout.mask_lanes + 8, np.uint64),
        cumulative=aligned(layout.mask_lanes, np.uint64),
    )


# ---------------------------------------------------------------- how strongly clauses vote
@inline
def count_flat(includes, first, literals, sample, stride, top):
    """Failing literals of a flat clause on a sample; at some point above the top, counting ends."""
    failures = int64(0)
    for start in range(0, stride, WORDS_AT_ONCE):
        end = min(start + WORDS_AT_ONCE, stride)
        counts, w = splat8(word(0)), start
        while w + 8 <= end:
            missing = and_not8(load8(includes, first + w), load8(literals, sample + w))
            counts = add8(counts, popcount8(missing))
            w += 8
        failures += int64(sum8(counts))
        if w < end:
            missing = and_not4(load4(includes, first + w), load4(literals, sample + w))
            failures += int64(sum4(popcount4(missing)))
        if failures >= top:
            break
    return failures


@inline
def count_patches(clause, scene, top):
    """Failing literals on a clause's best patches, which are noted; if so many fail everywhere, some such number."""
    layout, space = scene.layout, scene.space
    start = clause * scene.failing.list_capacity
    literals = space.lists, start, space.list_ends[clause]
    n_planes, first = count_planes(space.n_included[clause]), clause * layout.mask_lanes
    fewest = int64(1) << 40
    for v in range(layout.mask_lanes >> 3):
        bitmaps = as_bytes(advance(space.bitmaps, min(8 * v, layout.n_lanes - 8)))
        grid = load8(scene.failing.grid, 8 * v)
        count_failures(bitmaps, literals, space.planes, n_planes, grid, top)
        least, patches = find_fewest(space.planes, n_planes, grid)
        store8(space.best, first + 8 * v, patches)
        space.fewest[v] = least
        fewest = min(fewest, least)
    for v in range(layout.mask_lanes >> 3):
        keep = splat8(ALL if space.fewest[v] == fewest else word(0))
        store8(space.best, first + 8 * v, and8(keep, load8(space.best, first + 8 * v)))
    return fewest


def make_judge(is_flat: bool) -> Any:
    @kernel
    def judge(sample, rows, scene):
        """Votes of all clauses on a sample, and their sums over two rows."""
        keep_apart()
        scene = follow(scene)
        bank, space, limits = scene.bank, scene.space, scene.limits
        raised_sum, lowered_sum = int64(0), int64(0)
        for clause in range(bank.n_clauses):
            top = min(limits.failures, max(int64(space.n_included[clause]), 1))  # an empty clause votes in training
            if is_flat:
                at = sample * bank.stride
                literals = scene.samples.literals
                failures = count_flat(space.includes, clause * bank.stride, literals, at, bank.stride, top)
            else:
                failures = count_patches(clause, scene, top)
            strength = max(top - failures, 0)
            space.strengths[clause] = strength
            space.outputs[clause] = uint8(255 if strength > 0 else 0)
            raised_sum += int64(bank.votes[rows[0] + clause]) * strength
            lowered_sum += int64(bank.votes[rows[1] + clause]) * strength
        return raised_sum, lowered_sum

    return judge


judge_flat, judge_images = make_judge(True), make_judge(False)


# ---------------------------------------------------------------- feedback
@inline
def grow(pupils, clause, literals, growing, unless):
    """Type I to a clause that votes: true literals step towards inclusion, false ones that it lacks away.

    growing: all bits or none; unless: 64 bytes of literals that forget to step, or none.
    """
    moved = word(0), word(0)
    for w in range(pupils.n_words):
        moved = grow_word(pupils, clause, w, literals[w], growing, unless, moved)
    return moved


@inline
def grow_word(pupils, clause, w, true, growing, unless, moved):
    false = ~true & ~pupils.includes[clause * pupils.stride + w]
    states = add_where(states_of(pupils, clause, w), mask_and_not(mask_of(true & growing), unless))
    return set_states(pupils, clause, w, subtract_where(states, mask_of(false)), moved)


@inline
def grow_some(pupils, clause, literals, growing, limit, dice):
    """The same without boost: a true literal steps with 1 - 1/s only."""
    moved, (low, high) = (word(0), word(0)), dice
    last, at_all = uint8(limit - 1), every_byte(limit > 0)
    for w in range(0, pupils.n_words, 2):
        noise, more, low, high = next_random(low, high)
        forgotten = mask_and(bytes_at_most(noise, last), at_all)
        moved = grow_word(pupils, clause, w, literals[w], growing, forgotten, moved)
        if w + 1 < pupils.n_words:
            forgotten = mask_and(bytes_at_most(more, last), at_all)
            moved = grow_word(pupils, clause, w + 1, literals[w + 1], growing, forgotten, moved)
    return moved, (low, high)


@inline
def draw_best(sample, clause, chance, scene):
    """Literals of a patch drawn from a clause's best."""
    samples, layout, space = scene.samples, scene.layout, scene.space
    first, width = clause * layout.mask_lanes, (layout.mask_lanes >> 3) + 1
    row, column = pick_patch(space.best, first, width, int64(0), layout, space.cumulative, chance)
    read_patch(samples.patches, sample * layout.patch_image_bytes, row, column, scene.tables, layout, space.literals)


def make_feedback(is_flat: bool) -> Any:
    @kernel
    def recount(clause, scene):
        """What is known of a clause, from its include bits."""
        keep_apart()
        scene = follow(scene)
        bank, space = scene.bank, scene.space
        space.n_included[clause] = count_included(space.includes, clause * bank.stride, bank.n_words)
        if not is_flat:
            start, includes = clause * scene.failing.list_capacity, advance(space.includes, clause * bank.stride)
            space.list_ends[clause] = list_failing(space.lists, start, includes, bank.n_words, scene.failing)

    @inline
    def erase_silent(block, waiting, pupils, odds, lesson, scene):
        dice, counter = lesson
        while waiting:
            clause = block + int64(trailing_zeros(waiting))
            waiting &= waiting - ONE
            counter += COUNTER_STEP
            limit = choose_limit(odds, scramble(counter))
            if limit > 0:
                moved, dice = erase(pupils, clause, uint8(limit - 1), dice)
                if moved[0] | moved[1]:
                    recount(clause, scene)
        return dice, counter

    @inline
    def answer_voters(chosen, ballot, shown, pupils, odds, lesson):
        """Type I to clauses that agree with what was wanted, Type II to the others."""
        (block, waiting, agrees), (votes, sign, signs_fixed), (sample, literals, scene) = chosen, ballot, shown
        (dice, counter), space, most = lesson, follow(scene).space, follow(scene).limits.literals
        while waiting:
            bit = trailing_zeros(waiting)
            clause = block + int64(bit)
            waiting &= waiting - ONE
            counter += COUNTER_STEP
            random = scramble(counter)
            if not is_flat:
                draw_best(sample, clause, random, follow(scene))
            vote = votes[clause]
            if (agrees >> bit) & ONE:
                votes[clause] = vote + sign
                growing = ALL if space.n_included[clause] < most else word(0)
                if odds.boost:
                    moved = grow(pupils, clause, literals, growing, every_byte(False))
                else:
                    moved, dice = grow_some(pupils, clause, literals, growing, choose_limit(odds, random), dice)
            else:
                if not signs_fixed or abs(vote) > 1:
                    votes[clause] = vote + sign
                moved = reject(pupils, clause, literals)
            if moved[0] | moved[1]:
                recount(clause, scene)
        return dice, counter

    return recount, erase_silent, answer_voters


(recount_flat, erase_flat, answer_flat), (recount_images, erase_images, answer_images) = (
    make_feedback(is_flat) for is_flat in (True, False)
)


# ---------------------------------------------------------------- training
class FuzzyOdds(NamedTuple):
    """As kernels.Odds."""

    whole: int
    fraction: int
    boost: bool


def make_trainer(is_flat: bool) -> Any:
    """The training kernel; the flag is a constant to the compiler."""

    @entry_point
    def train(samples, events, banks, span, feedback, limits, geometry, failing, space):
        samples, events, banks = bare(samples), bare(events), bare(banks)
        failing, space = bare(failing), bare(space)
        layout, tables = bare(geometry)
        includes, n_clauses, threshold = space.includes, banks.n_clauses, feedback.threshold
        whole = int64(feedback.rate)
        odds = FuzzyOdds(whole, word((feedback.rate - whole) * 4294967296.0), feedback.boost)

        for number in range(span[0], span[1]):
            bank = pick_bank(banks, number)
            pupils = Pupils(bank.states, includes, bank.n_words, bank.stride, tables.pixels, tables.valid)
            scene = refer(Scene(samples, bank, layout, tables, failing, space, limits))
            dice, counter = (load8(bank.random, 0), load8(bank.random, 8)), bank.random[16]
            for clause in range(n_clauses):
                read_includes(bank.states, includes, bank.stride, bank.n_words, clause)
                if is_flat:
                    recount_flat(clause, scene)
                else:
                    recount_images(clause, scene)

            last = events.starts[number + 1]
            for event in range(events.starts[number], last):
                sample = int64(events.sample[event])
                raised, lowered = int64(events.raised[event]), int64(events.lowered[event])
                rows = max(raised, 0) * bank.votes_stride, max(lowered, 0) * bank.votes_stride
                if is_flat:
                    literals = advance(samples.literals, sample * bank.stride)
                    sums = judge_flat(sample, rows, scene)
                else:
                    literals = space.literals  # of a patch, once it is drawn
                    upcoming = int64(events.sample[min(event + 1, last - 1)])
                    draw_and_prefetch(samples, sample, upcoming, space.bitmaps, layout)
                    sums = judge_images(sample, rows, scene)

                # --- feedback: first to the sample's class, then to the other one, on the votes seen before either
                lesson = dice, counter
                for is_other in range(2):
                    row, sign = rows[is_other], -1 if is_other else 1
                    clamped = min(max(sums[is_other], -threshold), threshold)
                    events.sums[2 * event + is_other] = clamped
                    chance = ((threshold - sign * clamped) * 65536) // (2 * threshold)
                    if (lowered if is_other else raised) < 0 or chance == 0:
                        continue
                    ballot, shown = (advance(bank.votes, row), sign, feedback.signs_fixed), (sample, literals, scene)
                    for block in range(0, n_clauses, 32):
                        noise, _, low, high = next_random(lesson[0][0], lesson[0][1])
                        lesson = (low, high), lesson[1]
                        selected = halves_at_most(noise, uint16(chance - 1))
                        if n_clauses - block < 32:
                            selected &= (ONE << word(n_clauses - block)) - ONE
                        negative = ODD if feedback.signs_fixed else negative32(bank.votes, row + block)
                        agrees = negative if is_other else ~negative
                        voting = top_bits(load_bytes(space.outputs, block))
                        silent, chosen = selected & agrees & ~voting, (block, selected & voting, agrees)
                        if is_flat:
                            lesson = erase_flat(block, silent, pupils, odds, lesson, scene)
                            lesson = answer_flat(chosen, ballot, shown, pupils, odds, lesson)
                        else:
                            lesson = erase_images(block, silent, pupils, odds, lesson, scene)
                            lesson = answer_images(chosen, ballot, shown, pupils, odds, lesson)
                dice, counter = lesson

            store8(bank.random, 0, dice[0])
            store8(bank.random, 8, dice[1])
            bank.random[16] = counter

    return train
