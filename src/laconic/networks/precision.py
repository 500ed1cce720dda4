"""Weights in fewer bits: halves, whole numbers with a scale for each row, or levels of a normal distribution."""

import math
from functools import lru_cache
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


# ---------------------------------------------------------------- nearly normal numbers
def round_normal(values: Vector, bits: int) -> tuple[NDArray[np.bool_], float]:
    """Planes [bit, entry] of the nearest levels' numbers, highest first, and the scale of these levels.

    values: normal but for their size, as a rotation makes them; over rotations, what is read is true on average.
    """
    squares = float(values @ values)
    normal = values * np.float32(math.sqrt(len(values) / squares)) if squares > 0 else values
    numbers = np.searchsorted(find_borders(bits), normal)
    planes = (numbers >> np.arange(bits - 1, -1, -1)[:, None] & 1).astype(np.bool_)
    along = float(values @ find_levels(bits)[numbers].astype(np.float32))
    return planes, float(np.float32(squares / along)) if along > 0 else 0.0


def read_normal(planes: NDArray[np.bool_], scale: float) -> Vector:
    """[entry]"""
    bits = len(planes)
    numbers = (planes.astype(np.int64) << np.arange(bits - 1, -1, -1)[:, None]).sum(axis=0)
    values: Vector = np.float32(scale) * find_levels(bits)[numbers].astype(np.float32)
    return values


@lru_cache(8)
def find_levels(bits: int) -> NDArray[np.float64]:
    """[2 ** bits] the levels that round a standard normal number best (Lloyd, Max), in rising order."""
    levels = np.linspace(-1, 1, 2**bits + 1)[1:] - 2.0**-bits
    for _ in range(5000):  # four bits need a few hundred
        borders = np.concatenate([[-np.inf], (levels[1:] + levels[:-1]) / 2, [np.inf]])
        density = np.exp(-(borders**2) / 2) / math.sqrt(2 * math.pi)
        mass = np.diff([0.5 * (1 + math.erf(border / math.sqrt(2))) for border in borders])
        moved = -np.diff(density) / mass
        if np.abs(moved - levels).max() < 1e-9:
            break
        levels = moved
    return levels


def find_borders(bits: int) -> NDArray[np.float64]:
    levels = find_levels(bits)
    borders: NDArray[np.float64] = (levels[1:] + levels[:-1]) / 2
    return borders
