"""A head from class means that are told once: everyone's means, and the spread of the client's own examples.

Where features of each class are Gaussian with one covariance S, the best head has rows (S + ridge)^-1 mean and biases
-mean (S + ridge)^-1 mean / 2.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from laconic import linear
from laconic.algorithm import ClientId
from laconic.banks.kernels import divide, factorise, multiply
from laconic.wire import Bits, CountArray, Due, Expected, Ints, Message, UpTo

MEANS_LIMIT = 31  # of whole numbers that means travel as


class Means(Message):
    holds: Bits  # [class]
    counts: CountArray  # [held class] examples
    rows: Ints  # [held class, feature]
    exponents: Ints  # [held class]


@dataclass
class ClassMeans:
    """Part of a server's state."""

    totals: linear.Matrix  # [class, feature]
    counts: NDArray[np.int64]  # [class]
    holders: dict[ClientId, NDArray[np.bool_]] = field(default_factory=dict)  # [class] of each who has told

    def take(self, replies: Mapping[ClientId, Means]) -> None:
        for client, reply in replies.items():
            self.totals[reply.holds] += reply.counts[:, None] * linear.dequantise(reply.rows, reply.exponents)
            self.counts[reply.holds] += reply.counts
            self.holders[client] = reply.holds

    def find(self, client: ClientId) -> linear.Matrix:
        """[class it holds, feature]"""
        holds = self.holders[client]
        return linear.snap(self.totals[holds] / np.maximum(self.counts[holds], 1)[:, None])


def expect_means(n_classes: int, n_features: int) -> Expected:
    few = UpTo(n_classes)
    per_class = {"holds": Due((n_classes,)), "counts": Due((few,)), "exponents": Due((few,), item_bytes=1)}
    return per_class | {"rows": Due((few, n_features), item_bytes=1)}


def check_means(_: Message, reply: Means) -> None:
    n_held = np.count_nonzero(reply.holds)
    if not len(reply.counts) == len(reply.rows) == len(reply.exponents) == n_held:
        raise ValueError(f"{len(reply.counts)} counts, {len(reply.rows)} rows of {n_held} classes")
    linear.check_quantised(reply.rows, reply.exponents, MEANS_LIMIT)


def find_means(lesson: linear.Lesson) -> tuple[linear.Matrix, NDArray[np.int64]]:
    """[held class, feature] without the bias, and how many examples each is of."""
    n_held = len(lesson.log_shares)
    counts = np.bincount(lesson.places, minlength=n_held)
    sums = [lesson.features[lesson.places == place, 1:].sum(axis=0) for place in range(n_held)]
    return linear.snap(np.array(sums) / np.maximum(counts, 1)[:, None]), counts


def fit_head(lesson: linear.Lesson, means: linear.Matrix, ridge: float) -> linear.Matrix:
    """[held class, 1 + feature]; sums are exact or in one order, so that it is the same on any CPU."""
    own, counts = find_means(lesson)
    features = lesson.features[:, 1:]
    spread = features.T @ features
    for mean, count in zip(own, counts, strict=True):
        spread -= count * np.outer(mean, mean)
    factor = spread / max(len(features), 1) + ridge * np.eye(len(spread))
    factorise(factor)
    halves = means.copy()
    divide(halves, factor)  # halves @ halves.T are the products of means by the inverse
    inverse, rows = np.eye(len(factor)), np.empty_like(means)
    divide(inverse, factor)
    multiply(halves, np.ascontiguousarray(inverse.T), rows)
    biases = -(halves**2).cumsum(axis=1)[:, -1:] / 2
    return linear.snap(np.concatenate([biases, rows], axis=1))
