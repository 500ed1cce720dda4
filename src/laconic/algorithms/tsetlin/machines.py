"""What methods on Tsetlin Machines do alike: the clause's view of an example, sizes, rebuilding."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic import tsetlin as tm
from laconic.algorithm import Examples, Site, Task

SMALL_IMAGE = 20  # pixels; below it patches tell clauses too little, so they see the whole image
USUAL_PATCH = 10


def choose_shape(task: Task, patch: int | None) -> tm.Shape:
    """Square patches of so many pixels; None: 10, or the whole image if it is small; 0: the whole image."""
    if len(task.input_shape) == 1:
        return tm.Shape.flat(*task.input_shape)
    height, width, layers = (*task.input_shape, 1)[:3]
    if patch is None:
        patch = USUAL_PATCH if min(height, width) >= SMALL_IMAGE else 0
    size = (patch, patch) if patch else (height, width)
    return tm.Shape.image(height, width, layers, patch=size, levels=task.levels)


def classify(machine: tm.Machine, x: NDArray[np.uint8], among: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
    """[example] the class with most votes; sums are not clamped, so that they tell strong classes apart.

    among: [class] those that may be chosen; all by default.
    """
    classes = np.arange(machine.n_classes) if among is None else np.flatnonzero(among)
    best: NDArray[np.int64] = classes[tm.class_sums(machine, x)[:, classes].argmax(axis=1)]
    return best


def resize(machine: tm.Machine, n_clauses: int) -> tm.Machine:
    """Its first clauses, and fresh ones where it has too few; a clause's index is its polarity, so none may move."""
    if n_clauses == machine.n_clauses:
        return machine
    resized = tm.build(
        machine.shape,
        machine.n_classes,
        n_clauses,
        threshold=machine.threshold,
        specificity=machine.specificity,
        boost=machine.boost,
    )
    n_kept = min(n_clauses, machine.n_clauses)
    resized.states[:, :n_kept] = machine.states[:, :n_kept]
    resized.weights[:, :n_kept] = machine.weights[:, :n_kept]
    return resized


def rebuild(machine: tm.Machine, weights: NDArray[Any], states: NDArray[np.bool_], settings: Any) -> None:
    """Takes over clause weights and include bits, the automata in the states that the method's settings name."""
    machine.weights[...] = weights
    tm.load_include_bits(
        machine,
        states,
        include_state=settings.include_state,
        exclude_state=settings.exclude_state,
        keep_depth=settings.keep_depth,
    )


def held_out(site: Site) -> Examples:
    """What a client judges by: the examples set aside, or those it trains on where none are."""
    return site.val if len(site.val.y) else site.train


def paper_state_bits(states: NDArray[np.bool_]) -> float:
    """Include bits [..., literal] as the papers count them: each clause in whole words of 32 bits."""
    n_clauses, n_words = states[..., 0].size, math.ceil(states.shape[-1] / 32)
    return float(32 * n_clauses * n_words)


def paper_clause_bytes(task: Task, patch: int | None) -> int:
    """Of a clause for each class, as the papers count them: include bits in whole words, and a weight of 32 bits."""
    return task.n_classes * 4 * (math.ceil(choose_shape(task, patch).n_literals / 32) + 1)


def check_rebuilding(settings: Any) -> None:
    if not (128 <= settings.include_state <= 255 and 0 <= settings.exclude_state <= 127):
        raise ValueError(
            f"method.include_state = {settings.include_state}, method.exclude_state = {settings.exclude_state} "
            "must be from 128 to 255 and from 0 to 127"
        )
