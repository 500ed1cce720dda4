"""What a client of a pool has of a bank: features for the head that all train, and a head of its own on all of them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from laconic import banks, linear
from laconic.algorithm import Examples, Task


@dataclass
class Seeds:
    bank: banks.Choice  # of the features under the common head; for none, the one whose all are heard at home
    byte_layers: int  # the last so many layers of examples are for it
    head: linear.Matrix | None  # [held class, 1 + feature of the wide bank]; None: no such head

    @property
    def n_features(self) -> int:
        return self.bank.n_features

    def bits(self, x: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """What is left for the clauses."""
        return np.ascontiguousarray(x[..., : -self.byte_layers])

    def read(self, x: NDArray[np.uint8]) -> linear.Matrix:
        """[example, feature] for the common head."""
        return self.bank.read(x, self.byte_layers) if self.n_features else np.zeros((len(x), 0))

    def logits(self, x: NDArray[np.uint8]) -> linear.Matrix | None:
        """[example, held class] of the own head."""
        return None if self.head is None else self.read_wide(x) @ self.head.T

    def read_wide(self, x: NDArray[np.uint8]) -> linear.Matrix:
        return linear.as_features(self.bank.wide.read(x, self.byte_layers))

    def train(self, examples: Examples, holds: NDArray[np.bool_], *, steps: int, rate: float, decay: float) -> None:
        """The own head, from zero, on the classes held."""
        if self.head is None:
            return
        held = np.flatnonzero(holds)
        shares = linear.log_shares(examples.y, held)
        lesson = linear.Lesson(self.read_wide(examples.x), np.searchsorted(held, examples.y), shares)
        self.head = linear.train_wide(lesson, steps=steps, rate=rate, decay=decay)


def start_seeds(task: Task, n_held: int, *, n_seed: int, bank: str, own_seed: bool) -> Seeds | None:
    """None if a method is to have neither."""
    if not (n_seed or own_seed):
        return None
    height_and_width, layers = task.input_shape[:-1], task.byte_layers
    choice = banks.Choice((*height_and_width, layers), n_seed, bank)
    head = np.zeros((n_held, 1 + choice.wide.open().n_features)) if own_seed else None
    return Seeds(choice, layers, head)
