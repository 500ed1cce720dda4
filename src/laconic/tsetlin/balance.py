"""Balanced machines: what classes voted on each other's samples steers training and prediction.

Training sees, for free, the votes of the class of a sample and of one other class; their means over the last epoch are
the machine's *rivalry*. Three things follow, and take no time of their own; but harder rivals make for more feedback,
so that training takes up to a seventh longer.

- The other class of a sample is mostly drawn in proportion to its mean chance of feedback there, so that a shirt speaks
  against coats rather than against boots, which have nothing left to learn from shirts.
- Classes differ in how readily they vote, above all after little training. Each gets a bias that puts the middle
  between its votes on its own and on other samples at zero: what a clause that always fires would learn.
- A class that was raised last votes more readily than one that was lowered last. So at the end of an epoch every class
  is raised and lowered in turns, and all stop in the same phase. (A coalesced machine does both in every event.)

What each of them gives: docs/results/tsetlin.md.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

CERTAIN = 65536  # chances are counted in these parts, as the kernels do
BY_CHANCE = 3  # of four rivals are drawn by their chances, one evenly: nobody is forgotten for good
N_TURNS = 16  # at the end of an epoch, of both kinds
# rivals are drawn for so many events, or an epoch: looking again after fewer costs more than it tells
EVENTS_PER_LOOK = 4096


def start_rivalry(n_classes: int) -> NDArray[np.float64]:
    """[label, class] mean vote of a class, within ±T, on samples of a label; nan: they have not met yet."""
    return np.full((n_classes, n_classes), np.nan)


class VotesSeen(NamedTuple):
    """What classes voted on samples of some labels; votes are known once these events are trained."""

    labels: NDArray[np.int32]
    classes: NDArray[np.integer[Any]]
    votes: NDArray[np.int32]
    last: NDArray[np.bool_] | slice = slice(None)  # those of the last epoch


def remember(rivalry: NDArray[np.float64], threshold: int, seen: VotesSeen) -> None:
    """Puts the means of the last epoch's votes in the place of older ones."""
    pairs = (seen.labels * np.int64(len(rivalry)) + seen.classes)[seen.last]
    votes = seen.votes[seen.last].clip(-threshold, threshold)
    counts = np.bincount(pairs, minlength=rivalry.size).reshape(rivalry.shape)
    totals = np.bincount(pairs, votes, rivalry.size).reshape(rivalry.shape)
    np.divide(totals, counts, out=rivalry, where=counts > 0)


def draw_rivals(
    rivalry: NDArray[np.float64],
    threshold: int,
    labels: NDArray[np.int32],
    negatives: NDArray[np.int32],
    rng: np.random.Generator,
) -> NDArray[np.int32]:
    """One class of `negatives` for each label, never its own."""
    votes = np.nan_to_num(rivalry[:, negatives])
    chances = 1 + ((threshold + votes) * CERTAIN / (2 * threshold)).astype(np.int64)
    chances[negatives, np.arange(len(negatives))] = 0
    evenly = chances.sum(axis=1, keepdims=True) * (chances > 0)
    ends = np.cumsum(evenly + BY_CHANCE * (len(negatives) - 1) * chances, axis=1)
    starts = np.cumsum(ends[:, -1]) - ends[:, -1]  # labels one after the other, so that one search serves all
    drawn = starts[labels] + (rng.random(len(labels)) * ends[labels, -1]).astype(np.int64)
    place = np.searchsorted((starts[:, None] + ends).ravel(), drawn, side="right") - labels * len(negatives)
    rivals: NDArray[np.int32] = negatives[place]
    return rivals


def order_by_class(classes: NDArray[np.integer[Any]], n_classes: int) -> NDArray[np.int64]:
    """Places of events, class by class, each class in the order given but for its last turns.

    classes: that raised and that lowered by each sample, one after the other.
    """
    lowers = (np.arange(len(classes)) % 2).astype(classes.dtype)
    kinds = 2 * classes + lowers
    sizes = np.bincount(kinds, minlength=2 * n_classes)
    to_come = np.empty(len(classes), np.int64)  # events of the same kind after this one
    to_come[np.argsort(kinds, kind="stable")] = np.repeat(np.cumsum(sizes), sizes) - 1 - np.arange(len(classes))
    n_turns = np.minimum(sizes.reshape(-1, 2).min(axis=1), N_TURNS)
    is_last = to_come < n_turns[classes]
    place = np.argsort(2 * classes + is_last, kind="stable")
    last, ends = np.flatnonzero(is_last), np.cumsum(sizes)[1::2]
    place[ends[classes[last]] - 2 * (to_come[last] + 1) + lowers[last]] = last
    return place


def choose_bias(rivalry: NDArray[np.float64]) -> NDArray[np.int32]:
    """[class]; 0 for a class that has not met both its own and other samples."""
    own, others = rivalry.diagonal(), rivalry.copy()
    np.fill_diagonal(others, np.nan)
    met = ~np.isnan(others)
    of_others = np.where(met, others, 0).sum(axis=0) / np.maximum(met.sum(axis=0), 1)
    middle = np.where(met.any(axis=0) & ~np.isnan(own), (own + of_others) / 2, 0)
    return -np.rint(middle).astype(np.int32)
