"""Two networks that learn together."""

import numpy as np
import pytest
import torch

from laconic import networks as nn
from laconic.networks.duet import Answers, diverge, fit_both, shorten

SPEC = nn.Spec("mlp", (3,), 2)
EXAMPLES = np.random.default_rng(0).random((9, 3), np.float32), np.array([0, 1, 0, 1, 0, 1, 0, 1, 1])
NO_BRIDGE = np.zeros(0, np.float32)


def both_losses(voices: Answers, _: torch.Tensor) -> torch.Tensor:
    losses = (torch.nn.functional.cross_entropy(each, voices.labels) for each in (voices.logits, voices.aux_logits))
    return sum(losses, torch.zeros(()))


def fit(own: nn.Network, aux: nn.Network, training: nn.Training, loss=both_losses, longest: float = 1e9) -> None:
    fit_both(own, aux, NO_BRIDGE, EXAMPLES, np.random.default_rng(1), training, loss=loss, longest=longest)


def test_divergence_is_the_mean_over_examples_and_classes() -> None:
    """Teacher (1/2, 1/2), pupil (1/4, 3/4): 1/2 ln 2 + 1/2 ln 2/3 = 0.1438; the second example agrees."""
    teacher = torch.log(torch.tensor([[0.5, 0.5], [0.3, 0.7]]))
    pupil = torch.log(torch.tensor([[0.25, 0.75], [0.3, 0.7]]))
    assert float(diverge(teacher, pupil)) == pytest.approx((0.5 * np.log(2) + 0.5 * np.log(2 / 3)) / 4)


def test_both_sides_of_a_divergence_learn() -> None:
    teacher, pupil = (torch.tensor([[0.0, 1.0]], requires_grad=True), torch.tensor([[2.0, 0.0]], requires_grad=True))
    diverge(teacher, pupil).backward()
    assert teacher.grad.abs().sum() > 0
    assert pupil.grad.abs().sum() > 0


@pytest.mark.parametrize("settings", [{}, {"momentum": 0.9, "decay": 0.01}, {"prior": True}, {"steps": 5}])
def test_without_talk_between_them_each_learns_as_it_would_alone_even_if_both_are_of_one_kind(settings: dict) -> None:
    training = nn.Training(model="mlp", batch=4, rate=0.1, **settings)
    own, aux = nn.build(SPEC, 0), nn.build(SPEC, 7)
    alone = [nn.build(SPEC, 0), nn.build(SPEC, 7)]
    fit(own, aux, training)
    for network in alone:
        nn.fit(network, EXAMPLES, np.random.default_rng(1), training)
    assert own.vector == pytest.approx(alone[0].vector, abs=1e-6)
    assert aux.vector == pytest.approx(alone[1].vector, abs=1e-6)
    assert not np.allclose(own.vector, aux.vector)


def test_a_long_gradient_is_shortened_and_a_short_one_is_not() -> None:
    gradient = torch.tensor([3.0, 4.0])
    shorten(gradient, 10.0)
    assert gradient.tolist() == [3, 4]
    shorten(gradient, 1.0)
    assert gradient.tolist() == pytest.approx([0.6, 0.8])


def test_a_step_is_no_longer_than_the_rate_times_the_longest_gradient_for_each_network_apart() -> None:
    own, aux = nn.build(SPEC, 0), nn.build(SPEC, 1)
    before = own.vector, aux.vector
    training = nn.Training(model="mlp", steps=1, batch=9, rate=0.5)
    fit(own, aux, training, lambda voices, _: 1e6 * both_losses(voices, _), longest=2.0)
    for network, start in zip((own, aux), before, strict=True):
        assert np.linalg.norm(network.vector - start) == pytest.approx(0.5 * 2.0, rel=1e-3)


def test_the_bridge_learns_too_under_the_same_limit() -> None:
    """The loss is the bridge's sum, so its gradient is one everywhere and 2 long."""
    training = nn.Training(model="mlp", steps=1, batch=9, rate=0.5)
    bridge = np.zeros((2, 2), np.float32)
    for longest, step in ((10.0, 0.5), (1.0, 0.25)):
        learned = fit_both(
            nn.build(SPEC, 0),
            nn.build(SPEC, 1),
            bridge,
            EXAMPLES,
            np.random.default_rng(1),
            training,
            loss=lambda voices, across: both_losses(voices, across) + across.sum(),
            longest=longest,
        )
        assert learned == pytest.approx(np.full((2, 2), -step))
    assert not bridge.any()
