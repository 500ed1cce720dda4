"""Weights in fewer bits: halves, or whole numbers with a scale for each row."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from laconic.networks.vector import Vector

LIMITS = {"int8": 127, "int4": 7}
DTYPES = {"fp32": np.float32, "fp16": np.float16}  # of what has no rows to scale by


class Packed(NamedTuple):
    exact: NDArray[np.floating[Any]] | None  # [entry] float32 or float16
    levels: NDArray[np.integer[Any]] | None  # [entry]
    scales: NDArray[np.floating[Any]] | None  # [row] what a level is worth


def pack(values: Vector, row_starts: NDArray[np.int64], kept: str) -> Packed:
    if kept == "fp32":
        return Packed(values, None, None)
    if kept == "fp16":
        return Packed(values.astype(np.float16), None, None)
    if not values.size:
        return Packed(values, None, None)
    largest = np.maximum.reduceat(np.abs(values), row_starts)
    scales = (largest / LIMITS[kept]).astype(np.float32)
    each = spread(scales, row_starts, values.size)
    levels = np.rint(values / np.where(each > 0, each, 1)).astype(np.int8)
    return Packed(None, levels, scales)


def unpack(packed: Packed, row_starts: NDArray[np.int64]) -> Vector:
    if packed.exact is not None:
        return packed.exact.astype(np.float32, copy=False)
    assert packed.levels is not None
    assert packed.scales is not None
    values: Vector = packed.levels * spread(packed.scales, row_starts, packed.levels.size)
    return values


def check_packed(packed: Packed, row_starts: NDArray[np.int64], n_entries: int) -> None:
    """ValueError unless it is in exactly one form, and that of the right size."""
    exact, levels, scales = packed
    if (exact is None) == (levels is None) or (levels is None) != (scales is None):
        came = [name for name, part in packed._asdict().items() if part is not None]
        raise ValueError(f"{' and '.join(came) or 'nothing'} came; exact, or levels and scales, were expected")
    sizes = {"exact": n_entries, "levels": n_entries, "scales": len(row_starts)}
    for name, part in packed._asdict().items():
        if part is not None and part.shape != (sizes[name],):
            raise ValueError(f"{name} has shape {part.shape}, {(sizes[name],)} was expected")


def spread(scales: NDArray[np.floating[Any]], row_starts: NDArray[np.int64], size: int) -> Vector:
    return np.repeat(scales.astype(np.float32, copy=False), np.diff(row_starts, append=size))
