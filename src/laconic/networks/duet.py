"""Two networks that learn from the same mini-batches and from each other."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  # the name everyone gives it

from laconic.networks.sgd import Network, Training, batches, descend, log_shares, unless_diverged
from laconic.networks.vector import Vector, live, readable


class Answers(NamedTuple):
    """What both networks make of a mini-batch, for a loss to look at."""

    labels: Tensor
    features: Tensor  # [example, feature] of the own network
    logits: Tensor  # [example, class]
    aux_features: Tensor
    aux_logits: Tensor


def fit_both(
    own: Network,
    aux: Network,
    bridge: Vector,
    examples: tuple[NDArray[Any], NDArray[np.int64]],
    rng: np.random.Generator,
    training: Training,
    *,
    loss: Callable[[Answers, Tensor], Tensor],
    longest: float,
) -> Vector:
    """Trains both in place by one loss; bridge: further weights of the loss, trained too and returned.

    longest: a gradient of either network or of the bridge beyond this length is shortened to it.
    """
    if training.prior:
        own.log_prior = aux.log_prior = log_shares(examples[1], own.spec.n_classes)
    modules = [live(own.spec), live(aux.spec, "aux")]
    for module, network in zip(modules, (own, aux), strict=True):
        module.pour(network.vector)
        module.only("all")
    across = torch.from_numpy(readable(bridge)).clone().requires_grad_()
    across.grad = torch.zeros_like(across)
    trained = [(module.weights, module.gradient) for module in modules] + [(across.data, across.grad)]
    speeds = [torch.zeros_like(weights) if training.momentum else None for weights, _ in trained]
    for places in batches(len(examples[1]), rng, training.batch, training.epochs, training.steps):
        for _, gradient in trained:
            gradient.zero_()
        outputs = list[Tensor]()
        for module, network in zip(modules, (own, aux), strict=True):
            module.module.train(len(places) > 1)
            features, logits = module.run(module.as_tensor(examples[0][places]))
            outputs += [features, logits if network.log_prior is None else logits + torch.from_numpy(network.log_prior)]
        loss(Answers(torch.from_numpy(examples[1][places]), *outputs), across).backward()  # type: ignore[no-untyped-call]
        for (weights, gradient), speed in zip(trained, speeds, strict=True):
            shorten(gradient, longest)
            descend(weights, gradient, speed, training)
    for module, network in zip(modules, (own, aux), strict=True):
        network.vector = unless_diverged(module.vector(), network.vector)
    return unless_diverged(across.detach().numpy(), bridge)


def shorten(gradient: Tensor, longest: float) -> None:
    length = float(gradient.norm())
    if length > longest:
        gradient.mul_(longest / length)


def diverge(teacher: Tensor, pupil: Tensor) -> Tensor:
    """Kullback-Leibler divergence of two networks' logits, averaged over examples and classes; both learn from it."""
    # by logarithms on both sides, for a share that is 0 has a gradient only there
    return F.kl_div(F.log_softmax(pupil, 1), F.log_softmax(teacher, 1), reduction="none", log_target=True).mean()
