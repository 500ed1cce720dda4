"""Clauses apart from the machine that learned them: whether they fire, and what they are worth."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from laconic.tsetlin.geometry import Shape
from laconic.tsetlin.machine import Machine, build, clause_outputs, include_bits, load_include_bits
from laconic.tsetlin.packing import Packed, pack


def fire_clauses(shape: Shape, clauses: NDArray[np.bool_], x: ArrayLike | Packed) -> NDArray[np.bool_]:
    """[sample, clause] whether clauses given by their include bits [clause, literal] fire; empty ones do not."""
    packed = pack(shape, x)
    if not len(clauses):
        return np.zeros((len(packed), 0), np.bool_)
    machine = build(shape, 1, len(clauses))
    load_include_bits(machine, clauses[None])
    return clause_outputs(machine, packed)[:, 0]


def pick_clauses(
    machine: Machine, x: ArrayLike | Packed, y: NDArray[np.integer[Any]], labels: Iterable[int], n_chosen: int
) -> NDArray[np.bool_]:
    """[clause, literal] include bits of the clauses that best tell these classes apart, so many of each."""
    outputs, includes = clause_outputs(machine, x), include_bits(machine)
    chosen = [includes[label, choose_clauses(outputs[:, label], y, label, n_chosen)] for label in map(int, labels)]
    return np.concatenate([includes[0, :0], *chosen])


def choose_clauses(
    fired: NDArray[np.bool_], labels: NDArray[np.integer[Any]], label: int, n_chosen: int
) -> NDArray[np.int64]:
    """The clauses that best tell a class from the others, best first; fired: [sample, clause].

    The first is the one whose firing rate on the class is farthest from its mean rate on the others. Then, as in
    AdaBoost, samples that it judges rightly count less, so that the next one helps where it fails.
    """
    sign = np.where(labels == label, 1.0, -1.0)
    classes, place, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    weight = np.where(sign > 0, 1.0, 1 / max(len(classes) - 1, 1)) / sizes[place]
    agrees = sign[:, None] * np.where(fired, 1.0, -1.0)
    chosen: list[int] = []
    for _ in range(min(n_chosen, fired.shape[1])):
        gain = (weight[:, None] * agrees).sum(axis=0) / weight.sum()
        strength = np.abs(gain)
        strength[chosen] = -1
        best = int(strength.argmax())
        chosen.append(best)
        lean = gain[best].clip(-0.95, 0.95)  # a faultless clause leaves the others some weight to be chosen by
        weight *= ((1 - lean) / (1 + lean)) ** (agrees[:, best] / 2)
    return np.array(chosen, np.int64)
