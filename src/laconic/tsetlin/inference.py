"""Which clauses fire on which samples: clauses outside, samples inside, in blocks whose bitmaps stay in the cache.

A flat machine is judged on 512 samples at once: transposed, a literal's values over the samples are one vector, just as
for an image its values over the patches are.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import int32, int64
from numba import uint64 as word
from numpy.typing import NDArray

from laconic.tsetlin.agenda import Agenda, make_agenda, sort_agenda
from laconic.tsetlin.compiling import entry_point, inline, kernel
from laconic.tsetlin.evaluation import conjoin8, draw_bitmaps, draw_wide_bitmaps, narrow
from laconic.tsetlin.geometry import Geometry, Layout, Shape, aligned, geometry
from laconic.tsetlin.kernels import Samples
from laconic.tsetlin.vectors import (
    advance,
    bare,
    keep_apart,
    popcount,
    splat8,
    store8,
    trailing_zeros,
)
from laconic.tsetlin.windows import (
    ALL,
    DOUBLE,
    HALF,
    LOW,
    NEVER,
    ONE,
    SINGLE,
    WIDE,
    Windows,
    make_windows,
    read_windows,
)

CLAUSES_PER_PROGRAM = 4096  # bounds the memory for windows on the way, whatever the size of the machine
CACHE_BYTES = 40_960  # bitmaps of a block; beyond this, measured times rise
FLAT_BLOCK = 512
COUNTED_IMAGES = 8  # to find out which literals seldom hold
SIFTED_LITERALS = 4  # tried on all images of a block before the others are


class Draft(NamedTuple):
    """Clauses on their way to a program."""

    n_clauses: int
    stride: int
    geometry: Geometry
    windows: Windows
    agenda: Agenda
    states: NDArray[np.uint8]  # [clause, slot]
    includes: NDArray[np.uint64]  # [clause, word]


class Program(NamedTuple):
    """The clauses that can fire, packed in the order of evaluation: a run through them is a run through memory."""

    n_clauses: int
    singles: int  # the first clause whose window is a vector wide; before it, those of half a vector
    doubles: int
    wides: int
    stride: int
    layout: Layout
    clauses: NDArray[np.int32]  # index over all banks
    widths: NDArray[np.int32]
    first_lanes: NDArray[np.int32]
    list_starts: NDArray[np.int32]  # one more than clauses
    mask_starts: NDArray[np.int32]
    lists: NDArray[Any]
    masks: NDArray[np.uint64]


class Block(NamedTuple):
    """Room for one block of samples and its results; one per thread."""

    size: int  # samples
    n_words: int  # of fired bits per clause
    bitmaps: NDArray[np.uint64]
    partial: NDArray[np.uint64]  # [image, lane] patches left after a few literals
    square: NDArray[np.uint64]
    fired: NDArray[np.uint64]  # [clause, word] one bit per sample
    sums: NDArray[np.int32]  # [class, sample]


class Ballot(NamedTuple):
    """What the clauses of a program add to which classes when they fire."""

    n_classes: int
    per_clause: int  # classes a clause votes on, from first_class on
    first_class: NDArray[np.int32]
    votes: NDArray[np.int32]  # [clause, class]


def count_places(shape: Shape, samples: Samples, n_samples: int) -> NDArray[np.int64]:
    """[offset of a bitmap] in how many places of the first few images the literal holds; flat: all zero."""
    layout, tables = geometry(shape)
    counts = np.zeros(int(tables.offsets.max()) + 1, np.int64)
    if not layout.is_flat:
        n_counted = min(n_samples, COUNTED_IMAGES)
        row_bytes = layout.image_bytes // (layout.layers * layout.rows_per_layer)
        stored = samples.rows[: n_counted * layout.image_bytes]
        stored = stored.reshape(n_counted, layout.layers, layout.rows_per_layer, row_bytes)
        bits = np.unpackbits(stored[:, :, : shape.height], axis=-1, count=shape.width, bitorder="little")
        holds = bits.sum(axis=(0, 2, 3), dtype=np.int64)  # per layer
        layer = np.arange(shape.n_pixels) % layout.layers
        counts[tables.offsets[shape.literal_slots[: shape.n_pixels]]] = holds[layer]
        false = shape.literal_slots[shape.n_features : shape.n_features + shape.n_pixels]
        counts[tables.offsets[false]] = n_counted * shape.height * shape.width - holds[layer]
    return counts


def compile_clauses(
    tables: Geometry, states: NDArray[np.uint8], first: int, stride: int, counts: NDArray[np.int64]
) -> Program:
    """A program for the clauses from index `first` on, counted over all banks; states are [bank, clause, slot]."""
    layout, dtype = tables.layout, tables.tables.offsets.dtype
    chosen = states.reshape(-1, states.shape[2])[first : first + CLAUSES_PER_PROGRAM]
    n_chosen = len(chosen)
    windows, includes = make_windows(layout, n_chosen, dtype), aligned(n_chosen * stride + 16, np.uint64)
    draft = Draft(n_chosen, stride, tables, windows, make_agenda(n_chosen), chosen.reshape(-1), includes)
    n_listed = _draft(draft)
    order = draft.agenda.order[:n_listed]
    widths, groups = windows.width[order], windows.n_groups[order]
    lanes = np.where(widths == HALF, 4, 8 * (widths - 1))
    program = Program(
        n_clauses=n_listed,
        singles=int(np.searchsorted(widths, SINGLE)),
        doubles=int(np.searchsorted(widths, DOUBLE)),
        wides=int(np.searchsorted(widths, WIDE)),
        stride=stride,
        layout=layout,
        clauses=first + order,
        widths=widths,
        first_lanes=windows.first_lane[order],
        list_starts=np.concatenate([[0], np.cumsum(4 * groups)]).astype(np.int32),
        mask_starts=np.concatenate([[0], np.cumsum(lanes)]).astype(np.int32),
        lists=np.zeros(int(4 * groups.sum()), dtype),
        masks=aligned(int(lanes.sum()) + 8, np.uint64),
    )
    _copy_windows(windows, order, program, counts)
    return program


def make_block(tables: Geometry, n_clauses: int, n_classes: int) -> Block:
    is_flat = tables.layout.is_flat
    size = FLAT_BLOCK if is_flat else max(4, min(64, CACHE_BYTES // (8 * tables.bitmap_lanes)))
    n_words = -(-size // 64)
    return Block(
        size=size,
        n_words=n_words,
        bitmaps=aligned((1 if is_flat else size) * tables.bitmap_lanes + 64, np.uint64),
        partial=aligned(size * tables.layout.mask_lanes, np.uint64),
        square=aligned(64, np.uint64),
        fired=aligned(n_clauses * n_words, np.uint64),
        sums=aligned(n_classes * n_words * 64, np.int32),
    )


@inline
def transpose64(bits):
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
def draw_flat_bitmaps(literals, first, n_samples, stride, layout, block):
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


@inline
def fire_stretch(expected, first, last, n_images, program, block):
    """Fired bits over the images whose bitmaps are in the block, for clauses whose windows have one width (WIDE: any).

    A few literals of a clause are tried on all images, without branches; the others only on the images left.
    """
    lists, masks, n_lanes = program.lists, program.masks, program.layout.n_lanes
    per_image, per_window = 2 * program.layout.negated, program.layout.mask_lanes
    for i in range(first, last):
        width = int64(program.widths[i]) if expected == WIDE else expected
        lane = int64(program.first_lanes[i])
        start, end = int64(program.list_starts[i]), int64(program.list_starts[i + 1])
        middle = min(start + SIFTED_LITERALS, end)
        mask, few, others = (masks, int64(program.mask_starts[i])), (lists, start, middle), (lists, middle, end)
        left, fired = word(0), word(0)
        for j in range(n_images):
            bitmaps, patches = advance(block.bitmaps, j * per_image), (block.partial, j * per_window)
            left |= word(narrow(width, bitmaps, lane, n_lanes, few, mask, patches) & 1) << word(j)
        while left:
            j = int64(trailing_zeros(left))
            left &= left - ONE
            bitmaps, patches = advance(block.bitmaps, j * per_image), (block.partial, j * per_window)
            fired |= word(narrow(width, bitmaps, lane, n_lanes, others, patches, patches) & 1) << word(j)
        block.fired[i] = fired


def make_firing(width: int) -> Any:
    """For one width, which is a constant to the compiler."""

    @kernel
    def fire_width(first, last, n_images, program, block):
        keep_apart()
        fire_stretch(int64(width), first, last, n_images, program, block)

    return fire_width


fire_half, fire_single, fire_double, fire_wide = (make_firing(width) for width in (HALF, SINGLE, DOUBLE, WIDE))


@kernel
def fire_flat(program, block):
    """The same over 512 flat samples, whose literals are vectors of 8 lanes."""
    keep_apart()
    for i in range(program.n_clauses):
        literals = program.lists, int64(program.list_starts[i]), int64(program.list_starts[i + 1])
        store8(block.fired, 8 * i, conjoin8(block.bitmaps, literals, splat8(ALL)))


@kernel
def fire(samples, first, count, program, block):
    """Fired bits of all clauses, over one block of samples."""
    layout = program.layout
    if layout.is_flat:
        draw_flat_bitmaps(samples.literals, first, count, program.stride, layout, block)
        fire_flat(program, block)
    else:
        for i in range(count):
            image, bitmaps = (first + i) * layout.image_bytes, advance(block.bitmaps, i * 2 * layout.negated)
            if layout.is_wide:
                draw_wide_bitmaps(samples.rows, image, bitmaps, layout)
            else:
                draw_bitmaps(samples.rows, image, bitmaps, layout)
        singles, doubles, wides = program.singles, program.doubles, program.wides
        fire_half(int64(0), singles, count, program, block)
        fire_single(singles, doubles, count, program, block)
        fire_double(doubles, wides, count, program, block)
        fire_wide(wides, program.n_clauses, count, program, block)


@kernel
def count_patches(clause, image, program, block):
    """On how many patches of an image, whose bitmaps are in the block, a clause of the program holds."""
    keep_apart()
    width, lane = int64(program.widths[clause]), int64(program.first_lanes[clause])
    literals = program.lists, int64(program.list_starts[clause]), int64(program.list_starts[clause + 1])
    bitmaps = advance(block.bitmaps, image * 2 * program.layout.negated)
    mask, count = (program.masks, int64(program.mask_starts[clause])), int64(0)
    if narrow(width, bitmaps, lane, program.layout.n_lanes, literals, mask, (block.partial, int64(0))):
        for k in range(4 if width == HALF else 8 * (width - 1)):
            count += int64(popcount(block.partial[k]))
    return count


# ---------------------------------------------------------------- entry points
@entry_point
def _draft(draft):
    """Windows and agenda of the clauses that can fire at all; how many those are."""
    draft = bare(draft)
    layout, tables = draft.geometry
    includes, windows = draft.includes, draft.windows
    read_windows((draft.n_clauses, draft.stride, draft.states), includes, windows, tables, layout)
    for clause in range(draft.n_clauses):
        included = word(0)
        for w in range(layout.n_words):
            included |= includes[clause * draft.stride + w]
        if included == 0:
            windows.width[clause] = NEVER  # an empty clause is silent outside training
    return sort_agenda(draft.agenda, windows, draft.n_clauses)


@entry_point
def _copy_windows(windows, order, program, counts):
    """Packs lists and masks; literals that seldom hold come first, because they decide most."""
    capacity, mask_lanes = program.layout.list_capacity, program.layout.mask_lanes
    lists = program.lists
    for i in range(program.n_clauses):
        clause = int64(order[i])
        start = program.list_starts[i]
        for entry in range(start, program.list_starts[i + 1]):
            literal = windows.lists[clause * capacity + entry - start]
            place = entry
            while place > start and counts[lists[place - 1]] > counts[literal]:
                lists[place] = lists[place - 1]
                place -= 1
            lists[place] = literal
        start = program.mask_starts[i]
        for lane in range(program.mask_starts[i + 1] - start):
            program.masks[start + lane] = windows.masks[clause * mask_lanes + lane]


@entry_point
def add_votes(samples, span, program, block, ballot, sums):
    """sums[sample, class] += the votes of this program's clauses, for the samples of a span."""
    samples, program, block, ballot = bare(samples), bare(program), bare(block), bare(ballot)
    n_words, per_clause = block.n_words, ballot.per_clause
    width = 64 * n_words
    for first in range(span[0], span[1], block.size):
        count = min(block.size, span[1] - first)
        fire(samples, first, count, program, block)
        if block.size < 8:  # too few to make a vector of
            for i in range(program.n_clauses):
                for j in range(count):
                    fired = -int32((block.fired[i] >> word(j)) & ONE)
                    for r in range(per_clause):
                        sums[first + j, ballot.first_class[i] + r] += ballot.votes[i * per_clause + r] & fired
            continue
        for i in range(ballot.n_classes * width):
            block.sums[i] = 0
        for i in range(program.n_clauses):
            for w in range(n_words):
                fired = block.fired[i * n_words + w]
                if fired == 0:
                    continue
                for r in range(per_clause):
                    vote, at = ballot.votes[i * per_clause + r], (ballot.first_class[i] + r) * width + 64 * w
                    for j in range(min(64, count - 64 * w)):
                        block.sums[at + j] += vote & -int32((fired >> word(j)) & ONE)
        for j in range(count):
            for k in range(ballot.n_classes):
                sums[first + j, k] += block.sums[k * width + j]


@entry_point
def write_outputs(samples, span, program, block, outputs):
    """outputs[sample, clause over all banks] = fired."""
    samples, program, block = bare(samples), bare(program), bare(block)
    for first in range(span[0], span[1], block.size):
        count = min(block.size, span[1] - first)
        fire(samples, first, count, program, block)
        for i in range(program.n_clauses):
            for j in range(count):
                fired = block.fired[i * block.n_words + (j >> 6)] >> word(j & 63)
                outputs[first + j, program.clauses[i]] = fired & ONE


@entry_point
def write_counts(samples, span, program, block, counts):
    """counts[sample, clause over all banks] = patches on which it holds; of an image, not of a flat sample."""
    samples, program, block = bare(samples), bare(program), bare(block)
    for first in range(span[0], span[1], block.size):
        count = min(block.size, span[1] - first)
        fire(samples, first, count, program, block)
        for i in range(program.n_clauses):
            fired = block.fired[i]
            while fired:
                j = int64(trailing_zeros(fired))
                fired &= fired - ONE
                counts[first + j, program.clauses[i]] = count_patches(i, j, program, block)
