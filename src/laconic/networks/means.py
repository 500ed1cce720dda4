"""Means of some of many vectors, for many such choices at once: a block of entries stays in cache for all of them."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.optimize import nnls

from laconic.networks.vector import Vector

compiled: Callable[[Callable[..., Any]], Callable[..., Any]] = njit(
    nogil=True, cache=True, boundscheck=False, error_model="numpy"
)
BLOCK = 1024  # entries; 8 KB of sums


def average_some_of(vectors: NDArray[np.float32], joins: NDArray[np.bool_]) -> list[Vector]:
    """For each row of joins [choice, vector] the mean of the rows of vectors that join; to the bit `average` them."""
    means = np.empty((len(joins), vectors.shape[1]), np.float32)
    add_up(vectors, joins, means)
    return list(means)


@compiled
def add_up(vectors: Any, joins: Any, means: Any) -> None:
    sums = np.empty(BLOCK)
    for start in range(0, vectors.shape[1], BLOCK):
        for i in range(len(joins)):
            sums[:] = 0
            n_joined = 0
            for j in range(len(vectors)):
                if joins[i, j]:
                    n_joined += 1
                    part = vectors[j, start : start + BLOCK]  # places counted from 0 become vector instructions
                    for k in range(len(part)):
                        sums[k] += part[k]
            mean = means[i, start : start + BLOCK]
            for k in range(len(mean)):
                mean[k] = sums[k] / n_joined


def least_on_simplex(cost: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weights a >= 0 of sum 1 with the least a' cost a.

    They are the y >= 0 with the least y' cost y / 2 - sum(y), over its sum: both have the same slopes where they end.
    With cost = L L', that is least squares of L' y against the z with L z = 1.
    """
    scale = np.trace(cost) / len(cost)
    if scale <= 0:
        return np.full(len(cost), 1 / len(cost))
    lower = np.linalg.cholesky(cost / scale + 1e-9 * np.eye(len(cost)))
    weights: NDArray[np.float64] = nnls(lower.T, np.linalg.solve(lower, np.ones(len(cost))))[0]
    weights /= weights.sum()
    return weights
