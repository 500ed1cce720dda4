"""A body's features as one Gaussian for each class, all of one covariance, and the linear classifier that follows."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from laconic.networks.prototypes import sum_features
from laconic.networks.vector import Vector

Matrix = NDArray[np.floating[Any]]
Labels = NDArray[np.int64]
MIN_EXAMPLES = 2  # of a class, to have a mean of its own: one for each fold
SHRINKAGE = 1e-4  # share of the mean variance in every covariance that is inverted


class Gaussians(NamedTuple):
    means: Matrix  # [class, feature]
    covariance: Matrix  # [feature, feature]


def write_triangle(covariance: Matrix) -> Vector:
    """Its rows, each from the diagonal on."""
    return covariance[np.triu_indices(len(covariance))].astype(np.float32)


def read_triangle(triangle: Matrix) -> Vector:
    n_rows = count_rows(triangle)
    covariance = np.zeros((n_rows, n_rows), np.float32)
    covariance[np.triu_indices(n_rows)] = triangle
    return covariance + np.triu(covariance, 1).T


def count_rows(triangle: Matrix) -> int:
    return math.isqrt(2 * triangle.size)  # n rows have n (n + 1) / 2 numbers


def class_means(features: Vector, labels: Labels, n_classes: int) -> NDArray[np.float64]:
    """[class, feature]; zeros where a class has no examples."""
    sums, counts = sum_features(features, labels, n_classes)
    return sums / np.maximum(counts, 1)[:, None]


def estimate(features: Vector, labels: Labels, common: Gaussians, ridge: float) -> Gaussians:
    """Of these examples; a class with too few of them has the common mean. ridge: added to every variance."""
    n_classes, n_features = common.means.shape
    is_known = np.bincount(labels, minlength=n_classes) >= MIN_EXAMPLES
    means = np.where(is_known[:, None], class_means(features, labels, n_classes), common.means)
    apart = features - means[labels]
    covariance = apart.T @ apart / max(len(labels) - 1, 1) + ridge * np.eye(n_features)
    return Gaussians(means, covariance)


def mix(own: Gaussians, common: Gaussians, trust: NDArray[np.float64]) -> Gaussians:
    """trust: in one's own means, and in one's own covariance."""
    means = trust[0] * own.means + (1 - trust[0]) * common.means
    return Gaussians(means, trust[1] * own.covariance + (1 - trust[1]) * common.covariance)


def linear_classifier(gaussians: Gaussians, shares: NDArray[np.float64]) -> tuple[Matrix, Matrix]:
    """Weights [class, feature] and biases [class] whose logits are the classes' log likelihoods and log shares."""
    means, covariance = gaussians
    n_features = len(covariance)
    mean_variance = np.trace(covariance) / n_features
    shrunk = (1 - SHRINKAGE) * covariance + SHRINKAGE * mean_variance * np.eye(n_features)
    weights = np.linalg.solve(shrunk, means.T.astype(np.float64)).T
    return weights, np.log(shares) - 0.5 * (means * weights).sum(axis=1)


def choose_trust(
    features: Vector,
    labels: Labels,
    common: Gaussians,
    shares: NDArray[np.float64],
    rng: np.random.Generator,
    ridge: float,
) -> NDArray[np.float64]:
    """With what trust the Gaussians of one half of the examples classify the other half best; see mix."""
    folds = halve(labels, rng)
    if not len(folds[0]):
        return np.zeros(2)
    halves = [
        (estimate(features[mine], labels[mine], common, ridge), features[other].astype(np.float64), labels[other])
        for mine, other in (folds, folds[::-1])
    ]

    def loss(trust: NDArray[np.float64]) -> float:
        total = 0.0
        for own, x, y in halves:
            weights, biases = linear_classifier(mix(own, common, trust), shares)
            logits = x @ weights.T + biases
            top = logits.max(axis=1)
            total += np.mean(top + np.log(np.exp(logits - top[:, None]).sum(axis=1)) - logits[np.arange(len(y)), y])
        return total

    found = minimize(loss, np.full(2, 0.5), method="L-BFGS-B", bounds=[(0, 1)] * 2, options={"maxiter": 10})
    best: NDArray[np.float64] = np.clip(found.x, 0, 1)
    return best


def halve(labels: Labels, rng: np.random.Generator) -> tuple[Labels, Labels]:
    """Two halves of every class that has enough examples; the others are left out."""
    first, second = list[Labels](), list[Labels]()
    for label in np.unique(labels):
        places = rng.permutation(np.flatnonzero(labels == label))
        if len(places) >= MIN_EXAMPLES:
            first.append(places[::2])
            second.append(places[1::2])
    none = [np.zeros(0, np.int64)]
    return np.concatenate(first or none), np.concatenate(second or none)


def find_spread(features: NDArray[Any], means: NDArray[np.float64], shares: NDArray[np.float64]) -> float:
    """(mean ‖f‖² - Σ share² ‖class mean‖²) / examples; 0 without any."""
    if not len(features):
        return 0.0
    mean_square = (features.astype(np.float64) ** 2).sum(axis=1).mean()
    of_means = (shares**2 * (means**2).sum(axis=1)).sum()
    return max(float(mean_square - of_means), 0.0) / len(features)
