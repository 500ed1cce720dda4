"""A linear head on features from -1 to 1 that clients with different classes train together.

A client adds the log of its own class shares to the head's logits, so that the head learns what a feature says of a
class and not how often one client meets it. Only then do the heads of clients with other shares have a useful mean.

All sums are exact: features are multiples of 1/32, weights and residuals lie on a grid. So the number of threads, which
orders a sum, cannot change a bit of the result.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from laconic import trial

Matrix = NDArray[np.float64]
Block = tuple[NDArray[Any], ...]  # rows and columns of a head, as np.ix_ gives them
GRID_BITS = 24  # products of such features with this grid add up exactly in float64 below 2^24
EXPONENT_LIMIT = 2 * GRID_BITS  # of a row's scale; beyond it there is nothing to learn


class Limits(NamedTuple):
    """Of the whole numbers that travel, both ways from zero."""

    head: int
    change: int


# 6 and 4 bits; 4 and 3; 5 bits, and signs of what stands out
LIMITS = {"fine": Limits(31, 7), "coarse": Limits(7, 3), "signs": Limits(15, 1)}
STANDS_OUT = 2  # times the mean size of a row's numbers: what is larger becomes a sign


class Lesson(NamedTuple):
    """What a head is trained on: some examples of the classes that a client holds."""

    features: Matrix  # [example, 1 + feature], see as_features
    places: NDArray[np.int64]  # [example] its class, as a place among the held ones
    log_shares: Matrix  # [held class]


def as_features(spoken: Matrix) -> Matrix:
    """[example, 1 + feature]: a one for the bias, then the features."""
    return np.concatenate([np.ones((len(spoken), 1)), spoken], axis=1)


def find_classes(labels: NDArray[np.int64], n_classes: int) -> NDArray[np.bool_]:
    """[class] whether it is among the labels."""
    return np.bincount(labels, minlength=n_classes) > 0


def move_rows(rows: Matrix, before: NDArray[np.bool_], now: NDArray[np.bool_]) -> Matrix:
    """Rows of the classes `before` as rows of the classes `now`; zero where there was none."""
    moved = np.zeros((np.count_nonzero(now), *rows.shape[1:]))
    moved[before[now]] = rows[now[before]]
    return moved


def spread(logits: Matrix, holds: NDArray[np.bool_]) -> Matrix:
    """[example, held class] as [example, class]; -inf for those not held."""
    scores = np.full((len(logits), len(holds)), -np.inf)
    scores[:, holds] = logits
    return scores


def log_shares(labels: NDArray[np.int64], held: NDArray[np.int64]) -> Matrix:
    """[held class] of the labels that are held; a class without any counts for half an example."""
    counts = np.maximum(np.array([np.count_nonzero(labels == label) for label in held], np.float64), 0.5)
    shares: Matrix = np.log(counts / counts.sum())
    return shares


def log_chances(head: Matrix, features: Matrix, shares: Matrix) -> Matrix:
    """[example, held class] log of the probabilities; head: [held class, 1 + feature]."""
    logits = features @ head.T + shares
    logits -= logits.max(axis=1, keepdims=True)
    chances: Matrix = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return chances


def judge(head: Matrix, lesson: Lesson) -> tuple[float, Matrix]:
    """The mean cross-entropy and its gradient [held class, 1 + feature]."""
    loss, missed = find_missed(log_chances(head, lesson.features, lesson.log_shares), lesson.places)
    return loss, missed.T @ lesson.features / max(len(missed), 1)


def find_missed(chances: Matrix, places: NDArray[np.int64]) -> tuple[float, Matrix]:
    """The mean cross-entropy, and [example, held class] by how much too likely each class was."""
    missed, mine = np.exp(chances), np.arange(len(places))
    missed[mine, places] -= 1
    return -float(chances[mine, places].sum()) / max(len(mine), 1), snap(missed)


def train(head: Matrix, lesson: Lesson, *, steps: int, rate: float, decay: float) -> Matrix:
    """Gradient descent on all examples at once; `rate` is shared out among the features.

    The loss bends at most as sharply as the features are many, so that a rate does for any number of them; a step that
    goes too far all the same, and raises the loss, is taken back and the next ones are half as long.
    """
    rate /= lesson.features.shape[1]
    return descend(head, lambda ahead: judge(ahead, lesson), steps=steps, rate=rate, decay=decay)


def train_wide(lesson: Lesson, *, steps: int, rate: float, decay: float) -> Matrix:
    """The same from zero, for far more features than examples: a head is a sum of examples, so their products do.

    Weights of examples are below steps * rate / examples, small enough for sums with products to be exact as well.
    """
    n_examples, n_features = lesson.features.shape
    products, start = lesson.features @ lesson.features.T, np.zeros((n_examples, len(lesson.log_shares)))

    def judge_weights(weights: Matrix) -> tuple[float, Matrix]:
        loss, missed = find_missed(log_chances(weights.T, products, lesson.log_shares), lesson.places)
        return loss, missed / max(n_examples, 1)

    weights = descend(start, judge_weights, steps=steps, rate=rate / n_features, decay=decay)
    return weights.T @ lesson.features


def descend(
    start: Matrix, judge: Callable[[Matrix], tuple[float, Matrix]], *, steps: int, rate: float, decay: float
) -> Matrix:
    (loss, slope), here = judge(start), start
    for _ in trial.some(iter(range(steps)), steps, "step of a linear head"):
        ahead = snap(here - rate * (slope + decay * here))
        loss_ahead, slope_ahead = judge(ahead)
        if loss_ahead > loss:
            rate /= 2
        else:
            here, loss, slope = ahead, loss_ahead, slope_ahead
    return here


def snap(values: Matrix) -> Matrix:
    return np.ldexp(np.rint(np.ldexp(values, GRID_BITS)), -GRID_BITS)


def average_blocks(
    shape: tuple[int, ...], blocks: Sequence[tuple[Block, Matrix]], sizes: Sequence[int]
) -> tuple[Matrix, NDArray[np.bool_]]:
    """Mean of parts of a head, each number over those whose part has it, by size; and which numbers any part has."""
    total, weight = np.zeros(shape), np.zeros(shape)
    for (place, rows), size in zip(blocks, sizes, strict=True):
        total[place] += size * rows
        weight[place] += size
    return total / np.maximum(weight, 1), weight > 0


# ---------------------------------------------------------------- few bits
def quantise(rows: Matrix, limit: int) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Whole numbers within ±limit, and for each row the exponent of its scale, the smallest power of 2 that will do.

    Powers of 2 seldom change from round to round, so that numbers sent again differ little from those sent before.
    With a limit of 1 only what stands out of its row is told, and the scale follows from all of the row.
    """
    if limit == 1:
        usual = np.maximum(np.abs(rows).sum(axis=1) / rows.shape[1], 2.0**-GRID_BITS)
        exponents = np.rint(np.log2(2 * STANDS_OUT * usual)).astype(np.int8)
        return np.rint(np.ldexp(rows, -exponents[:, None].astype(np.int64))).clip(-1, 1).astype(np.int8), exponents
    largest = np.maximum(np.abs(rows).max(axis=1, initial=0), 2.0**-GRID_BITS)
    exponents = np.ceil(np.log2(largest / limit)).astype(np.int8)
    numbers = np.rint(np.ldexp(rows, -exponents[:, None].astype(np.int64)))
    return numbers.astype(np.int8), exponents


def dequantise(numbers: NDArray[np.integer[Any]], exponents: NDArray[np.integer[Any]]) -> Matrix:
    return np.ldexp(numbers.astype(np.float64), exponents[:, None].astype(np.int64))


def check_quantised(numbers: NDArray[np.integer[Any]], exponents: NDArray[np.integer[Any]], limit: int) -> None:
    for name, those, most in (("rows", numbers, limit), ("exponents", exponents, EXPONENT_LIMIT)):
        if np.any((those < -most) | (those > most)):
            raise ValueError(f"{name} reach from {those.min()} to {those.max()}, ±{most} were expected")
