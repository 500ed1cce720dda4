"""Which clauses fire on which samples: clauses outside, samples inside, in blocks whose bitmaps stay in the cache.

A flat machine is judged on 512 samples at once: transposed, a literal's values over the samples are one vector, just as
for an image its values over the patches are.
"""

from typing import NamedTuple

import numpy as np
from numba import int32, int64
from numba import uint64 as word
from numpy.typing import NDArray

from laconic.tsetlin.geometry import Geometry, aligned
from laconic.tsetlin.kernels import conjoin4, conjoin8, conjoin16, draw_bitmaps, draw_wide_bitmaps, match_clause
from laconic.tsetlin.vectors import advance, any4, any8, bare, keep_apart, load4, load8, or8
from laconic.tsetlin.windows import (
    ALL,
    DOUBLE,
    HALF,
    LIST_KEYS,
    LOW,
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
    update_effective,
    update_list,
)

CACHE_BYTES = 40_960  # bitmaps of a block; beyond this, measured times rise
FLAT_BLOCK = 512


class Program(NamedTuple):
    """Some clauses, made ready to be evaluated."""

    n_clauses: int
    first: int  # these clauses start here, counted over all banks
    banks: NDArray[np.int32]  # [clause]
    stride: int
    geometry: Geometry
    windows: Windows
    agenda: Agenda
    states: NDArray[np.uint8]  # [clause, slot]
    includes: NDArray[np.uint64]  # [clause, word]


class Block(NamedTuple):
    """Room for one block of samples and its results; one per thread."""

    size: int  # samples
    n_words: int  # of fired bits per clause
    bitmaps: NDArray[np.uint64]
    matches: NDArray[np.uint64]
    square: NDArray[np.uint64]
    fired: NDArray[np.uint64]  # [clause, word] one bit per sample
    sums: NDArray[np.int32]  # [class, sample]


class Votes(NamedTuple):
    """What a clause that fires adds to which class."""

    n_classes: int
    per_bank: int  # clauses
    is_shared: bool  # the one bank votes for all classes
    weights: NDArray[np.int32]  # [class, clause of its bank] signed


