import math

import numpy as np
import pytest

from laconic import networks as nn
from laconic.algorithm import Examples, Site, Task
from laconic.algorithms.networks.dispfl import DisPFL, Kept, average_kept, seat
from laconic.networks import Training
from laconic.networks.selection import spread_density
from laconic.wire import bound

TINY = Training(model="mlp", statistics="local", batch=4)
TASK = Task((2,), 2, 5)


def site(round: int = 1) -> Site:
    rng = np.random.default_rng(round)
    examples = Examples(rng.normal(size=(8, 2)).astype(np.float32), np.array([0, 1] * 4))
    return Site(0, round, examples, examples, rng)


def test_everyone_hears_and_is_heard_by_as_many() -> None:
    assert seat([3, 0, 2, 1], 2) == {3: [0, 2], 0: [2, 1], 2: [1, 3], 1: [3, 0]}
    assert seat([4, 7], 10) == {4: [7], 7: [4]}
    assert seat([4], 10) == {4: []}


def test_small_tensors_keep_more_and_all_together_the_density() -> None:
    shapes = {"a": (10, 10), "b": (100, 100), "c": (2, 4)}
    shares = spread_density(shapes, 0.2)  # 2021.6 weights
    assert shares["c"] == 1.0  # (2 + 4) / 8 times any factor that is enough for the others
    assert shares["a"] == 1.0
    assert shares["b"] == pytest.approx((0.2 * 10108 - 108) / 10000)
    thin = spread_density(shapes, 0.01)  # factor 101.08 / (20 + 200 + 6)
    assert thin == pytest.approx({"a": 101.08 / 226 * 0.2, "b": 101.08 / 226 * 0.02, "c": 101.08 / 226 * 0.75})
    assert spread_density(shapes, 1.0) == {"a": 1.0, "b": 1.0, "c": 1.0}


def test_kernels_count_with_their_sides() -> None:
    thin = spread_density({"conv": (8, 4, 3, 3), "fc": (8, 4)}, 0.1)  # 18 / 288 against 12 / 32
    assert thin["fc"] / thin["conv"] == pytest.approx((12 / 32) / (18 / 288))


def test_a_parameter_is_the_mean_of_those_who_keep_it() -> None:
    sparse = np.array([True, True, True, False])  # the last is a bias
    own, mask = np.array([2, 0, 0, 4], np.float32), np.array([True, False, False, True])
    heard = [
        Kept(np.array([True, True, False]), np.array([4, 6, 8], np.float32)),
        Kept(np.array([False, True, False]), np.array([2, 0], np.float32)),
    ]
    assert average_kept(own, mask, heard, sparse).tolist() == [3, 4, 0, 4]
    assert average_kept(own, mask, [], sparse).tolist() == [2, 0, 0, 4]


def test_the_smallest_go_and_those_with_most_gradient_come_fewer_each_round() -> None:
    method = DisPFL(training=TINY, swap=0.5, n_rounds=4)
    client = method.start_client(TASK, site())
    part = method.part(client.network.spec)
    n_kept = method.count_kept(client.network.spec, part)["body.1.0.weight"]
    weights = np.zeros(client.network.vector.size, np.float32)
    weights[:n_kept] = np.arange(1, n_kept + 1)
    client.network.vector, client.mask = weights, np.ones(part.size, np.bool_)
    client.mask[n_kept:512] = False
    gradient = np.zeros(part.size, np.float32)
    gradient[500:512] = 1
    for number, share in ((1, 0.5), (3, 0.25), (5, 0.0), (9, 0.0)):  # half of 1 + cos
        mask = method.swap_some(client, part, gradient, number)
        n_swapped = math.ceil(share * n_kept)
        assert np.count_nonzero(mask[:512]) == n_kept
        assert mask[n_swapped:n_kept].all()  # the larger ones stay
        assert mask[500:512].all() == (n_swapped > 0)
        assert mask[512:768].all()  # biases


def test_training_keeps_to_the_mask_and_the_next_one_waits() -> None:
    method = DisPFL(training=TINY, density=0.3)
    client = method.start_client(TASK, site())
    first = client.mask
    other = method.start_client(TASK, site(2))
    assert not np.array_equal(other.mask, first)
    n_kept = np.count_nonzero(first)
    method.absorb(client, {3: method.publish(other, None, site())}, site())  # type: ignore[arg-type]
    assert np.array_equal(client.mask, first)
    assert not client.network.vector[~first].any()
    assert not np.array_equal(client.next_mask, first)
    assert np.count_nonzero(client.next_mask) == n_kept
    second = client.next_mask
    method.absorb(client, {}, site(2))
    assert np.array_equal(client.mask, second)
    assert nn.classify(client.network, site().val.x).shape == (8,)


def test_a_message_is_as_large_at_most_as_the_bound_says_and_shrinks_with_density() -> None:
    for density in (0.5, 0.1):
        method = DisPFL(training=TINY, density=density, n_neighbours=3)
        most = method.costliest_round(TASK)
        assert len(most) == 6
        assert bound(method.publish(method.start_client(TASK, site()), None, site())) <= bound(most[0])  # type: ignore[arg-type]
    assert bound(most[0]) < 0.6 * bound(DisPFL(training=TINY).costliest_round(TASK)[0])
