"""A network of five numbers and its training in NumPy, so that a round of any method can be worked out by hand.

The vector is a, w0, w1, b0, b1: an example x has the one feature a·x and the logits w·a·x + b.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from laconic.algorithm import Algorithm, Examples, Task
from laconic.fleets.base import BaseFleet
from laconic.fleets.source import ClientData
from laconic.networks import Spec, Training, start_vector
from laconic.simulation import federate

MODEL = "tiny_networks:Tiny"
SPEC = Spec(MODEL, (1,), 2)
BODY, HEAD, ALL = slice(0, 1), slice(1, 5), slice(0, 5)


class Tiny(nn.Module):
    def __init__(self, input_shape: tuple[int, ...], n_classes: int) -> None:
        super().__init__()
        self.body = nn.Linear(*input_shape, 1, bias=False)
        self.head = nn.Linear(1, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.body(x))
        return logits


class TinyNorm(Tiny):
    """Its vector: a, scale, shift, w0, w1, b0, b1, running mean, running variance."""

    def __init__(self, input_shape: tuple[int, ...], n_classes: int) -> None:
        super().__init__(input_shape, n_classes)
        self.body = nn.Sequential(nn.Linear(*input_shape, 1, bias=False), nn.BatchNorm1d(1))


TRAINING = Training(model=MODEL, batch=100, rate=0.5)  # one step over everything


def examples(*pairs: tuple[float, int]) -> Examples:
    """Of an input and a class each."""
    x, y = zip(*pairs, strict=True)
    return Examples(np.array(x, np.float32)[:, None], np.array(y))


# two clients, one with three times the examples of the other
CLIENTS = (examples((1, 0), (2, 1), (-1, 0)), examples((3, 1)))


def start() -> NDArray[np.float64]:
    return start_vector(SPEC, 0).astype(np.float64)


def logits(vector: NDArray[np.float64], x: NDArray[np.float32]) -> NDArray[np.float64]:
    return x * vector[0] * vector[1:3] + vector[3:5]


def shares(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    powers = np.exp(scores)
    return powers / powers.sum(axis=1, keepdims=True)


def gradient(vector: NDArray[np.float64], mine: Examples) -> NDArray[np.float64]:
    """Of the mean cross-entropy."""
    return push_back(vector, mine, shares(logits(vector, mine.x)) - np.eye(2)[mine.y])


def push_back(vector: NDArray[np.float64], mine: Examples, error: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean gradient where a loss has this one [example, class] by the logits."""
    of_body = (error @ vector[1:3] * mine.x[:, 0])[:, None]
    return np.hstack([of_body, error * mine.x * vector[0], error]).mean(axis=0)


def descend(vector: NDArray[np.float64], mine: Examples, where: slice = ALL, rate: float = 0.5) -> NDArray[np.float64]:
    """After one step over everything, of what is in `where`."""
    moved = vector.copy()
    moved[where] -= rate * gradient(vector, mine)[where]
    return moved


def mean(vectors: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """By examples of CLIENTS."""
    return np.average(vectors, axis=0, weights=[len(mine.y) for mine in CLIENTS])


@contextmanager
def open_fleet(method: Algorithm, clients: Sequence[Examples] = CLIENTS) -> Iterator[BaseFleet]:
    """In the first round, with everyone in it."""
    source = ClientData.of([(mine, mine, mine) for mine in clients])
    with federate(method, Task((1,), 2, len(clients)), source, seed=0, workers=1) as federation:
        federation.fleet.begin(1)
        yield federation.fleet
