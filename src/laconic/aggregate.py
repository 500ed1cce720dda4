"""How a server makes one of many: functions that more than one method uses."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Averaging: TypeAlias = Literal["mean", "clipped", "trimmed", "median"]
EVERY_AVERAGING: tuple[Averaging, ...] = ("mean", "clipped", "trimmed", "median")
TRIMMED_SHARE = 0.2  # of the clients, left out at either end


def average(
    vectors: Sequence[NDArray[Any]], weights: Sequence[float], averaging: Averaging = "mean"
) -> NDArray[np.float64]:
    """One vector for many, all of one shape.

    mean       by weight; 0 if nobody has any
    clipped    likewise, but no vector is longer than the median one
    trimmed    entry by entry without the lowest and the highest fifth (one at least, of three or more)
    median     entry by entry; like trimmed it does not heed weights, which are only what clients claim
    """
    if averaging == "median":
        return np.asarray(np.median(np.stack(vectors).astype(np.float64), axis=0))
    if averaging == "trimmed":
        n_cut = max(1, int(TRIMMED_SHARE * len(vectors))) if len(vectors) > 2 else 0
        ordered = np.sort(np.stack(vectors).astype(np.float64), axis=0)
        return np.asarray(ordered[n_cut : len(vectors) - n_cut].mean(axis=0))
    total = np.zeros(vectors[0].shape)
    for vector, weight in zip(clip_long(vectors) if averaging == "clipped" else vectors, weights, strict=True):
        total += weight * vector
    return total / (sum(weights) or 1)


def clip_long(vectors: Sequence[NDArray[Any]]) -> list[NDArray[np.float64]]:
    """Each as it is, or made as long as the median one."""
    with np.errstate(over="ignore"):  # a length beyond all numbers is cut to nothing, as it should be
        lengths = [float(np.linalg.norm(vector.astype(np.float64))) for vector in vectors]
    longest = float(np.median(lengths)) if lengths else 0.0
    shares = [min(1.0, longest / length) if length else 1.0 for length in lengths]
    return [share * vector.astype(np.float64) for share, vector in zip(shares, vectors, strict=True)]


def average_weights(
    previous: NDArray[np.int32],
    uploads: Sequence[NDArray[np.integer[Any]]],
    sizes: Sequence[int | NDArray[np.integer[Any]]],
    *,
    blend: float,
    is_new: NDArray[np.bool_],
    is_held: NDArray[np.bool_],
    averaging: Averaging = "mean",
    whole: Callable[[NDArray[np.float64]], NDArray[np.float64]] = np.trunc,
) -> NDArray[np.int32]:
    """FedTM's AverageCW over clause weights [class, clause]; sizes are the clients' example counts, or [class] of them.

    A class nobody holds keeps its weights; one merged for the first time takes the mean; others move towards it by
    `blend`. Both steps truncate, or make whole numbers as they are told to.
    """
    per_class = [np.broadcast_to(size, len(previous)) for size in sizes]
    mean = np.zeros(previous.shape)
    for label in range(len(previous)):
        counted = [k for k, size in enumerate(per_class) if size[label]]
        if counted:  # in whole numbers, which add up exactly
            rows = [uploads[k][label].astype(np.int64) for k in counted]
            mean[label] = whole(average(rows, [int(per_class[k][label]) for k in counted], averaging))
    moved = whole((1 - blend) * previous + blend * mean)
    merged = np.where(is_new[:, None], mean, moved)
    return np.where(is_held[:, None], merged, previous).astype(np.int32)


def richest(counts: Mapping[int, NDArray[np.integer[Any]]], label: int, n_chosen: int) -> list[int]:
    """The clients with most examples of a class, at most n_chosen of those that have any; ties go to the lower id."""
    return highest({client: int(mine[label]) for client, mine in counts.items() if mine[label] > 0}, n_chosen)


def find_donors(counts: Mapping[int, NDArray[np.integer[Any]]], n_chosen: int) -> dict[int, NDArray[np.bool_]]:
    """[class] of each client: whether it is among the n_chosen that are richest in it."""
    n_parts = min(n_chosen, len(counts))  # memory does not follow a number that nobody reaches
    return {client: np.any(parts, axis=1) for client, parts in deal_parts(counts, n_parts).items()}


def deal_parts(counts: Mapping[int, NDArray[np.integer[Any]]], n_parts: int) -> dict[int, NDArray[np.bool_]]:
    """[class, part] of each client: parts of a class go in turn to the clients, at most n_parts, richest in it."""
    dealt = {client: np.zeros((len(mine), n_parts), np.bool_) for client, mine in counts.items()}
    for label in range(min(map(len, counts.values()), default=0)):
        chosen = richest(counts, label, n_parts)
        for part in range(n_parts if chosen else 0):
            dealt[chosen[part % len(chosen)]][label, part] = True
    return dealt


def highest(scores: Mapping[int, float], n_chosen: int) -> list[int]:
    """The best first; ties go to the lower id."""
    return sorted(scores, key=lambda client: (-scores[client], client))[:n_chosen]


def unite_states(
    previous: NDArray[np.bool_], sent: Iterable[tuple[NDArray[np.bool_], NDArray[np.bool_]]]
) -> NDArray[np.bool_]:
    """OR of include bits [class, clause, literal]: which [class] or [class, clause] each sent, and their bits alone.

    What nobody sent keeps its bits.
    """
    united, has_come = np.zeros_like(previous), np.zeros(previous.shape[:2], np.bool_)
    for chosen, states in sent:
        united[chosen] |= states
        has_come[chosen] = True
    return np.where(has_come[:, :, None], united, previous)


def jaccard(sets: Sequence[NDArray[np.bool_]]) -> NDArray[np.float64]:
    """[i, j] the share of what either has that both have; 0 for two that have nothing."""
    members = np.array([each.ravel() for each in sets], np.float64)
    both, sizes = members @ members.T, members.sum(axis=1)
    shares: NDArray[np.float64] = both / np.maximum(sizes[:, None] + sizes - both, 1)
    return shares


def mean_of_pairs(matrix: NDArray[np.float64]) -> float:
    """Of a symmetric [i, j], each pair once and nobody with itself; 0 without pairs."""
    pairs = matrix[np.triu_indices(len(matrix), 1)]
    return float(pairs.mean()) if len(pairs) else 0.0


def majority(votes: Sequence[NDArray[np.bool_]], weights: Sequence[float]) -> NDArray[np.bool_]:
    """[entry] the sign, True for +1, that has most weight behind it; +1 if both have the same."""
    total = np.zeros(votes[0].shape)
    for signs, weight in zip(votes, weights, strict=True):
        total += np.where(signs, weight, -weight)
    return total >= 0
