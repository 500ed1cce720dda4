"""Parameters picked one by one: how many, which, and how much alike two choices are."""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from laconic.networks.vector import Vector

Mask = NDArray[np.bool_]
Overlap = NDArray[np.float64]  # [i, j] of clients, see measure_overlap
FAINTEST = 1e-10  # scores up to here tell nothing
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


def measure_overlap(masks: Sequence[Mask]) -> Overlap:
    """[i, j] 1 - |m_i - m_j| / (2 |m_i|); 0 if nothing is critical to i."""
    packed = [np.packbits(mask) for mask in masks]
    both = np.array([[int(np.bitwise_count(a & b).sum()) for b in packed] for a in packed])
    own = both.diagonal()
    differing = own[:, None] + own[None, :] - 2 * both
    return np.where(own[:, None] > 0, 1 - differing / (2 * np.maximum(own[:, None], 1)), 0.0)


def spread_density(shapes: Mapping[str, tuple[int, ...]], density: float) -> dict[str, float]:
    """Erdős–Rényi with kernels: a tensor keeps (sum of its sides) / (their product) times what makes up the density."""
    sizes = {name: math.prod(shape) for name, shape in shapes.items()}
    whole = set[str]()  # tensors that would keep more than all of themselves
    while True:
        raw = {name: sum(shapes[name]) / sizes[name] for name in shapes if name not in whole}
        n_left = density * sum(sizes.values()) - sum(sizes[name] for name in whole)
        factor = n_left / sum(raw[name] * sizes[name] for name in raw) if raw else 0.0
        largest = max(raw.values(), default=0.0)
        if factor * largest <= 1:
            return {name: 1.0 if name in whole else factor * raw[name] for name in shapes}
        whole |= {name for name in raw if raw[name] == largest}


def pick_share(scores: Vector, places: Iterable[slice], share: float) -> Mask:
    """The highest ⌊share · size⌋ of each piece, without what is faint."""
    chosen = np.zeros(scores.size, np.bool_)
    for place in places:
        chosen[place] = pick_highest(scores[place], count_due(place.stop - place.start, share))
    return chosen & (scores > FAINTEST)