def make_program(geometry: Geometry, states: NDArray[np.uint8], first: int, count: int, stride: int) -> Program:
    """For some clauses of the banks whose states [bank, clause, slot] are given."""
    per_bank = states.shape[1]
    chosen = states.reshape(-1, states.shape[2])[first : first + count]
    n_clauses = len(chosen)
    banks = (np.arange(first, first + n_clauses) // per_bank).astype(np.int32)
    windows = make_windows(geometry.layout, n_clauses, geometry.tables.offsets.dtype)
    includes = aligned(n_clauses * stride + 16, np.uint64)
    return Program(
        n_clauses, first, banks, stride, geometry, windows, make_agenda(n_clauses), chosen.reshape(-1), includes
    )


def make_block(geometry: Geometry, n_clauses: int, n_classes: int) -> Block:
    is_flat = geometry.layout.is_flat
    size = FLAT_BLOCK if is_flat else max(1, min(64, CACHE_BYTES // (8 * geometry.bitmap_lanes)))
    n_words = -(-size // 64)
    return Block(
        size=size,
        n_words=n_words,
        bitmaps=aligned((1 if is_flat else size) * geometry.bitmap_lanes + 64, np.uint64),
        matches=aligned(geometry.layout.mask_lanes, np.uint64),
        square=aligned(64, np.uint64),
        fired=aligned(n_clauses * n_words, np.uint64),
        sums=aligned(n_classes * n_words * 64, np.int32),
    )


@inline
def transpose64(bits):  # type: ignore[no-untyped-def]
    """A 64 × 64 bit matrix, in place: swap ever smaller blocks across the diagonal."""
    width, mask = 32, LOW
    while width:
        for start in range(0, 64, 2 * width):
            for row in range(start, start + width):
                swapped = ((bits[row] >> word(width)) ^ bits[row + width]) & mask
                bits[row] ^= swapped << word(width)
                bits[row + width] ^= swapped
        width >>= 1
        mask ^= mask << word(width)


@inline
def draw_flat_bitmaps(literals, first, n_samples, stride, layout, block):  # type: ignore[no-untyped-def]
    """Bitmaps over 512 samples: literal words transposed, 64 samples at a time."""
    square = block.square
    for w in range(layout.n_words):
        for part in range((n_samples + 63) // 64):
            for i in range(64):
                sample = part * 64 + i
                square[i] = literals[(first + sample) * stride + w] if sample < n_samples else word(0)
            transpose64(square)
            for i in range(min(32, layout.n_pixels - 32 * w)):
                lane = (32 * w + i) * 8 + part
                block.bitmaps[lane] = square[i]
                block.bitmaps[layout.negated + lane] = square[32 + i]


@kernel
def fire_windows(n_images, n_listed, program, block):  # type: ignore[no-untyped-def]
    """Fired bits of the clauses on the agenda, over the images whose bitmaps are in the block."""
    keep_apart()
    layout, windows = program.geometry.layout, program.windows
    bitmaps, per_image = block.bitmaps, 2 * layout.negated
    lists, masks = windows.lists, windows.masks
    for i in range(n_listed):
        clause = int64(program.agenda.order[i])
        width = windows.width[clause]
        lane = int64(windows.first_lane[clause])
        mask = clause * layout.mask_lanes
        entry = clause * layout.list_capacity
        end = entry + 4 * int64(windows.n_groups[clause])
        fired = word(0)
        if width == HALF:
            half = load4(masks, mask)
            for j in range(n_images):
                fired |= word(any4(conjoin4(bitmaps, lane, lists, entry, end, half)) & 1) << word(j)
                lane += per_image
        elif width == SINGLE:
            single = load8(masks, mask)
            for j in range(n_images):
                fired |= word(any8(conjoin8(bitmaps, lane, lists, entry, end, single)) & 1) << word(j)
                lane += per_image
        elif width == DOUBLE:
            second = min(8, layout.n_lanes - 8 - lane)
            one, two = load8(masks, mask), load8(masks, mask + 8)
            for j in range(n_images):
                hits, more = conjoin16(bitmaps, lane, second, lists, entry, end, one, two)
                fired |= word(any8(or8(hits, more)) & 1) << word(j)
                lane += per_image
        else:
            for j in range(n_images):
                images = advance(bitmaps, j * per_image)
                hit = match_clause(images, windows, layout, clause, block.matches, 0)
                fired |= word(hit & 1) << word(j)
        block.fired[clause] = fired


@kernel
def fire_flat(n_listed, program, block):  # type: ignore[no-untyped-def]
    """The same over 512 flat samples."""
    keep_apart()
    layout, windows = program.geometry.layout, program.windows
    for i in range(n_listed):
        clause = int64(program.agenda.order[i])
        match_clause(block.bitmaps, windows, layout, clause, block.fired, 8 * clause)


@kernel
def fire(samples, first, count, program, n_listed, block):  # type: ignore[no-untyped-def]
    """Fired bits of the clauses on the agenda, over one block of samples."""
    layout = program.geometry.layout
    if layout.is_flat:
        draw_flat_bitmaps(samples.literals, first, count, program.stride, layout, block)
        fire_flat(n_listed, program, block)
    else:
        for i in range(count):
            image, bitmaps = (first + i) * layout.image_bytes, advance(block.bitmaps, i * 2 * layout.negated)
            if layout.is_wide:
                draw_wide_bitmaps(samples.rows, image, bitmaps, layout)
            else:
                draw_bitmaps(samples.rows, image, bitmaps, layout)
        fire_windows(count, n_listed, program, block)


# ---------------------------------------------------------------- entry points
@kernel
def prepare(program):  # type: ignore[no-untyped-def]
    """Windows and agenda of the clauses that can fire at all; how many are on the agenda."""
    program = bare(program)
    layout, tables = program.geometry
    includes, windows = program.includes, program.windows
    for clause in range(program.n_clauses):
        first = clause * program.stride
        read_includes(program.states, includes, program.stride, layout.n_words, clause)
        if layout.is_flat:
            update_effective(includes, first, windows, tables, layout, clause)
            update_list(windows, tables, layout, clause)
            windows.width[clause] = SINGLE
            groups = min(windows.n_groups[clause], LIST_KEYS - 1)
            windows.key[clause] = 0 if windows.contradicts[clause] else 1 + groups
            for lane in range(8):
                windows.masks[clause * layout.mask_lanes + lane] = ALL
        else:
            refresh_window(ONE, ONE, includes, first, windows, tables, layout, clause)
        included = word(0)
        for w in range(layout.n_words):
            included |= includes[first + w]
        if included == 0:
            windows.key[clause] = 0  # an empty clause is silent outside training
    return sort_agenda(program.agenda, windows, program.n_clauses)


@kernel
def add_votes(samples, span, program, n_listed, block, votes, sums):  # type: ignore[no-untyped-def]
    """sums[sample, class] += the votes of this program's clauses, for the samples of a span."""
    samples, program, block, votes = bare(samples), bare(program), bare(block), bare(votes)
    n_classes, n_words = votes.n_classes, block.n_words
    width = 64 * n_words
    for first in range(span[0], span[1], block.size):
        count = min(block.size, span[1] - first)
        fire(samples, first, count, program, n_listed, block)
        for i in range(n_classes * width):
            block.sums[i] = 0
        for i in range(n_listed):
            clause = int64(program.agenda.order[i])
            bank = int64(program.banks[clause])
            place = program.first + clause - bank * votes.per_bank
            for w in range(n_words):
                fired = block.fired[clause * n_words + w]
                if fired == 0:
                    continue
                for k in range(0 if votes.is_shared else bank, n_classes if votes.is_shared else bank + 1):
                    weight = votes.weights[k * votes.per_bank + place]
                    at = k * width + 64 * w
                    for j in range(min(64, count - 64 * w)):
                        block.sums[at + j] += weight & -int32((fired >> word(j)) & ONE)
        for j in range(count):
            for k in range(n_classes):
                sums[first + j, k] += block.sums[k * width + j]


@kernel
def write_outputs(samples, span, program, n_listed, block, outputs):  # type: ignore[no-untyped-def]
    """outputs[sample, clause over all banks] = fired."""
    samples, program, block = bare(samples), bare(program), bare(block)
    for first in range(span[0], span[1], block.size):
        count = min(block.size, span[1] - first)
        fire(samples, first, count, program, n_listed, block)
        for i in range(n_listed):
            clause = int64(program.agenda.order[i])
            for j in range(count):
                fired = block.fired[clause * block.n_words + (j >> 6)] >> word(j & 63)
                outputs[first + j, program.first + clause] = fired & ONE
