"""Clauses apart from the machine that learned them: whether they fire, and what they are worth."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from laconic.tsetlin.geometry import Shape
from laconic.tsetlin.machine import build, clause_outputs, load_include_bits
from laconic.tsetlin.packing import Packed, pack


def fire_clauses(shape: Shape, clauses: NDArray[np.bool_], x: ArrayLike | Packed) -> NDArray[np.bool_]:
    """[sample, clause] whether clauses given by their include bits [clause, literal] fire; empty ones do not."""
    packed = pack(shape, x)
    if not len(clauses):
        return np.zeros((len(packed), 0), np.bool_)
    machine = build(shape, 1, len(clauses))
    load_include_bits(machine, clauses[None])
    return clause_outputs(machine, packed)[:, 0]


def rate_clauses(fired: NDArray[np.bool_], labels: NDArray[np.integer[Any]], label: int) -> NDArray[np.float64]:
    """[clause] how far its firing rate on a class is from its mean rate on the others; fired: [sample, clause]."""
    others = [fired[labels == other].mean(axis=0) for other in np.unique(labels) if other != label]
    rates: NDArray[np.float64] = fired[labels == label].mean(axis=0) - (np.mean(others, axis=0) if others else 0)
    return np.abs(rates)
