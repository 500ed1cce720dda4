"""What a network says of a row: logits, or how far its features are from the target of each class."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic import networks as nn
from laconic.models.background import Background
from laconic.models.base import PersonalModel
from laconic.models.networks import Logits, NearestTarget


@dataclass(frozen=True)
class Layer:
    name: str
    shape: tuple[int, ...]
    is_head: bool
    n_critical: int | None = None  # None: not known
    critical_rows: tuple[float, ...] = ()  # [output] share of its parameters that are critical; of a head, [class]

    @property
    def n_parameters(self) -> int:
        return prod(self.shape)

    @property
    def share(self) -> float:
        """Of its parameters, critical."""
        return (self.n_critical or 0) / self.n_parameters


def list_network_sums(model: PersonalModel, x: NDArray[Any]) -> tuple[NDArray[np.bool_], dict[str, NDArray[Any]]]:
    """[class] that may be chosen, and by name what is known of each class for the one row of x."""
    if isinstance(model, NearestTarget):
        features = nn.outputs(model.network, x)[0][0].astype(np.float64)
        distances = np.sqrt(((features - model.targets.astype(np.float64)) ** 2).sum(axis=1))
        return model.has_target, {"distance": distances}
    logits = model.scores(x)[0].astype(np.float64)
    chances = np.exp(logits - logits.max())
    return np.ones(len(logits), np.bool_), {"logit": logits, "chance": chances / chances.sum()}


def list_layers(model: PersonalModel, background: Background | None) -> list[Layer]:
    assert isinstance(model, Logits | NearestTarget)
    known = background.critical if background is not None else {}
    return [
        describe_layer(piece.name, piece.shape, piece.is_head, known.get(piece.name))
        for piece in model.network.layout.pieces
        if not piece.is_statistic
    ]


def describe_layer(name: str, shape: tuple[int, ...], is_head: bool, critical: NDArray[np.bool_] | None) -> Layer:
    if critical is None:
        return Layer(name, shape, is_head)
    rows = critical.reshape(shape[0], -1).mean(axis=1)
    return Layer(name, shape, is_head, int(np.count_nonzero(critical)), tuple(rows.tolist()))
