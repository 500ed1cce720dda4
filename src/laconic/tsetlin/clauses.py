"""Clauses apart from the machine that learned them: where they hold, what that says, and which are worth most.

A clause that holds on many patches of an image says more than one that holds somewhere. It speaks in levels: four for
each doubling of the patches on which it holds. What is many differs from clause to clause, so each has a scale: the
level halfway between its class and the others, and how far levels spread around it.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from laconic.tsetlin.geometry import Shape
from laconic.tsetlin.machine import Machine, build, clause_counts, include_bits, load_include_bits
from laconic.tsetlin.packing import Packed, pack

LEVELS = 4  # for each doubling
MAX_SPREAD = 5  # with it a feature is a multiple of 1/32


class Clauses(NamedTuple):
    includes: NDArray[np.bool_]  # [clause, literal]
    scales: NDArray[np.integer[Any]]  # [clause, 2] middle in levels, and log2 of the levels that count as one


def as_levels(counts: NDArray[np.int32]) -> NDArray[np.int8]:
    """Of a clause that holds on so many patches; none is level 0."""
    levels: NDArray[np.int8] = np.rint(LEVELS * np.log2(1.0 + counts)).astype(np.int8)
    return levels


def read_clauses(shape: Shape, clauses: Clauses, x: ArrayLike | Packed) -> NDArray[np.float64]:
    """[sample, clause] from -1 to 1, in steps of 1/32: how far above its middle a clause speaks."""
    packed = pack(shape, x)
    if not len(clauses.includes):
        return np.zeros((len(packed), 0))
    return read_machine(hold_clauses(shape, clauses.includes), clauses.scales, packed)


def hold_clauses(shape: Shape, includes: NDArray[np.bool_]) -> Machine:
    """A machine of one bank that is only to say where these clauses hold."""
    machine = build(shape, 1, len(includes))
    load_include_bits(machine, includes[None])
    return machine


def read_machine(machine: Machine, scales: NDArray[np.integer[Any]], x: ArrayLike | Packed) -> NDArray[np.float64]:
    """The same of all clauses of a machine, bank by bank."""
    counts = clause_counts(machine, x)
    return scale_levels(as_levels(counts).reshape(len(counts), len(scales)), scales)


def scale_levels(levels: NDArray[np.int8], scales: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
    above = levels.astype(np.float64) - scales[:, 0]
    return np.clip(np.ldexp(above, -scales[:, 1].astype(np.int64)), -1, 1)


def measure_scales(levels: NDArray[np.int8], is_mine: NDArray[np.bool_]) -> NDArray[np.int8]:
    """[clause, 2] from levels [sample, clause] on samples of its class and others; both sides count alike."""
    sides = [levels[side].astype(np.float64) for side in (is_mine, ~is_mine) if side.any()]
    means = np.mean([side.mean(axis=0) for side in sides], axis=0)
    squares = np.mean([(side**2).mean(axis=0) for side in sides], axis=0)
    spread = np.rint(np.log2(np.maximum(2 * np.sqrt(np.maximum(squares - means**2, 0)), 1)))
    return np.stack([np.rint(means), spread.clip(0, MAX_SPREAD)], axis=1).astype(np.int8)


def measure_machine(machine: Machine, x: ArrayLike | Packed, y: NDArray[np.integer[Any]]) -> NDArray[np.int8]:
    """Scales of all its clauses, bank by bank."""
    levels = as_levels(clause_counts(machine, x))
    return np.concatenate([measure_scales(levels[:, label], y == label) for label in range(machine.n_classes)])


def pick_clauses(
    machine: Machine, x: ArrayLike | Packed, y: NDArray[np.integer[Any]], labels: Iterable[int], n_chosen: int
) -> Clauses:
    """Those that best tell these classes apart, so many of each."""
    levels, includes = as_levels(clause_counts(machine, x)), include_bits(machine)
    chosen = [Clauses(includes[0, :0], np.zeros((0, 2), np.int8))]
    for label in map(int, labels):
        scales = measure_scales(levels[:, label], y == label)
        best = choose_clauses(scale_levels(levels[:, label], scales), y, label, n_chosen)
        chosen.append(Clauses(includes[label, best], scales[best]))
    return Clauses(*map(np.concatenate, zip(*chosen, strict=True)))


def choose_clauses(
    spoken: NDArray[np.float64], labels: NDArray[np.integer[Any]], label: int, n_chosen: int
) -> NDArray[np.int64]:
    """The clauses that best tell a class from the others, best first; spoken: [sample, clause] from -1 to 1.

    The first is the one that speaks most differently of the class and, in the mean, of the others. Then, as in
    AdaBoost, samples that it judges rightly count less, so that the next one helps where it fails.
    """
    sign = np.where(labels == label, 1.0, -1.0)
    classes, place, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    weight = np.where(sign > 0, 1.0, 1 / max(len(classes) - 1, 1)) / sizes[place]
    agrees = sign[:, None] * spoken
    chosen: list[int] = []
    for _ in range(min(n_chosen, spoken.shape[1])):
        gain = (weight[:, None] * agrees).sum(axis=0) / weight.sum()
        strength = np.abs(gain)
        strength[chosen] = -1
        best = int(strength.argmax())
        chosen.append(best)
        lean = gain[best].clip(-0.95, 0.95)  # a faultless clause leaves the others some weight to be chosen by
        weight *= ((1 - lean) / (1 + lean)) ** (agrees[:, best] / 2)
    return np.array(chosen, np.int64)
