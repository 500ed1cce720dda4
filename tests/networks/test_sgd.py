from typing import Literal

import numpy as np
import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from laconic.networks import Batch, Network, Spec, Training, batches, build, classify, fit, live, outputs, pull_to
from laconic.networks.models import make_module

SPEC = Spec("mlp", (4,), 3)
NORMS = Spec("resnet-small", (8, 8), 4, 1.0)
RNG = np.random.default_rng(0)
EXAMPLES = (RNG.normal(size=(20, 4)).astype(np.float32), RNG.integers(0, 3, 20))
IMAGES = ((RNG.random((9, 8, 8)) < 0.5).astype(np.uint8), RNG.integers(0, 4, 9))


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("decay", [0.0, 0.01])
def test_training_is_torchs_own_sgd_step_for_step(momentum: float, decay: float) -> None:
    training = Training(rate=0.1, batch=6, epochs=2, momentum=momentum, decay=decay)
    network = build(SPEC, 0)
    module = make_module("mlp", (4,), 3)
    module.load_state_dict({name: value.clone() for name, value in live_state(network).items()})
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=momentum, weight_decay=decay)
    fit(network, EXAMPLES, np.random.default_rng(5), training)
    for places in batches(20, np.random.default_rng(5), 6, 2):
        optimizer.zero_grad()
        F.cross_entropy(module(torch.from_numpy(EXAMPLES[0][places])), torch.from_numpy(EXAMPLES[1][places])).backward()
        optimizer.step()
    theirs = torch.cat([value.detach().ravel() for value in module.state_dict().values()]).numpy()
    assert network.vector == pytest.approx(theirs, rel=1e-4, abs=1e-6)


def live_state(network: Network) -> dict[str, torch.Tensor]:
    module = live(network.spec)
    module.pour(network.vector)
    return module.module.state_dict()


@pytest.mark.parametrize("part", ["body", "head"])
def test_frozen_parts_stay_bit_for_bit(part: Literal["body", "head"]) -> None:
    training = Training(rate=0.1, batch=4, momentum=0.9, decay=0.1)
    network = build(NORMS, 0)
    before, n_body, n_trained = network.vector, network.layout.n_body, network.layout.n_trained
    fit(network, IMAGES, np.random.default_rng(0), training, part=part)
    trained = {"body": slice(0, n_body), "head": slice(n_body, n_trained)}
    for name, where in trained.items():
        assert np.array_equal(network.vector[where], before[where]) == (name != part)
    fit(network, IMAGES, np.random.default_rng(0), training)  # nothing is frozen for ever
    assert not np.array_equal(network.vector[:n_body], before[:n_body])


def test_one_example_is_normalised_by_the_statistics_so_far() -> None:
    network = build(NORMS, 0)
    statistics = network.vector[network.layout.n_trained :]
    trained = fit(network, (IMAGES[0][:1], IMAGES[1][:1]), np.random.default_rng(0), Training())
    assert np.isfinite(trained.loss)
    assert np.isfinite(network.vector).all()
    assert np.array_equal(network.vector[network.layout.n_trained :], statistics)


def test_no_examples_change_nothing() -> None:
    network = build(SPEC, 0)
    before = network.vector
    assert fit(network, (EXAMPLES[0][:0], EXAMPLES[1][:0]), np.random.default_rng(0), Training()).loss == 0
    assert np.array_equal(network.vector, before)


def test_training_leaves_the_vector_it_was_given_as_it_was() -> None:
    network = build(SPEC, 0)
    given, copy = network.vector, network.vector.copy()
    fit(network, EXAMPLES, np.random.default_rng(0), Training())
    assert network.vector is not given
    assert np.array_equal(given, copy)


def test_classes_without_examples_are_never_predicted_with_a_prior() -> None:
    labels = EXAMPLES[1] % 2  # no class 2
    network = build(SPEC, 0)
    fit(network, (EXAMPLES[0], labels), np.random.default_rng(0), Training(prior=True, rate=0.01))
    network.vector = network.vector.copy()
    network.vector[-1] = 1e4  # the bias of class 2
    assert network.log_prior is not None
    assert np.exp(network.log_prior) == pytest.approx(np.bincount(labels, minlength=3) / 20)
    assert set(classify(network, EXAMPLES[0])) <= {0, 1}
    network.log_prior = None
    assert set(classify(network, EXAMPLES[0])) == {2}


def test_the_loss_sees_which_examples_it_is_given() -> None:
    seen: list[int] = []

    def loss(batch: Batch) -> torch.Tensor:
        seen.extend(batch.places)
        assert batch.labels.tolist() == EXAMPLES[1][batch.places].tolist()
        assert batch.features.shape == (len(batch.places), 256)
        return F.cross_entropy(batch.logits, batch.labels)

    fit(build(SPEC, 0), EXAMPLES, np.random.default_rng(0), Training(batch=7, epochs=2), loss=loss)
    assert sorted(seen[:20]) == sorted(seen[20:]) == list(range(20))
    assert seen[:20] != seen[20:]


def test_a_pull_is_the_gradient_of_half_the_squared_distance() -> None:
    anchor = np.array([1, 2, 3, 9], np.float32)  # statistics may follow
    gradient = torch.zeros(3)
    pull_to(anchor, 0.5)(torch.tensor([2.0, 2.0, 2.0]), gradient)
    assert gradient.tolist() == [0.5, 0, -0.5]


def test_steps_count_mini_batches_over_as_many_epochs_as_they_take() -> None:
    sizes = [len(places) for places in batches(5, np.random.default_rng(0), 2, epochs=1, steps=7)]
    assert sizes == [2, 2, 1, 2, 2, 1, 2]
    assert len([*batches(5, np.random.default_rng(0), 2, epochs=3)]) == 9


def test_outputs_do_not_depend_on_how_many_examples_come_together() -> None:
    network = build(NORMS, 0)
    fit(network, IMAGES, np.random.default_rng(0), Training(batch=4))
    together = outputs(network, IMAGES[0])[1]
    alone = np.concatenate([outputs(network, IMAGES[0][k : k + 1])[1] for k in range(9)])
    assert together == pytest.approx(alone, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"epochs": 0}, "method.training.epochs = 0 must be at least 1"),
        ({"batch": 0}, "method.training.batch = 0 must be at least 1"),
        ({"rate": 0.0}, "must be above 0, and below 1"),
        ({"momentum": 1.0}, "must be above 0, and below 1"),
    ],
)
def test_settings_that_cannot_be_are_refused(setting: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Training(**setting)
