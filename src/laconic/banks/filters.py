"""Filters: patches of public photographs, whitened by what such patches have in common, as small whole numbers."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from laconic.banks.kernels import divide, factorise, multiply
from laconic.banks.photographs import cut_pieces

N_FILTERS = 500
N_PATCHES = 20_000  # by which the others are whitened
SHRINKAGE = 0.1  # added to each variance, so that what hardly ever varies is not blown up
UNIT = 64  # whole numbers for each standard deviation of a patch
GAIN = 128  # of a filter: its response to a patch whose standard deviation is 1 spreads as much
MOST = 126  # rounding may add 1
SEED = 2026


@cache
def make_filters(side: int, n_layers: int) -> NDArray[np.int8]:
    """[filter, pixel and layer] with sum 0; of two patches the one that is further from the usual becomes a filter."""
    stream = np.random.PCG64(SEED)
    known, chosen = (
        normalise(cut_pieces(stream, n, side, side, n_layers).reshape(n, -1)) for n in (N_PATCHES, 2 * N_FILTERS)
    )
    products = known.T @ known  # whole numbers below 2^53: exact, whatever adds them up
    inverse = invert(products / (N_PATCHES * UNIT**2) + SHRINKAGE * np.eye(len(products)))
    white = np.empty_like(chosen)
    multiply(chosen / UNIT, inverse, white)
    energy = add_up(white * chosen / UNIT)
    best = energy.reshape(-1, 2).argmax(axis=1) + 2 * np.arange(N_FILTERS)
    return balance(GAIN * white[best] / np.sqrt(energy[best])[:, None])


def add_up(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """[row] from left to right, an order that NumPy's own sums do not keep."""
    return rows.cumsum(axis=1)[:, -1]


def normalise(patches: NDArray[np.uint8]) -> NDArray[np.float64]:
    """[patch, number] whole numbers around 0, whatever the patch's light and contrast."""
    values = patches.astype(np.float64)
    n, total, squares = values.shape[1], values.sum(axis=1), (values**2).sum(axis=1)
    spread = np.sqrt(n * squares - total**2 + 10 * n**2)  # as in kernels.measure_contrast
    whole: NDArray[np.float64] = np.rint(UNIT * (n * values - total[:, None]) / spread[:, None])
    return whole


def invert(square: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of a symmetric matrix."""
    factor, halves, inverse = square.copy(), np.eye(len(square)), np.empty_like(square)
    factorise(factor)
    divide(halves, factor)
    multiply(halves, np.ascontiguousarray(halves.T), inverse)
    return inverse


def balance(rows: NDArray[np.float64]) -> NDArray[np.int8]:
    """Rounded so that each row adds up to 0: plain light then gives no response at all."""
    rows = rows - add_up(rows)[:, None] / rows.shape[1]
    rows = rows * np.minimum(1, MOST / np.abs(rows).max(axis=1, keepdims=True))
    whole = np.rint(rows)
    for row, numbers in zip(rows, whole, strict=True):
        excess = int(numbers.sum())  # of less than half a number each
        nearest = np.argsort(np.sign(excess) * (row - numbers), kind="stable")
        numbers[nearest[: abs(excess)]] -= np.sign(excess)
    return whole.astype(np.int8)
