"""Where literals fail, as bitmaps: what fuzzy clauses are counted from; shared by every machine of one shape.

A pixel literal fails where its negation holds, which has a bitmap already (geometry.py). Those of position literals are
the same for all images: they stand behind the others, and with them an empty one, which fills lists up.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from laconic.tsetlin.geometry import SLOTS_PER_WORD, Layout, Shape, Words, aligned, geometry

ROOM_BEHIND = 64  # lanes, which loads that start in the last rows of a bitmap run into


class Failing(NamedTuple):
    offsets: NDArray[np.int32]  # [slot] first byte of the bitmap of where the literal fails
    nowhere: int  # first byte of an empty bitmap
    first_lane: int  # where bitmaps that no image changes begin
    standing: Words
    grid: Words  # [vector, lane] the patches there are, each in one vector only
    list_capacity: int  # entries for a clause, and room for stores to run on


@lru_cache(maxsize=64)
def failing(shape: Shape) -> Failing:
    if shape.is_flat:
        shape = Shape.flat(shape.n_pixels)
    layout, tables = geometry(shape)
    n_pixels, n_features = shape.n_pixels, shape.n_features
    holds, negations = np.split(shape.literal_slots, 2)
    first_lane = 2 * layout.negated + ROOM_BEHIND
    unit = 8 if shape.is_flat else 1  # flat offsets are counted in lanes
    offsets = np.zeros(layout.n_words * SLOTS_PER_WORD + SLOTS_PER_WORD, np.int32)
    offsets[holds[:n_pixels]] = tables.offsets[negations[:n_pixels]].astype(np.int32) * unit
    offsets[negations[:n_pixels]] = tables.offsets[holds[:n_pixels]].astype(np.int32) * unit

    n_lanes, n_positions = layout.n_lanes, n_features - n_pixels
    places = 8 * (first_lane + n_lanes * np.arange(2 * n_positions + 1))
    offsets[holds[n_pixels:]], offsets[negations[n_pixels:]] = np.split(places[:-1], 2)
    standing = aligned((2 * n_positions + 1) * n_lanes, np.uint64)
    above = _positions_above(shape)  # [position feature, patch]
    bitmaps = [_draw(layout, patches) for patches in (*~above, *above)]
    standing[: 2 * n_positions * n_lanes] = np.concatenate([*bitmaps, np.zeros(0, np.uint64)])
    grid = np.zeros(layout.mask_lanes, np.uint64)
    everywhere = _draw(layout, np.ones(above.shape[1], np.bool_))
    for first in range(0, layout.mask_lanes, 8):  # the last vector is moved back to end with the bitmap
        start = min(first, n_lanes - 8)
        grid[2 * first - start : first + 8] = everywhere[first : start + 8]
    n_words = shape.n_literals + 8 + 40
    return Failing(offsets, int(places[-1]), first_lane, standing, grid, -(-n_words // 16) * 16)


def _positions_above(shape: Shape) -> NDArray[np.bool_]:
    """[position feature, patch] whether it holds there, patches row by row."""
    row, column = np.divmod(np.arange(shape.n_rows * shape.n_columns), shape.n_columns)
    rows, columns = row > np.arange(shape.n_rows - 1)[:, None], column > np.arange(shape.n_columns - 1)[:, None]
    return np.concatenate([rows, columns])


def _draw(layout: Layout, patches: NDArray[np.bool_]) -> Words:
    """The lanes of a bitmap, from bools by patch."""
    row, column = np.divmod(np.arange(len(patches)), layout.n_columns)
    if layout.lanes_per_row == 1:
        lane, in_lane = np.divmod(row, layout.rows_per_lane)
        bit = (in_lane << layout.log_row_bits) + column
    else:
        lane, bit = row * layout.lanes_per_row + column // 64, column % 64
    lanes = np.zeros(layout.n_lanes, np.uint64)
    np.bitwise_or.at(lanes, lane[patches], np.uint64(1) << bit[patches].astype(np.uint64))
    return lanes
