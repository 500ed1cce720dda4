"""Parameters picked one by one: how many of a tensor, which, and at what precision they travel."""

import numpy as np
from numpy.typing import NDArray

from laconic.networks import Network, Part, Piece, Spec, Training, Vector, layout

Mask = NDArray[np.bool_]
MANY, SAMPLED = 1 << 15, 1 << 12  # scores of which so many are looked at first
DTYPES = {"fp32": np.float32, "fp16": np.float16}


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


def list_pieces(spec: Spec, part: Part) -> list[tuple[Piece, slice]]:
    """The pieces that make up a part, and where each lies in it."""
    found, stop = [], 0
    for piece in layout(spec).pieces:
        if part.mask[piece.start]:
            start, stop = stop, stop + piece.stop - piece.start
            found.append((piece, slice(start, stop)))
    return found


def replace_part(network: Network, part: Part, values: Vector) -> None:
    vector = network.vector.copy()
    vector[part.mask if part.stretch is None else part.stretch] = values
    network.vector = vector


def check_precision(training: Training) -> None:
    for name in ("up", "down"):
        if getattr(training, name) not in DTYPES:
            raise ValueError(
                f'method.training.{name} = "{getattr(training, name)}": what is sent here has no rows to scale by; '
                f"choose {' or '.join(DTYPES)}"
            )
