"""What the authors of methods have otherwise than we do by default: scale of inputs, start of convolutions."""

from dataclasses import replace

import numpy as np
import torch

from laconic import networks as nn
from laconic.algorithm import Task
from laconic.algorithms.networks.settings import choose_spec
from laconic.networks import Spec, Training
from laconic.state import freeze, thaw

TASK = Task((28, 28), 10, 4, peak=255.0)


def test_centred_inputs_reach_from_minus_one_to_one_and_unit_inputs_from_zero() -> None:
    pixels = np.array([[[0, 255], [51, 102]]], np.uint8)
    for inputs, due in (("centred", [-1.0, 1.0, -0.6, -0.2]), ("unit", [0.0, 1.0, 0.2, 0.4])):
        spec = choose_spec(replace(TASK, input_shape=(2, 2)), Training(model="mlp", inputs=inputs))
        assert np.allclose(nn.live(spec).as_tensor(pixels).flatten().numpy(), due)


def test_a_kaiming_start_spreads_convolutions_by_their_fan_out_and_leaves_the_head() -> None:
    plain, kaiming = (choose_spec(TASK, Training(model="resnet8", start=start)) for start in ("torch", "kaiming"))
    for piece in nn.layout(kaiming).pieces:
        weights = nn.start_vector(kaiming, 3)[piece.start : piece.stop]
        if len(piece.shape) == 4:
            n_out, _, height, width = piece.shape
            due = np.sqrt(2 / (n_out * height * width))
            assert abs(weights.std() / due - 1) < 0.1, piece.name
            assert not np.array_equal(weights, nn.start_vector(plain, 3)[piece.start : piece.stop])
        else:
            assert np.array_equal(weights, nn.start_vector(plain, 3)[piece.start : piece.stop]), piece.name


def test_states_of_networks_at_their_defaults_say_nothing_of_settings_that_came_later() -> None:
    spec = Spec("mlp", (28, 28), 10, 255.0)
    assert b"floor" not in freeze({"spec": spec})
    assert thaw(freeze({"spec": spec}), {"spec": Spec})["spec"] == spec


def test_settings_that_came_later_are_read_back() -> None:
    spec = Spec("mlp", (28, 28), 10, 255.0, floor=0.0, start="kaiming")
    assert thaw(freeze({"spec": spec}), {"spec": Spec})["spec"] == spec


# ---------------------------------------------------------------- statistics
def test_renewed_statistics_are_those_of_the_examples_and_weights_stay() -> None:
    spec = choose_spec(replace(TASK, input_shape=(12, 12)), Training(model="resnet-small"))
    network = nn.build(spec, 0)
    x = np.random.default_rng(0).integers(0, 256, (40, 12, 12)).astype(np.uint8)
    renewed = nn.renew_statistics(network, x)
    n_trained = network.layout.n_trained
    assert np.array_equal(renewed.vector[:n_trained], network.vector[:n_trained])
    stem = next(piece for piece in network.layout.pieces if piece.name.endswith("running_mean"))
    with torch.no_grad():
        module = nn.live(spec)
        module.pour(network.vector)
        first = module.module.body[0][0](module.as_tensor(x))  # type: ignore[index]
    due = first.mean(dim=(0, 2, 3)).numpy()
    assert np.allclose(renewed.vector[stem.start : stem.stop], due, atol=1e-5)


def test_renewing_leaves_the_next_training_as_it_was() -> None:
    spec = choose_spec(replace(TASK, input_shape=(12, 12)), Training(model="resnet-small"))
    x = np.random.default_rng(0).integers(0, 256, (40, 12, 12)).astype(np.uint8)
    y = np.arange(40) % 10

    def train() -> nn.Vector:
        network = nn.build(spec, 0)
        nn.fit(network, (x, y), np.random.default_rng(1), Training(model="resnet-small"))
        return network.vector

    before = train()
    nn.renew_statistics(nn.build(spec, 0), x)
    assert np.array_equal(train(), before)


def test_one_example_renews_nothing() -> None:
    network = nn.build(choose_spec(TASK, Training(model="resnet-small")), 0)
    assert nn.renew_statistics(network, np.zeros((1, 28, 28), np.uint8)) is network
