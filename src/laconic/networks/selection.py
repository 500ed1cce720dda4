"""Parameters picked one by one: how many, and which."""

import numpy as np
from numpy.typing import NDArray

from laconic.networks.vector import Vector

Mask = NDArray[np.bool_]
MANY, SAMPLED = 1 << 15, 1 << 12  # scores of which so many are looked at first


def count_due(size: int, share: float) -> int:
    """At most that share, in whole numbers; 0.29 · 100 is less than 29 to a computer."""
    return int(share * size + 1e-9)


def pick_highest(scores: Vector, n_due: int) -> Mask:
    """So many of them; of equal ones the first."""
    if n_due == 0:
        return np.zeros(scores.size, np.bool_)
    threshold = find_largest(scores, n_due)
    picked: Mask = scores > threshold
    picked[np.flatnonzero(scores == threshold)[: n_due - np.count_nonzero(picked)]] = True
    return picked


def find_largest(scores: Vector, rank: int) -> np.float32:
    """The rank-th largest; of many, sought only between two that a sample says are around it."""
    n_below = scores.size - rank
    if scores.size > MANY:
        sample = np.sort(scores[:: scores.size // SAMPLED | 1])  # an odd step: rows are of even length
        place, margin = n_below * sample.size // scores.size, SAMPLED // 32
        low, high = sample[max(place - margin, 0)], sample[min(place + margin, sample.size - 1)]
        between = scores[np.flatnonzero((scores >= low) & (scores <= high))]
        n_lower = int(np.count_nonzero(scores < low))
        if n_lower <= n_below < n_lower + between.size:
            scores, n_below = between, n_below - n_lower
    found: np.float32 = np.partition(scores, n_below)[n_below]
    return found


def keep_largest(values: Vector, n_kept: int) -> Vector:
    """Zeros but for the entries farthest from 0."""
    kept = np.zeros_like(values)
    places = np.argpartition(np.abs(values), len(values) - n_kept)[len(values) - n_kept :]
    kept[places] = values[places]
    return kept
