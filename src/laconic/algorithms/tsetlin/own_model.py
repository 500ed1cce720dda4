"""What a client learns by itself: a Tsetlin Machine of the classes it holds, and a linear head on all its clauses.

The machine's votes know only whether a clause fires. The head hears on how many patches it holds, and learns what that
says of every class.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from laconic import linear
from laconic import tsetlin as tm
from laconic.algorithm import Examples
from laconic.algorithms.tsetlin.machines import build_alike


@dataclass
class OwnModel:
    machine: tm.Machine  # a bank for each class that the client holds
    holds: NDArray[np.bool_]  # [class]
    log_shares: linear.Matrix  # [held class]
    scales: NDArray[np.int8]  # [clause of all banks, 2]; none before it was trained
    head: linear.Matrix  # [held class, 1 + such clause]

    @property
    def classes(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.holds)

    def places(self, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """[example] the place of its class among those held."""
        return np.searchsorted(self.classes, labels)

    def lesson(self, examples: Examples, features: linear.Matrix) -> linear.Lesson:
        self.log_shares = linear.log_shares(examples.y, self.classes)
        return linear.Lesson(features, self.places(examples.y), self.log_shares)

    def train_head(self, examples: Examples, *, steps: int, rate: float, decay: float) -> None:
        lesson = self.lesson(examples, look(self, examples.x))
        self.head = linear.train(self.head, lesson, steps=steps, rate=rate, decay=decay)

    def pick_best(self, examples: Examples, *, n_each: int, min_examples: int) -> tm.Clauses:
        """So many clauses of each class that has enough examples."""
        places = self.places(examples.y)
        counts = np.bincount(places)
        is_picked = (counts >= min_examples) & (len(counts) > 1)  # of one class there is nothing to tell apart
        return tm.pick_clauses(self.machine, examples.x, places, np.flatnonzero(is_picked), n_each)


def build_own(machine: tm.Machine, holds: NDArray[np.bool_], labels: NDArray[np.int64]) -> OwnModel:
    """Before it was trained; the machine has a bank for each class held."""
    shares = linear.log_shares(labels, np.flatnonzero(holds))
    return OwnModel(machine, holds, shares, np.zeros((0, 2), np.int8), np.zeros((machine.n_classes, 1)))


def train_own(own: OwnModel, examples: Examples, rng: np.random.Generator, *, epochs: int) -> None:
    """Trains the machine on, on the classes held now, and begins its head anew."""
    holds = linear.find_classes(examples.y, len(own.holds))
    own.machine, own.holds = keep_banks(own.machine, own.holds, holds), holds
    places = own.places(examples.y)
    tm.fit(own.machine, examples.x, places, rng, epochs=epochs)
    own.scales = tm.measure_machine(own.machine, examples.x, places)
    own.head = np.zeros((own.machine.n_classes, 1 + len(own.scales)))


def look(own: OwnModel, x: NDArray[np.uint8]) -> linear.Matrix:
    """[example, 1 + clause of all banks] what its clauses say, once they have learned something."""
    spoken = tm.read_machine(own.machine, own.scales, x) if len(own.scales) else np.zeros((len(x), 0))
    return linear.as_features(spoken)


def keep_banks(machine: tm.Machine, before: NDArray[np.bool_], now: NDArray[np.bool_]) -> tm.Machine:
    """With a bank for each of the classes `now`: those of classes it had before, and fresh ones."""
    kept = build_alike(machine, int(np.count_nonzero(now)), machine.n_clauses)
    kept.states[before[now]], kept.weights[before[now]] = machine.states[now[before]], machine.weights[now[before]]
    return kept
