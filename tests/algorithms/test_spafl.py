import numpy as np
import pytest

from laconic.algorithm import Examples, Site, Task
from laconic.algorithms.networks.spafl import SpaFL, Thresholds
from laconic.networks import Network, Spec, Training, layout, start_vector
from laconic.networks.thresholds import count_rows, cut_out, find_kept, list_layers, pull_thresholds, shift_weights
from laconic.wire import EMPTY

SPEC = Spec("mlp", (2,), 2)  # 256 neurons of 2 inputs, then 2 of 256
TASK = Task((2,), 2, 3)


def site(n_examples: int = 8) -> Site:
    rng = np.random.default_rng(0)
    examples = Examples(rng.normal(size=(n_examples, 2)).astype(np.float32), np.arange(n_examples) % 2)
    return Site(0, 1, examples, examples, rng)


def weights_of(first: list[list[float]]) -> np.ndarray:
    """The first neurons' weights; all others are 1."""
    vector = np.ones(layout(SPEC).size, np.float32)
    vector[: 2 * len(first)] = np.ravel(first)
    return vector


def test_a_neuron_is_kept_if_its_mean_weight_is_above_its_threshold() -> None:
    thresholds = np.zeros(258, np.float32)
    thresholds[:3] = [0.5, 0.5, 2]
    vector = weights_of([[0.9, -0.2], [0.7, -0.3], [1, 5]])  # 0.55, 0.5, 3
    kept = find_kept(SPEC, vector, thresholds)
    assert kept[:3].tolist() == [True, False, True]
    assert kept[3:].all()
    cut = cut_out(SPEC, vector, kept)
    assert cut[:6].tolist() == [vector[0], vector[1], 0, 0, 1, 5]
    assert np.array_equal(cut[6:], vector[6:])


def test_a_layer_with_next_to_nothing_left_gets_all_back() -> None:
    thresholds = np.zeros(258, np.float32)
    thresholds[:255] = 9
    assert find_kept(SPEC, weights_of([]), thresholds)[:256].all()
    thresholds[250:] = 0
    assert np.count_nonzero(find_kept(SPEC, weights_of([]), thresholds)[:256]) == 6


def test_gradient_of_a_threshold_is_what_the_row_is_worth() -> None:
    thresholds = np.zeros(258, np.float32)
    thresholds[1] = 3.5
    vector, gradient = weights_of([[0.5, -1], [0.5, -1]]), np.zeros(layout(SPEC).size, np.float32)
    gradient[:4] = [3, 1, 3, 1]
    pull = pull_thresholds(SPEC, vector, thresholds, gradient)
    assert pull[0] == -(1.5 - 1)
    assert pull[1] == 0  # mean 0.75, which is more than 1 away
    assert not pull[2:].any()


def test_weights_shrink_by_what_their_threshold_rose_over_the_inputs_or_the_kernel() -> None:
    moved = np.zeros(258, np.float32)
    moved[:3] = [0.5, -0.5, 1]
    network = Network(SPEC, weights_of([[1, 2], [1, 2], [-3, 1]]))
    shifted = shift_weights(network, moved)
    assert shifted[:6].tolist() == [0.75, 1.75, 1.25, 2.25, -2.5, 1.5]  # half of it each; the sum's sign counts
    assert np.array_equal(shifted[6:], network.vector[6:])
    spec = Spec("resnet-small", (8, 8), 2)
    _, rows, shape = list_layers(spec)[1]
    assert shape[2:] == (3, 3)
    moved = np.zeros(count_rows(spec), np.float32)
    moved[rows] = 0.9
    vector = start_vector(spec, 0)
    change = np.abs(shift_weights(Network(spec, vector), moved) - vector)
    assert np.allclose(change[change > 0], 0.1, atol=1e-6)
    assert np.count_nonzero(change) == np.prod(shape)


def test_thresholds_rise_by_the_push_where_the_loss_is_flat() -> None:
    method = SpaFL(push=0.5, training=Training(model="mlp", rate=0.1, epochs=1, batch=8, statistics="local"))
    client = method.start_client(TASK, site())
    client.network.vector = np.zeros(layout(SPEC).size, np.float32)  # no weight, no gradient of a threshold
    sent = method.train(client, EMPTY, site())
    # the gradient is longer than 3 and is made to be 3
    full = 0.1 * 0.5 * 3 / np.sqrt(258 * 0.25)
    assert sent.values == pytest.approx(full, rel=0.02)


def test_only_thresholds_travel_and_everyone_moves_with_their_mean() -> None:
    method = SpaFL(training=Training(model="mlp", statistics="local"))
    client = method.start_client(TASK, site())
    before = client.network.vector
    sent = method.train(client, EMPTY, site())
    assert sent.values.shape == (258,)
    trained = client.network.vector
    assert not np.array_equal(trained, before)
    assert not client.thresholds.any()  # as received
    news = Thresholds(np.full(258, 0.25, np.float32))
    method.shift(client, news, site())
    assert np.array_equal(client.network.vector, shift_weights(Network(SPEC, trained), news.values))
    method.shift(client, news, site())  # the same again moves nothing
    assert np.array_equal(client.thresholds, news.values)
    assert method.predict(client, site().val.x).shape == (8,)
