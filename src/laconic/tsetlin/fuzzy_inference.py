"""How fuzzy clauses vote outside training: programs are lists of where their literals fail (counting.py).

512 flat samples are counted at once, an image's patches likewise, image by image.
"""

from typing import NamedTuple

import numpy as np
from numba import int32, int64
from numba import uint64 as word
from numpy.typing import NDArray

from laconic.tsetlin.compiling import entry_point, inline, kernel
from laconic.tsetlin.counting import GROUP, MOST_PLANES, count_failures, count_planes, find_fewest, turn_to_votes
from laconic.tsetlin.evaluation import draw_bitmaps, draw_wide_bitmaps
from laconic.tsetlin.failing import Failing, failing
from laconic.tsetlin.geometry import INCLUDE, Layout, Shape, aligned, geometry
from laconic.tsetlin.inference import CLAUSES_PER_PROGRAM, FLAT_BLOCK, draw_flat_bitmaps
from laconic.tsetlin.vectors import (
    add_where,
    advance,
    and8,
    as_bytes,
    bare,
    double_bytes,
    every_byte,
    keep_apart,
    load8,
    mask_of,
    popcount8,
    splat8,
    store_bytes,
    sum8,
)
from laconic.tsetlin.windows import ALL

IMAGES_PER_BLOCK = 64
BITS_PER_BYTE = 8


class Program(NamedTuple):
    """Clauses that have literals."""

    n_clauses: int
    stride: int  # of flat samples
    layout: Layout
    failing: Failing
    clauses: NDArray[np.int32]  # index over all banks
    tops: NDArray[np.int32]  # votes where no literal fails
    n_included: NDArray[np.int32]
    list_starts: NDArray[np.int64]  # one more than clauses
    lists: NDArray[np.int32]


class Block(NamedTuple):
    """Room for a block of samples; one per thread."""

    size: int
    bitmaps: NDArray[np.uint64]
    square: NDArray[np.uint64]
    planes: NDArray[np.uint64]
    digits: NDArray[np.uint8]  # [sample] eight planes of votes
    sums: NDArray[np.int32]  # [class, sample]


