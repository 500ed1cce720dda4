"""What methods on Tsetlin Machines do alike: settings, the clause's view of an example, sizes, rebuilding."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic import tsetlin as tm
from laconic.algorithm import Algorithm, Examples, Site, Task
from laconic.algorithms.settings import check_at_least, check_share
from laconic.wire import Bits, Ints, Message

SMALL_IMAGE = 20  # pixels; below it patches tell clauses too little, so they see the whole image
USUAL_PATCH = 10


def paper_state_bits(states: NDArray[np.bool_]) -> float:
    """Include bits [..., literal] as the papers count them: each clause in whole words of 32 bits."""
    n_clauses, n_words = states[..., 0].size, math.ceil(states.shape[-1] / 32)
    return float(32 * n_clauses * n_words)


LARGEST_VOTE = 1 << 20  # that no clause's weight comes near: training ends where votes reach the threshold


class Merged(Message, paper_bits={"weights": 32, "states": paper_state_bits}):
    weights: Ints  # [class, clause]
    states: Bits  # [class, clause, literal]


class MachineMethod(Algorithm):
    """A shape: clients train Tsetlin Machines."""

    n_clauses: int = 100  # per class
    threshold: int = 1000  # T: votes beyond which a class needs no more training
    specificity: float = 5.0  # s: the larger, the more literals a clause keeps
    fuzzy: tuple[int, int] | None = None  # fuzzy clauses: failures that silence one, literals at which it stops to grow
    patch: int | None = None  # side of the square patches; 0: the whole image; unset: 10, or the whole if it is small
    epochs: int = 1  # local epochs a round

    def __post_init__(self) -> None:
        check_at_least(self, n_clauses=1, threshold=1, specificity=1, patch=0, epochs=1)
        if self.fuzzy is not None and not all(1 <= limit <= tm.Fuzzy.MOST for limit in self.fuzzy):
            raise ValueError(f"method.fuzzy = {list(self.fuzzy)} must be two numbers from 1 to {tm.Fuzzy.MOST}")

    @property
    def options(self) -> dict[str, Any]:
        """What all machines of the method are built with."""
        fuzzy = None if self.fuzzy is None else tm.Fuzzy(*self.fuzzy)
        return {"threshold": self.threshold, "specificity": self.specificity, "fuzzy": fuzzy}

    def build(self, task: Task, n_clauses: int | None = None, n_classes: int | None = None) -> tm.Machine:
        """None: as many as the settings and the task say."""
        n_clauses = self.n_clauses if n_clauses is None else n_clauses
        n_classes = task.n_classes if n_classes is None else n_classes
        return tm.build(choose_shape(task, self.patch), n_classes, n_clauses, **self.options)


class MergedMethod(MachineMethod):
    """A shape: clients rebuild a machine from weights and include bits that were merged from several of theirs."""

    blend: float = 0.1  # delta: share of the new mean in the merged weights
    n_donors: int = 2  # K: clients whose include bits of a class are merged
    mask: bool = False  # clients zero the weights of classes they lack, before sending and after receiving
    include_state: int = 128  # automata are rebuilt as weak includes
    exclude_state: int = 95  # and excludes well below the boundary, so that training first thins clauses out
    keep_depth: bool = False  # automata that agree with the received bit keep their own state

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, n_donors=1)
        check_share(self, "blend")
        if not (128 <= self.include_state <= 255 and 0 <= self.exclude_state <= 127):
            raise ValueError(
                f"method.include_state = {self.include_state}, method.exclude_state = {self.exclude_state} "
                "must be from 128 to 255 and from 0 to 127"
            )

    def rebuild(self, machine: tm.Machine, merged: Merged) -> None:
        machine.weights[...] = merged.weights
        told = {"include_state": self.include_state, "exclude_state": self.exclude_state}
        tm.load_include_bits(machine, merged.states, **told, keep_depth=self.keep_depth)


def choose_shape(task: Task, patch: int | None) -> tm.Shape:
    """Square patches of so many pixels; None: 10, or the whole image if it is small; 0: the whole image."""
    if len(task.input_shape) == 1:
        return tm.Shape.flat(task.input_shape[0] - task.byte_layers)
    height, width, layers = (*task.input_shape, 1)[:3]
    layers -= task.byte_layers
    if patch is None:
        patch = USUAL_PATCH if min(height, width) >= SMALL_IMAGE else 0
    size = (patch, patch) if patch else (height, width)
    return tm.Shape.image(height, width, layers, patch=size, levels=task.levels)


def build_alike(machine: tm.Machine, n_classes: int, n_clauses: int) -> tm.Machine:
    """Fresh, of another size."""
    alike = {name: getattr(machine, name) for name in ("threshold", "specificity", "boost", "fuzzy")}
    return tm.build(machine.shape, n_classes, n_clauses, **alike)


def resize(machine: tm.Machine, n_clauses: int) -> tm.Machine:
    """Its first clauses, and fresh ones where it has too few; a clause's index is its polarity, so none may move."""
    if n_clauses == machine.n_clauses:
        return machine
    resized = build_alike(machine, machine.n_classes, n_clauses)
    n_kept = min(n_clauses, machine.n_clauses)
    resized.states[:, :n_kept] = machine.states[:, :n_kept]
    resized.weights[:, :n_kept] = machine.weights[:, :n_kept]
    return resized


def held_out(site: Site) -> Examples:
    """What a client judges by: the examples set aside, or those it trains on where none are."""
    return site.val if len(site.val.y) else site.train


def paper_clause_bytes(task: Task, patch: int | None) -> int:
    """Of a clause for each class, as the papers count them: include bits in whole words, and a weight of 32 bits."""
    return task.n_classes * 4 * (math.ceil(choose_shape(task, patch).n_literals / 32) + 1)
