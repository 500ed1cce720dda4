import numpy as np
import pytest

from laconic.networks.gaussians import Gaussians, choose_trust, class_means, estimate, halve, linear_classifier, mix

COMMON = Gaussians(np.array([[0.0], [5.0]]), np.eye(1))
EVEN = np.array([0.5, 0.5])


def test_class_means_are_zero_without_examples() -> None:
    features = np.array([[1.0, 2], [3, 4], [7, 7]])
    assert class_means(features, np.array([0, 0, 2]), 3).tolist() == [[2, 3], [0, 0], [7, 7]]


def test_a_class_of_one_example_has_the_common_mean_and_spreads_around_it() -> None:
    found = estimate(np.array([[1.0], [3.0], [6.0]]), np.array([0, 0, 1]), COMMON, ridge=0.5)
    assert found.means.tolist() == [[2], [5]]
    assert found.covariance.tolist() == [[(1 + 1 + 1) / 2 + 0.5]]


def test_the_classifier_is_the_one_of_the_textbook() -> None:
    gaussians = Gaussians(np.array([[-1.0], [1.0]]), np.array([[2.0]]))
    weights, biases = linear_classifier(gaussians, np.array([0.2, 0.8]))
    assert weights[:, 0].tolist() == pytest.approx([-0.5, 0.5])
    assert biases == pytest.approx(np.log([0.2, 0.8]) - 0.25)


def test_it_classifies_by_the_likelihood_of_correlated_features() -> None:
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(3, 3))
    gaussians = Gaussians(rng.normal(size=(2, 3)), factor @ factor.T + np.eye(3))
    weights, biases = linear_classifier(gaussians, EVEN)
    x = rng.normal(size=(50, 3))
    inverse = np.linalg.inv(gaussians.covariance)
    distances = [np.einsum("ij,jk,ik->i", x - mean, inverse, x - mean) for mean in gaussians.means]
    scores = x @ weights.T + biases
    assert scores[:, 1] - scores[:, 0] == pytest.approx((distances[0] - distances[1]) / 2, rel=0.01, abs=0.01)


def test_mixing_trusts_means_and_covariance_apart() -> None:
    own = Gaussians(np.array([[1.0], [1.0]]), np.array([[3.0]]))
    mixed = mix(own, COMMON, np.array([1.0, 0.5]))
    assert (mixed.means.tolist(), mixed.covariance.tolist()) == ([[1], [1]], [[2]])


def test_one_trusts_oneself_where_the_common_means_are_wrong_and_them_where_ones_own_say_nothing() -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 2
    swapped = np.where(labels == 0, 5.0, 0.0)[:, None] + rng.normal(size=(200, 1))
    assert choose_trust(swapped, labels, COMMON, EVEN, rng, 0.1)[0] > 0.9
    few = np.where(labels[:4] == 0, 0.0, 5.0)[:, None] + 3 * rng.normal(size=(4, 1))
    assert choose_trust(few, labels[:4], COMMON, EVEN, rng, 0.1)[0] < 0.9


def test_halves_share_each_class_and_leave_single_examples_out() -> None:
    labels = np.array([0] * 4 + [1] * 5 + [2])
    first, second = halve(labels, np.random.default_rng(0))
    assert [np.bincount(labels[half], minlength=3).tolist() for half in (first, second)] == [[2, 3, 0], [2, 2, 0]]
    assert not set(first) & set(second)
    assert choose_trust(np.zeros((1, 1)), np.array([2]), COMMON, EVEN, np.random.default_rng(0), 0.1).tolist() == [0, 0]
