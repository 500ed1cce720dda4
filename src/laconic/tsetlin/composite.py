"""Composites: several machines vote together, the sums of each divided by how far they spread."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from laconic.tsetlin.machine import Machine, class_sums
from laconic.tsetlin.packing import Packed


def clamped_sums(machine: Machine, x: ArrayLike | Packed) -> NDArray[np.int32]:
    """[sample, class] votes between -T and T, as composites take them."""
    clamped: NDArray[np.int32] = class_sums(machine, x).clip(-machine.threshold, machine.threshold)
    return clamped


def measure_span(sums: NDArray[np.integer]) -> float:
    """From the lowest to the highest sum over all samples and classes; 1 where all are equal."""
    return float(np.ptp(sums)) or 1.0 if sums.size else 1.0


def combine(sums: Sequence[NDArray[np.integer]], spans: Sequence[float] | None) -> NDArray[np.float64]:
    """[sample, class] votes of machines whose sums have these spans; None: every sample's own span over its classes."""
    votes = np.zeros(sums[0].shape)
    for k, each in enumerate(sums):
        if spans is not None:
            votes += each / spans[k]
        else:
            own = np.ptp(each, axis=1, keepdims=True)
            votes += each / np.where(own, own, 1)
    return votes


def elect(
    sums: Sequence[NDArray[np.integer]], spans: Sequence[float] | None, among: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """[sample] the class with most votes of all machines; among: [class] those that may be chosen."""
    votes = combine(sums, spans)
    if among is not None:
        votes[:, ~among] = -np.inf
    best: NDArray[np.int64] = votes.argmax(axis=1)
    return best
