"""Parameters picked one by one: how many of a tensor, which, and at what precision they travel."""

import numpy as np
from numpy.typing import NDArray

from laconic.networks import Network, Part, Piece, Spec, Training, Vector, layout

Mask = NDArray[np.bool_]
DTYPES = {"fp32": np.float32, "fp16": np.float16}


def count_due(size: int, share: float) -> int:
    """At most that share, in whole numbers; 0.29 · 100 is less than 29 to a computer."""
    return int(share * size + 1e-9)


def pick_highest(scores: Vector, n_due: int) -> Mask:
    """So many of them; of equal ones the first."""
    if n_due == 0:
        return np.zeros(scores.size, np.bool_)
    threshold = np.partition(scores, scores.size - n_due)[scores.size - n_due]
    picked: Mask = scores > threshold
    picked[np.flatnonzero(scores == threshold)[: n_due - np.count_nonzero(picked)]] = True
    return picked


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
    vector[part.mask] = values
    network.vector = vector


def check_precision(training: Training) -> None:
    for name in ("up", "down"):
        if getattr(training, name) not in DTYPES:
            raise ValueError(
                f'method.training.{name} = "{getattr(training, name)}": what is sent here has no rows to scale by; '
                f"choose {' or '.join(DTYPES)}"
            )
