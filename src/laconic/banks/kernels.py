"""The loops of the banks, @njit only: no checks. They give the same bits on any CPU.

Bytes times whole numbers below 128 add up to less than 2^24, which float32 holds exactly: in any order, fused or not.
Where sums are not exact, nothing is fused or put in another order, and each operation rounds as IEEE 754 says.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
exact: Decorator = njit(nogil=True, cache=True, fastmath={"contract", "reassoc", "nsz"}, error_model="numpy")
ordered: Decorator = njit(nogil=True, cache=True, error_model="numpy")

BLOCK = 64  # filters at a time: with the sums of four places they stay in the fastest cache
TOGETHER = 8  # rows of a matrix for which another's rows are read once


@exact
def slide(image: Any, filters: Any, side: Any, stride: Any, n_layers: Any, out: Any) -> None:
    """out: [row, column, filter] of places. image: [row, column and layer]; filters: [block, number, filter]."""
    n_rows, n_columns, _ = out.shape
    span, step = side * n_layers, stride * n_layers
    sums = np.empty((4, BLOCK), np.float32)
    a, b, c, d = sums[0], sums[1], sums[2], sums[3]
    for block in range(len(filters)):
        for row in range(n_rows):
            for column in range(0, n_columns, 4):  # four places at once, so that a filter is read a quarter as often
                n_places = min(4, n_columns - column)
                second, third, fourth = step * min(1, n_places - 1), step * min(2, n_places - 1), step * (n_places - 1)
                sums[:] = 0
                for y in range(side):
                    pixels = image[row * stride + y]
                    for x in range(span):
                        at = column * step + x
                        p, q, r, s = pixels[at], pixels[at + second], pixels[at + third], pixels[at + fourth]
                        weights = filters[block, y * span + x]
                        for k in range(BLOCK):
                            weight = weights[k]
                            a[k] += p * weight
                            b[k] += q * weight
                            c[k] += r * weight
                            d[k] += s * weight
                for place in range(n_places):
                    out[row, column + place, block * BLOCK : (block + 1) * BLOCK] = sums[place]


@ordered
def rectify(sums: Any, contrast: Any, dead: Any, n_cells: Any, out: Any) -> None:
    """Adds to out, [filter, cell of the image, sign], levels beyond `dead` either way; cells: so many each way."""
    n_rows, n_columns, _ = sums.shape
    for row in range(n_rows):
        for column in range(n_columns):
            cell = n_cells * (n_cells * row // n_rows) + n_cells * column // n_columns
            for k in range(len(out)):
                level = np.int32(sums[row, column, k] * contrast[row, column])
                out[k, cell, 0] += max(0, level - dead)
                out[k, cell, 1] += max(0, -level - dead)


@ordered
def measure_contrast(image: Any, side: Any, stride: Any, n_layers: Any, scale: Any, out: Any) -> None:
    """[row, column] of places: scale / (n times the patch's standard deviation), for a patch of n numbers."""
    n, span, step = side * side * n_layers, side * n_layers, stride * n_layers
    for row in range(out.shape[0]):
        for column in range(out.shape[1]):
            total, squares = 0.0, 0.0
            for y in range(side):
                for x in range(span):
                    value = np.float64(image[row * stride + y, column * step + x])
                    total += value
                    squares += value * value
            # 10: a patch that is all but plain is noise, and is not blown up
            out[row, column] = np.float32(scale / np.sqrt(n * squares - total * total + 10 * n * n))


@ordered
def multiply(left: Any, right: Any, out: Any) -> None:
    """out: left @ right, each sum in the order of left's columns."""
    out[:] = 0
    for first in range(0, len(left), TOGETHER):
        for k in range(len(right)):
            for row in range(first, min(first + TOGETHER, len(left))):
                number = left[row, k]
                for column in range(right.shape[1]):
                    out[row, column] += number * right[k, column]


@ordered
def factorise(square: Any) -> None:
    """In place, its Cholesky factor: upper.T @ upper; what stood below the diagonal becomes zero."""
    n = len(square)
    for j in range(n):
        pivot = np.sqrt(square[j, j])
        for k in range(j, n):
            square[j, k] /= pivot
        for i in range(j + 1, n):
            number = square[j, i]
            for k in range(i, n):
                square[i, k] -= number * square[j, k]
        square[j + 1 :, j] = 0


@ordered
def divide(rows: Any, upper: Any) -> None:
    """In place: rows @ inverse(upper)."""
    n = len(upper)
    for first in range(0, len(rows), TOGETHER):
        for j in range(n):
            for row in range(first, min(first + TOGETHER, len(rows))):
                number = rows[row, j] / upper[j, j]
                rows[row, j] = number
                for k in range(j + 1, n):
                    rows[row, k] -= number * upper[j, k]
