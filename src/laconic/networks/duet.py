"""Two networks that learn from the same mini-batches and from each other."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  # the name everyone gives it

from laconic.networks.sgd import Network, Training, batches, descend
from laconic.networks.vector import Live, Vector, live, readable


class Voices(NamedTuple):
    """What a loss may look at."""

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
    loss: Callable[[Voices, Tensor], Tensor],
    longest: float,
) -> Vector:
    """Trains both in place by one loss; bridge: further weights of the loss, trained too and returned.

    longest: a gradient of either network beyond this length is shortened to it.
    """
    modules = [live(own.spec), live(aux.spec, "aux")]
    for module, network in zip(modules, (own, aux), strict=True):
        module.pour(network.vector)
        module.only("all")
    across = torch.from_numpy(readable(bridge)).clone().requires_grad_()
    for places in batches(len(examples[1]), rng, training.batch, training.epochs, training.steps):
        for module in modules:
            module.gradient.zero_()
            module.module.train(len(places) > 1)
        across.grad = None
        outputs = [part for module in modules for part in module.run(module.as_tensor(examples[0][places]))]
        loss(Voices(torch.from_numpy(examples[1][places]), *outputs), across).backward()  # type: ignore[no-untyped-call]
        for module in modules:
            step(module, longest, training)
        with torch.no_grad():
            if across.grad is not None:
                across -= training.rate * across.grad
    own.vector, aux.vector = (module.vector() for module in modules)
    return across.detach().numpy()


def step(module: Live, longest: float, training: Training) -> None:
    length = float(module.gradient.norm())
    if length > longest:
        module.gradient.mul_(longest / length)
    descend(module.weights, module.gradient, None, training)


def diverge(teacher: Tensor, pupil: Tensor) -> Tensor:
    """Kullback-Leibler divergence of two networks' logits, averaged over examples and classes; both learn from it."""
    return F.kl_div(F.log_softmax(pupil, 1), F.softmax(teacher, 1), reduction="none").mean()
