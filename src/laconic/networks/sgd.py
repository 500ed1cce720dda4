"""Local training: SGD over mini-batches, on the flat weights, with a hook for the loss and one for the gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  # the name everyone gives it

from laconic import trial
from laconic.networks.models import find_maker
from laconic.networks.vector import Layout, Live, Spec, Vector, layout, live, readable, start_vector

Indices = NDArray[np.int64]
EVALUATION_BATCH = 512
LARGEST = 1e6  # that no weight, change or feature of a network that learns anything comes near
Kept = Literal["fp32", "fp16", "int8", "int4"]


@dataclass(frozen=True)
class Training:
    """The settings that all methods on networks have."""

    # laconic list models, or module:Class of your own, made as Class(input_shape, n_classes): see models.BodyAndHead
    model: str = "auto"
    head: str = "head"  # name of the last layer, for a model of your own
    epochs: int = 1  # over a client's own examples, each round
    steps: int = 0  # mini-batches a round instead of epochs; 0: epochs count
    batch: int = 32  # examples in a mini-batch
    rate: float = 0.05  # learning rate
    momentum: float = 0.0  # starts anew each round
    decay: float = 0.0  # weight decay
    statistics: Literal["shared", "local"] = "shared"  # of batch normalisation: averaged with the weights, or kept
    prior: bool = False  # logits get the log of the client's own class shares added, in training and prediction
    down: Kept = "fp32"  # precision of weights sent to clients; int8 and int4 have a scale for each row
    up: Kept = "fp32"  # precision of the changes that clients send
    init_seed: int = 0  # the first weights follow from it at both ends, at no bytes
    inputs: Literal["centred", "unit"] = "centred"  # pixels as -1 to 1, or as 0 to 1; other values stay as they are
    start: Literal["torch", "kaiming"] = "torch"  # of convolutions: torch's, or Kaiming normal by fan-out as in ResNets

    @property
    def floor(self) -> float:
        """What a black pixel becomes."""
        return -1.0 if self.inputs == "centred" else 0.0

    @property
    def shares_statistics(self) -> bool:
        return self.statistics == "shared"

    def __post_init__(self) -> None:
        if self.model != "auto":
            try:
                find_maker(self.model)  # before data are loaded
            except ValueError as error:
                raise ValueError(f"method.training.{error}") from error
        for name, least in {"epochs": 1, "steps": 0, "batch": 1, "momentum": 0, "decay": 0, "init_seed": 0}.items():
            if getattr(self, name) < least:
                raise ValueError(f"method.training.{name} = {getattr(self, name)} must be at least {least}")
        if self.rate <= 0 or self.momentum >= 1:
            raise ValueError(
                f"method.training.rate = {self.rate} must be above 0, "
                f"method.training.momentum = {self.momentum} below 1"
            )

    def count_batches(self, n_examples: int) -> int:
        """In a round, of a client with so many examples."""
        return (self.steps or self.epochs * -(-n_examples // self.batch)) if n_examples else 0


@dataclass
class Network:
    """A client's network as plain data."""

    spec: Spec
    vector: Vector  # see vector.py for its order
    log_prior: NDArray[np.float32] | None = None  # [class] added to the logits, where training asked for it

    @property
    def layout(self) -> Layout:
        return layout(self.spec)


class Batch(NamedTuple):
    """What a loss may look at."""

    places: Indices  # among the examples given to fit
    labels: Tensor
    features: Tensor  # [example, feature]: the head's inputs
    logits: Tensor  # [example, class], with the log prior if there is one


class Trained(NamedTuple):
    loss: float  # mean over mini-batches
    gradient: Vector  # [parameter] of the last mini-batch, without weight decay


Loss = Callable[[Batch], Tensor]
Adjust = Callable[[Tensor, Tensor], None]  # (weights, gradient): changes the gradient in place


def build(spec: Spec, seed: int) -> Network:
    return Network(spec, start_vector(spec, seed))


def cross_entropy(batch: Batch) -> Tensor:
    return F.cross_entropy(batch.logits, batch.labels)


def pull_to(anchor: Vector, strength: float) -> Adjust:
    """Adds strength / 2 · ‖weights - anchor‖² to the loss, by its gradient."""
    fixed = torch.from_numpy(readable(anchor))

    def adjust(weights: Tensor, gradient: Tensor) -> None:
        gradient.add_(weights - fixed[: len(weights)], alpha=strength)

    return adjust


