"""What a raw row is made of in C, thresholds in the same numbers, and rows to compare on where none are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.export.c.tables import INTEGERS
from laconic.models.portable import PortableModel
from laconic.models.preprocessing import Adaptive, PlaceQuantiles, Preprocessing, Quantiles, Thermometer, Threshold

BYTE = 255


@dataclass(frozen=True)
class Values:
    """A C type that holds every value of such rows."""

    ctype: str
    rows_dtype: np.dtype[Any]  # of the rows in Python

    @classmethod
    def of(cls, rows: NDArray[Any]) -> Values:
        """By what rows may hold rather than what they happen to hold: others are to come."""
        for ctype, kind in (("uint8_t", np.uint8), ("int16_t", np.int16), ("int32_t", np.int32), ("float", np.float32)):
            if np.can_cast(rows.dtype, kind):
                return cls(ctype, rows.dtype)
        is_small = rows.dtype.kind in "iu" and rows.min() >= -(1 << 31) and rows.max() < 1 << 31
        return cls("int32_t" if is_small else "double", rows.dtype)

    def write(self, rows: NDArray[Any]) -> bytes:
        kinds = {"float": np.float32, "double": np.float64} | INTEGERS
        return rows.astype(kinds[self.ctype]).tobytes()

    def convert(self, thresholds: NDArray[np.float64]) -> NDArray[Any]:
        """So that x > t says the same of all values of this type."""
        if self.ctype == "double":
            return thresholds
        if self.ctype == "float":
            nearest = thresholds.astype(np.float32)
            below: NDArray[np.float32] = np.nextafter(nearest, np.float32(-np.inf))
            return np.where(nearest > thresholds, below, nearest)
        limit = np.iinfo(INTEGERS[self.ctype])
        return np.floor(thresholds).clip(max(limit.min - 1, -(1 << 31)), limit.max).astype(np.int64)


def list_thresholds(preprocessing: Preprocessing, values: Values) -> NDArray[np.float64]:
    """Of the bits of a value, or of every place's; bits that are none have one at zero."""
    if isinstance(preprocessing, Threshold):
        # NumPy compares floats with a lone number in their own precision
        as_row = values.rows_dtype.type if values.rows_dtype.kind == "f" else float
        return np.array([as_row(preprocessing.above)], np.float64)
    if isinstance(preprocessing, Thermometer):
        return np.array(preprocessing.thresholds, np.float64)
    if isinstance(preprocessing, PlaceQuantiles):
        return preprocessing.thresholds.astype(np.float64)
    if isinstance(preprocessing, Quantiles):
        return np.array([threshold for column in preprocessing.thresholds for threshold in column], np.float64)
    return np.zeros(1)


def draw_rows(portable: PortableModel, n_rows: int, rng: np.random.Generator) -> NDArray[Any]:
    """Random ones, from dark to bright, as far as thresholds make a difference."""
    preprocessing, shape = portable.preprocessing, portable.about.input_shape
    low, high, is_whole = find_range(preprocessing)
    ends = np.sort(rng.random((2, n_rows, *[1] * len(shape))), axis=0)  # a range of its own for each row
    shares = ends[0] + (ends[1] - ends[0]) * rng.random((n_rows, *shape))
    rows: NDArray[np.float64] = low + (high - low) * shares
    return np.rint(rows).astype(np.uint8) if is_whole else rows.astype(np.float32)


def find_range(preprocessing: Preprocessing) -> tuple[Any, Any, bool]:
    """The lowest and the highest value that are worth a look, and whether they are bytes."""
    if isinstance(preprocessing, Quantiles):
        ends = [(min(column), max(column)) if column else (0.0, 1.0) for column in preprocessing.thresholds]
        low, high = np.array(ends).T
    elif isinstance(preprocessing, PlaceQuantiles):
        low, high = preprocessing.thresholds.min(axis=-1), preprocessing.thresholds.max(axis=-1)
    elif isinstance(preprocessing, Threshold):
        low, high = np.zeros(1), np.full(1, BYTE if 1 <= preprocessing.above < BYTE else 2 * preprocessing.above)
    elif isinstance(preprocessing, Thermometer):
        low, high = np.zeros(1), np.full(1, preprocessing.top)
    else:
        return 0, BYTE if isinstance(preprocessing, Adaptive) else 1, True
    is_whole = bool(low.min() >= 0 and 1 < high.max() <= BYTE and not isinstance(preprocessing, Quantiles))
    if is_whole:
        return 0, min(BYTE, np.ceil(high.max())), True
    room = np.maximum(high - low, 1e-3 * np.abs(high) + 1e-6) / 2
    return low - room, high + room, False
