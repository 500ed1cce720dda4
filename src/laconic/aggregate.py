"""How a server makes one of many: functions that more than one method uses."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def average_weights(
    previous: NDArray[np.int32],
    uploads: Sequence[NDArray[np.integer[Any]]],
    sizes: Sequence[int],
    *,
    blend: float,
    is_new: NDArray[np.bool_],
    is_held: NDArray[np.bool_],
) -> NDArray[np.int32]:
    """FedTM's AverageCW over clause weights [class, clause]; sizes are the clients' example counts.

    A class nobody holds keeps its weights; one merged for the first time takes the mean; others move towards it by
    `blend`. Both steps truncate.
    """
    total = np.zeros(previous.shape, np.int64)
    for weights, size in zip(uploads, sizes, strict=True):
        total += size * weights.astype(np.int64)
    mean = np.trunc(total / sum(sizes))
    moved = np.trunc((1 - blend) * previous + blend * mean)
    merged = np.where(is_new[:, None], mean, moved)
    return np.where(is_held[:, None], merged, previous).astype(np.int32)


def richest(counts: Mapping[int, NDArray[np.integer[Any]]], label: int, n_chosen: int) -> list[int]:
    """The clients with most examples of a class, at most n_chosen of those that have any; ties go to the lower id."""
    holders = [client for client in counts if counts[client][label] > 0]
    return sorted(holders, key=lambda client: (-int(counts[client][label]), client))[:n_chosen]