def compile_clauses(shape: Shape, states: NDArray[np.uint8], first: int, stride: int, failures: int) -> Program:
    """A program for the clauses from index `first` on, counted over all banks; states are [bank, clause, slot]."""
    layout, tables = geometry(shape).layout, failing(shape)
    includes = states.reshape(-1, states.shape[2])[first : first + CLAUSES_PER_PROGRAM] >= INCLUDE
    n_included = np.count_nonzero(includes, axis=1)
    chosen = np.flatnonzero(n_included)
    n_included = n_included[chosen]
    starts = np.concatenate([[0], np.cumsum(-(-n_included // GROUP) * GROUP)])
    clause, slot = np.nonzero(includes[chosen])
    lists = np.full(starts[-1], tables.nowhere, np.int32)
    lists[np.arange(len(slot)) + (starts[:-1] - (np.cumsum(n_included) - n_included))[clause]] = tables.offsets[slot]
    return Program(
        n_clauses=len(chosen),
        stride=stride,
        layout=layout,
        failing=tables,
        clauses=(first + chosen).astype(np.int32),
        tops=np.minimum(failures, n_included).astype(np.int32),
        n_included=n_included.astype(np.int32),
        list_starts=starts,
        lists=lists,
    )


def make_block(shape: Shape, n_classes: int) -> Block:
    tables, size = failing(shape), FLAT_BLOCK if shape.is_flat else IMAGES_PER_BLOCK
    bitmaps = aligned(tables.first_lane + len(tables.standing) + 8, np.uint64)
    bitmaps[tables.first_lane :][: len(tables.standing)] = tables.standing
    return Block(
        size=size,
        bitmaps=bitmaps,
        square=aligned(64, np.uint64),
        planes=aligned(8 * MOST_PLANES, np.uint64),
        digits=aligned(FLAT_BLOCK, np.uint8),
        sums=aligned(n_classes * FLAT_BLOCK if shape.is_flat else 0, np.int32),
    )


# ---------------------------------------------------------------- flat samples
@kernel
def judge_flat(i, program, block):
    """Votes of a clause on 512 samples whose bitmaps are in the block, as planes; how many of them may be set."""
    keep_apart()
    literals = program.lists, program.list_starts[i], program.list_starts[i + 1]
    n_planes = count_planes(program.n_included[i])
    count_failures(as_bytes(block.bitmaps), literals, block.planes, n_planes, splat8(ALL), program.tops[i])
    turn_to_votes(block.planes, n_planes, program.tops[i])
    return count_planes(program.tops[i])


@inline
def read_digits(planes, digit, n_planes, digits):
    """Eight planes as bytes, one a sample; the digit says which eight."""
    last = min(n_planes, BITS_PER_BYTE * (digit + 1))
    for part in range(FLAT_BLOCK // 64):
        numbers = every_byte(False)
        for k in range(last - BITS_PER_BYTE * digit):
            numbers = add_where(double_bytes(numbers), mask_of(planes[8 * (last - 1 - k) + part]))
        store_bytes(digits, 64 * part, numbers)


# ---------------------------------------------------------------- images
@inline
def draw(samples, image, layout, block):
    if layout.is_wide:
        draw_wide_bitmaps(samples.rows, image * layout.image_bytes, block.bitmaps, layout)
    else:
        draw_bitmaps(samples.rows, image * layout.image_bytes, block.bitmaps, layout)


@kernel
def judge_image(i, program, block):
    """A clause's vote on the image whose bitmaps are in the block: that of its best patch."""
    keep_apart()
    layout = program.layout
    literals = program.lists, program.list_starts[i], program.list_starts[i + 1]
    n_planes, fewest = count_planes(program.n_included[i]), int64(1) << 40
    for v in range(layout.mask_lanes >> 3):
        bitmaps = as_bytes(advance(block.bitmaps, min(8 * v, layout.n_lanes - 8)))
        grid = load8(program.failing.grid, 8 * v)
        count_failures(bitmaps, literals, block.planes, n_planes, grid, program.tops[i])
        least, _ = find_fewest(block.planes, n_planes, grid)
        fewest = min(fewest, least)
    return max(int64(program.tops[i]) - fewest, 0)


@kernel
def count_voting(i, program, block):
    """On how many patches of the image a clause votes."""
    keep_apart()
    layout, count = program.layout, word(0)
    literals = program.lists, program.list_starts[i], program.list_starts[i + 1]
    n_planes = count_planes(program.n_included[i])
    for v in range(layout.mask_lanes >> 3):
        bitmaps = as_bytes(advance(block.bitmaps, min(8 * v, layout.n_lanes - 8)))
        grid = load8(program.failing.grid, 8 * v)
        count_failures(bitmaps, literals, block.planes, n_planes, grid, program.tops[i])
        voting = and8(turn_to_votes(block.planes, n_planes, program.tops[i]), grid)
        count += sum8(popcount8(voting))
    return int64(count)


# ---------------------------------------------------------------- entry points
@entry_point
def add_votes(samples, span, program, block, ballot, sums):
    """sums[sample, class] += the votes of this program's clauses, for the samples of a span."""
    samples, program, block, ballot = bare(samples), bare(program), bare(block), bare(ballot)
    per_clause = ballot.per_clause
    if not program.layout.is_flat:
        for image in range(span[0], span[1]):
            draw(samples, image, program.layout, block)
            for i in range(program.n_clauses):
                strength = int32(judge_image(i, program, block))
                for r in range(per_clause):
                    sums[image, ballot.first_class[i] + r] += strength * ballot.votes[i * per_clause + r]
        return
    for first in range(span[0], span[1], block.size):
        count = min(block.size, span[1] - first)
        draw_flat_bitmaps(samples.literals, first, count, program.stride, program.layout, block)
        for k in range(ballot.n_classes * FLAT_BLOCK):
            block.sums[k] = 0
        for i in range(program.n_clauses):
            n_planes = judge_flat(i, program, block)
            for digit in range((n_planes + BITS_PER_BYTE - 1) // BITS_PER_BYTE):
                read_digits(block.planes, digit, n_planes, block.digits)
                for r in range(per_clause):
                    vote = ballot.votes[i * per_clause + r] << int32(BITS_PER_BYTE * digit)
                    at = (ballot.first_class[i] + r) * FLAT_BLOCK
                    for j in range(FLAT_BLOCK):
                        block.sums[at + j] += vote * int32(block.digits[j])
        for j in range(count):
            for k in range(ballot.n_classes):
                sums[first + j, k] += block.sums[k * FLAT_BLOCK + j]


@entry_point
def write_votes(samples, span, program, block, votes):
    """votes[sample, clause over all banks] = how strongly it votes, weights apart."""
    samples, program, block = bare(samples), bare(program), bare(block)
    if not program.layout.is_flat:
        for image in range(span[0], span[1]):
            draw(samples, image, program.layout, block)
            for i in range(program.n_clauses):
                votes[image, program.clauses[i]] = judge_image(i, program, block)
        return
    for first in range(span[0], span[1], block.size):
        count = min(block.size, span[1] - first)
        draw_flat_bitmaps(samples.literals, first, count, program.stride, program.layout, block)
        for i in range(program.n_clauses):
            n_planes = judge_flat(i, program, block)
            for digit in range((n_planes + BITS_PER_BYTE - 1) // BITS_PER_BYTE):
                read_digits(block.planes, digit, n_planes, block.digits)
                for j in range(count):
                    votes[first + j, program.clauses[i]] += int32(block.digits[j]) << int32(BITS_PER_BYTE * digit)


@entry_point
def write_counts(samples, span, program, block, counts):
    """counts[image, clause over all banks] = patches on which it votes."""
    samples, program, block = bare(samples), bare(program), bare(block)
    for image in range(span[0], span[1]):
        draw(samples, image, program.layout, block)
        for i in range(program.n_clauses):
            counts[image, program.clauses[i]] = count_voting(i, program, block)
