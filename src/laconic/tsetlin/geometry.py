"""What a clause looks at, and the tables that follow from it alone: shared by every machine of one shape.

feature  one bit of a patch: its pixel bits by row, column, layer; then "patch row > k"; then "patch column > k".
literal  a feature or its negation.
word     64 literal slots: 32 features in the low half, their negations in the high half, so that contradictions and
         nested thermometer levels are bit tricks inside one word, and a patch word is `bits | ~bits << 32`.
lane     64 bits of patch positions. An image row is stored as the smallest of 8, 16, 32 or 64 bits that holds it, so
         8, 4, 2 or 1 rows make a lane, and "the rows from row p on" is just a load p rows later, aligned or not. Images
         wider than 64 take several lanes per row.
bitmap   where in the image a pixel literal holds, for all patches at once: the image rows shifted by the literal's
         column. Bits outside the patch grid are garbage; a clause's window mask removes them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

FEATURES_PER_WORD = 32
SLOTS_PER_WORD = 64
INCLUDE = 128  # an automaton in this state or above includes its literal


@dataclass(frozen=True)
class Shape:
    """What a clause looks at: patches of bit images. Machines of equal shape share their tables."""

    height: int
    width: int
    layers: int
    patch_height: int
    patch_width: int
    levels: int = 1  # layers come in runs of so many nested bits (k+1 implies k); speeds up, changes no result

    def __post_init__(self) -> None:
        for name in ("height", "width", "layers", "patch_height", "patch_width", "levels"):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} is {value!r}; give a whole number of at least 1")
            object.__setattr__(self, name, int(value))
        if self.patch_height > self.height or self.patch_width > self.width:
            raise ValueError(
                f"a patch of {self.patch_height}×{self.patch_width} does not fit into an image of "
                f"{self.height}×{self.width}; choose a patch no larger than the image"
            )
        if self.layers % self.levels:
            raise ValueError(
                f"{self.layers} layers are no multiple of levels={self.levels}; use levels=1 unless layers nest"
            )

    @classmethod
    def flat(cls, n_features: int) -> "Shape":
        """No patches: a clause sees all the features at once."""
        return cls(1, 1, n_features, 1, 1)

    @classmethod
    def image(cls, height: int, width: int, layers: int = 1, *, patch: tuple[int, int], levels: int = 1) -> "Shape":
        return cls(height, width, layers, *patch, levels)

    @property
    def n_rows(self) -> int:
        """Vertical patch positions."""
        return self.height - self.patch_height + 1

    @property
    def n_columns(self) -> int:
        """Horizontal patch positions."""
        return self.width - self.patch_width + 1

    @property
    def is_flat(self) -> bool:
        """One patch only, so nothing is convolved."""
        return self.n_rows * self.n_columns == 1

    @property
    def n_pixels(self) -> int:
        """Bits in a patch."""
        return self.patch_height * self.patch_width * self.layers

    @property
    def n_features(self) -> int:
        return self.n_pixels + self.n_rows - 1 + self.n_columns - 1

    @property
    def n_literals(self) -> int:
        return 2 * self.n_features

    @property
    def n_words(self) -> int:
        return -(-self.n_features // FEATURES_PER_WORD)

    @cached_property
    def literal_slots(self) -> NDArray[np.int64]:
        """Slot of each literal, features first, then their negations."""
        feature = np.arange(self.n_features)
        slot = feature // FEATURES_PER_WORD * SLOTS_PER_WORD + feature % FEATURES_PER_WORD
        return np.concatenate([slot, slot + FEATURES_PER_WORD])


class Layout(NamedTuple):
    """Sizes and strides, for the kernels."""

    height: int
    layers: int
    patch_height: int
    patch_width: int
    n_rows: int
    n_columns: int
    rows_per_lane: int
    log_row_bits: int  # 64 / rows_per_lane is 2 to this
    row_starts: int  # the first bit of every row in a lane
    lanes_per_row: int
    n_lanes: int  # lanes of a window that covers the whole grid, at least 8
    lanes_per_bitmap: int
    negated: int  # lanes from a literal's bitmap to its negation's
    n_pixels: int
    n_words: int
    n_pixel_words: int
    effective_words: int  # n_pixel_words, padded to whole vectors
    position_word: int  # first word with position features
    rows_per_layer: int  # stored rows of a layer, with the padding that vector loads run into
    image_bytes: int  # row-major copy
    patch_row_bytes: int  # pixel-major copy
    patch_image_bytes: int
    list_capacity: int  # entries of a clause's literal list
    mask_lanes: int  # lanes of a clause's window mask
    nest_steps: int  # doublings that spread a literal over its thermometer field
    is_wide: bool
    is_flat: bool


class Tables(NamedTuple):
    """Arrays indexed by literal slot, word or patch position, for the kernels."""

    offsets: NDArray[Any]  # [slot] first byte of the literal's bitmap (flat: lane); uint16 where that suffices
    valid: Words  # [word] slots that are literals
    pixels: Words  # [word] slots of pixel literals, padded to whole vectors
    pixels_only: Words  # [word] the same, unpadded
    row_literals: Words  # [patch row, word] position literals that hold there
    column_literals: Words  # [patch column, word]
    rows_from: Words  # [patch row, lane] patches in this row or below
    rows_to: Words  # [patch row, lane] patches in this row or above
    nesting: Words  # [step, word] slots with a slot 2**step above them in their thermometer field


class Geometry(NamedTuple):
    layout: Layout
    tables: Tables

    @property
    def bitmap_lanes(self) -> int:
        return 2 * self.layout.negated


def aligned(shape: int | tuple[int, ...], dtype: Any, *, make: Callable[..., NDArray[Any]] = np.zeros) -> NDArray[Any]:
    """Zeros, or what `make` gives, that start on a cache line, so that 64-byte rows never straddle two."""
    n_bytes = prod(shape if isinstance(shape, tuple) else (shape,)) * np.dtype(dtype).itemsize
    raw = make(n_bytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    array: NDArray[Any] = raw[start : start + n_bytes].view(dtype).reshape(shape)
    return array


@lru_cache(maxsize=64)
def geometry(shape: Shape) -> Geometry:
    """The tables of a shape; computed once."""
    if shape.is_flat:  # one patch: rows, columns and nesting no longer matter
        shape = Shape.flat(shape.n_pixels)
    layout = _lay_out(shape)
    return Geometry(layout, _tabulate(shape, layout))


def _lay_out(shape: Shape) -> Layout:
    # flat bitmaps run over samples instead of patches, 512 at a time: a literal is one row of 8 lanes
    rows_per_lane = 1 if shape.is_flat else next((64 // bits for bits in (8, 16, 32) if shape.width <= bits), 1)
    lanes_per_row = -(-shape.n_columns // 64)
    is_wide = shape.width > 64
    n_lanes = max(8, -(-shape.n_rows // rows_per_lane) * lanes_per_row)
    lanes_per_bitmap = n_lanes - (1 - shape.patch_height) // rows_per_lane * lanes_per_row
    if is_wide:
        lanes_per_bitmap = max(lanes_per_bitmap, shape.height * lanes_per_row)
        words_per_row = -(-shape.width // 64) + -(-shape.patch_width // 64) + 1  # shifts read past the last word
        rows_per_layer, row_bytes = shape.height, 8 * words_per_row
    else:
        rows_per_layer = (lanes_per_bitmap + 1) * rows_per_lane  # stores of 8 bytes run past the last row
        row_bytes = 8 // rows_per_lane
    n_pixel_words = -(-shape.n_pixels // FEATURES_PER_WORD)
    patch_row_bytes = -(-shape.width * shape.layers // 8)
    return Layout(
        height=shape.height,
        layers=shape.layers,
        patch_height=shape.patch_height,
        patch_width=shape.patch_width,
        n_rows=shape.n_rows,
        n_columns=shape.n_columns,
        rows_per_lane=rows_per_lane,
        log_row_bits=(64 // rows_per_lane).bit_length() - 1,
        row_starts=sum(1 << (64 // rows_per_lane * row) for row in range(rows_per_lane)),
        lanes_per_row=lanes_per_row,
        n_lanes=n_lanes,
        lanes_per_bitmap=lanes_per_bitmap,
        negated=shape.layers * shape.patch_width * lanes_per_bitmap,
        n_pixels=shape.n_pixels,
        n_words=shape.n_words,
        n_pixel_words=n_pixel_words,
        effective_words=-(-n_pixel_words // 8) * 8,
        position_word=min(shape.n_pixels // FEATURES_PER_WORD, shape.n_words),
        rows_per_layer=rows_per_layer,
        image_bytes=shape.layers * rows_per_layer * row_bytes,
        patch_row_bytes=patch_row_bytes,
        patch_image_bytes=patch_row_bytes * shape.height,
        # The last store may run on for 32 entries. Lists of 16-bit numbers lie an odd number of cache lines apart: at a
        # power of two they would all compete for a few places in the cache.
        list_capacity=(-(-(shape.n_pixels + 40) // 32) | 1) * 32,
        mask_lanes=-(-n_lanes // 8) * 8,
        nest_steps=(min(shape.levels, FEATURES_PER_WORD) - 1).bit_length(),
        is_wide=is_wide,
        is_flat=shape.is_flat,
    )


def _tabulate(shape: Shape, layout: Layout) -> Tables:
    row_start, column_start, n_features = shape.n_pixels, shape.n_pixels + shape.n_rows - 1, shape.n_features

    def words(true: NDArray[np.int64], false: NDArray[np.int64]) -> Words:
        """Word mask of the given features and negated features."""
        bits = np.zeros(layout.n_words * SLOTS_PER_WORD, np.uint8)
        bits[shape.literal_slots[true]] = 1
        bits[shape.literal_slots[false + n_features]] = 1
        return np.packbits(bits, bitorder="little").view(np.uint64)

    def thermometer(start: int, n_positions: int) -> Words:
        levels = np.arange(start, start + n_positions - 1)
        return np.stack([words(levels[:position], levels[position:]) for position in range(n_positions)])

    everything, pixels = np.arange(n_features), np.arange(shape.n_pixels)
    pixel_words = words(pixels, pixels)
    return Tables(
        offsets=_bitmap_offsets(shape, layout),
        valid=words(everything, everything),
        pixels=np.concatenate([pixel_words, np.zeros(8, np.uint64)]),
        pixels_only=pixel_words,
        row_literals=thermometer(row_start, shape.n_rows),
        column_literals=thermometer(column_start, shape.n_columns),
        **_row_masks(shape, layout),
        nesting=_nesting(shape, layout),
    )


def _bitmap_offsets(shape: Shape, layout: Layout) -> NDArray[Any]:
    pixel = np.arange(shape.n_pixels)
    layer, column, row = (
        pixel % shape.layers,
        pixel // shape.layers % shape.patch_width,
        pixel // shape.layers // shape.patch_width,
    )
    bytes_per_row = 8 * layout.lanes_per_row // layout.rows_per_lane
    unit = 8 if layout.is_flat else 1  # a flat literal has a bitmap of 8 lanes; lanes keep the numbers small
    start = (layer * shape.patch_width + column) * layout.lanes_per_bitmap * 8 + row * bytes_per_row
    to_negated = layout.negated * 8
    # half the list memory where it suffices: the literal lists of all clauses then stay in the first-level cache
    dtype = np.uint16 if 2 * to_negated < unit << 16 else np.int32
    offsets = np.zeros(layout.n_words * SLOTS_PER_WORD + SLOTS_PER_WORD, dtype)
    offsets[shape.literal_slots[pixel]] = start // unit
    offsets[shape.literal_slots[pixel + shape.n_features]] = (start + to_negated) // unit
    return offsets


def _row_masks(shape: Shape, layout: Layout) -> dict[str, Words]:
    below = aligned((shape.n_rows + 1, layout.n_lanes), np.uint64)  # one spare row: vector loads run past the end
    above = aligned((shape.n_rows + 1, layout.n_lanes), np.uint64)
    if layout.lanes_per_row == 1:
        bits_per_row = 64 // layout.rows_per_lane
        lane, place = np.divmod(np.arange(shape.n_rows), layout.rows_per_lane)
        mask = np.uint64((1 << shape.n_columns) - 1) << (place * bits_per_row).astype(np.uint64)
        for row in range(shape.n_rows):
            np.bitwise_or.at(below[row], lane[row:], mask[row:])
            np.bitwise_or.at(above[row], lane[: row + 1], mask[: row + 1])
    return {"rows_from": below, "rows_to": above}


def _nesting(shape: Shape, layout: Layout) -> Words:
    masks = np.zeros((max(layout.nest_steps, 1), layout.effective_words), np.uint64)
    pixel = np.arange(shape.n_pixels)
    field, word = pixel // shape.levels, pixel // FEATURES_PER_WORD
    for step in range(layout.nest_steps):
        low = pixel[: max(0, len(pixel) - (1 << step))]
        high = low + (1 << step)
        low = low[(field[low] == field[high]) & (word[low] == word[high])]
        np.bitwise_or.at(masks[step], word[low], np.uint64(1) << (low % FEATURES_PER_WORD).astype(np.uint64))
        masks[step] |= masks[step] << np.uint64(FEATURES_PER_WORD)
    return masks