def fit(
    network: Network,
    examples: tuple[NDArray[Any], NDArray[np.int64]],
    rng: np.random.Generator,
    training: Training,
    *,
    loss: Loss = cross_entropy,
    adjust: Adjust | None = None,
    part: Literal["all", "body", "head"] = "all",
    epochs: int | None = None,
) -> Trained:
    """Trains in place. part: other weights stay, statistics move all the same; epochs: others than the training's."""
    if training.prior:
        network.log_prior = log_shares(examples[1], network.spec.n_classes)
    module = open_network(network, is_training=True)
    where, n_batches, total = module.only(part), 0, 0.0
    module.gradient.zero_()  # without examples it would stay as another client's training left it
    weights, gradient = module.weights[where], module.gradient[where]
    speed = torch.zeros_like(weights) if training.momentum else None
    rounds = training.epochs if epochs is None else epochs
    steps = training.steps if epochs is None else 0
    for places in batches(len(examples[1]), rng, training.batch, rounds, steps, of=f"{network.spec.model} {part}"):
        value = push_back(module, network, examples, places, loss)
        if adjust is not None:
            adjust(module.weights, module.gradient)
        descend(weights, gradient, speed, training)
        n_batches, total = n_batches + 1, total + value
    network.vector = unless_diverged(module.vector(), network.vector)
    return Trained(total / max(n_batches, 1), module.gradient.numpy().copy())


def push_back(
    module: Live, network: Network, examples: tuple[NDArray[Any], NDArray[np.int64]], places: Indices, loss: Loss
) -> float:
    """The loss of these examples; its gradient is the module's afterwards."""
    module.gradient.zero_()
    # one example has no spread to normalise by, so it is normalised by the statistics so far
    if module.module.training != (len(places) > 1):
        module.module.train(len(places) > 1)
    features, logits = module.run(module.as_tensor(examples[0][places]))
    if network.log_prior is not None:
        logits = logits + torch.from_numpy(network.log_prior)
    value = loss(Batch(places, torch.from_numpy(examples[1][places]), features, logits))
    value.backward()  # type: ignore[no-untyped-call]
    return float(value.detach())


def descend(weights: Tensor, gradient: Tensor, speed: Tensor | None, training: Training) -> None:
    """One step of SGD, as torch has it."""
    if training.decay:
        gradient = gradient.add(weights, alpha=training.decay)
    if speed is not None:
        speed.mul_(training.momentum).add_(gradient)
    weights.add_(gradient if speed is None else speed, alpha=-training.rate)


def unless_diverged(after: Vector, before: Vector) -> Vector:
    """What training made; what was before, if weights ran away, as they do from weights that somebody spoiled."""
    is_sound = not after.size or (float(after.min()) >= -LARGEST and float(after.max()) <= LARGEST)
    return after if is_sound else before


def open_network(network: Network, *, is_training: bool) -> Live:
    """This worker's module, with the network's weights in it."""
    module = live(network.spec)
    module.pour(network.vector)
    module.module.train(is_training)
    return module


def batches(
    n_examples: int, rng: np.random.Generator, size: int, epochs: int, steps: int = 0, *, of: str = "all"
) -> Iterator[Indices]:
    """Each epoch in an order of its own; steps: so many in all, however many epochs that takes. of: what is trained."""
    n_due = (steps or epochs * -(-n_examples // size)) if n_examples else 0
    return take_some(draw_batches(n_examples, rng, size, n_due), n_due, of)


def take_some(drawn: Iterator[Indices], n_due: int, of: str) -> Iterator[Indices]:
    """All of these mini-batches, unless training is only tried out."""
    return trial.some(drawn, n_due, f"batch of {of}", lambda places: places[:2])


def draw_batches(n_examples: int, rng: np.random.Generator, size: int, n_due: int) -> Iterator[Indices]:
    while n_due > 0:
        order = rng.permutation(n_examples)
        for start in range(0, n_examples, size)[:n_due]:
            yield order[start : start + size]
        n_due -= -(-n_examples // size)


# ---------------------------------------------------------------- prediction
def outputs(network: Network, x: NDArray[Any]) -> tuple[Vector, Vector]:
    """Features [example, feature] and logits [example, class], as they are when nothing is being trained."""
    module = open_network(network, is_training=False)
    found: list[tuple[Vector, Vector]] = []
    with torch.no_grad():
        for start in range(0, max(len(x), 1), EVALUATION_BATCH):  # an empty batch still has its shapes
            features, logits = module.run(module.as_tensor(x[start : start + EVALUATION_BATCH]))
            found.append((features.numpy(), logits.numpy()))
    seen, votes = (hold_in(np.concatenate(parts)) for parts in zip(*found, strict=True))
    return seen, votes if network.log_prior is None else votes + network.log_prior


def hold_in(values: Vector) -> Vector:
    """Within ±LARGEST, for a spoiled network's features may be no numbers."""
    if not values.size or (float(values.min()) >= -LARGEST and float(values.max()) <= LARGEST):
        return values
    held: Vector = np.clip(np.nan_to_num(values), -LARGEST, LARGEST)
    return held


def classify(network: Network, x: NDArray[Any]) -> NDArray[np.int64]:
    winners: NDArray[np.int64] = outputs(network, x)[1].argmax(axis=1)
    return winners


def log_shares(labels: NDArray[np.int64], n_classes: int) -> NDArray[np.float32]:
    """[class] log of the share of each class; one without examples cannot be predicted."""
    counts = np.bincount(labels, minlength=n_classes)
    with np.errstate(divide="ignore"):
        shares = np.log(counts / max(counts.sum(), 1))
    finite: NDArray[np.float32] = np.maximum(shares, -1e9).astype(np.float32)  # so that no product becomes NaN
    return finite
