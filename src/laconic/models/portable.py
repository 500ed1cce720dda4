"""A model that needs nothing else: what it predicts by, how it reads raw rows, what it says of itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.columns import encode_rows
from laconic.models.base import PersonalModel
from laconic.models.preprocessing import Preprocessing
from laconic.tsetlin.rules import Evidence

Evidences = dict[str, Evidence]  # by the part of a model that the clauses are of


@dataclass(frozen=True)
class About:
    """What a model reads and says, and where it comes from."""

    classes: tuple[str, ...]
    features: tuple[str, ...]  # names of the columns of a table; none: x0, x1, …
    input_shape: tuple[int, ...]  # of one raw row
    method: str
    client: int
    name: str  # of the client, where it has one
    data: str  # name of the data set
    seed: int
    rounds: int  # that it was trained for
    laconic: str  # version
    git: str | None  # commit that the run was made at, where that is known
    run: str  # digest of the run: the same for the same states and records
    turns: int = 0  # quarters by which the client's images are turned to the left


@dataclass(frozen=True)
class PortableModel:
    model: PersonalModel
    preprocessing: Preprocessing
    about: About
    evidence: Evidences | None = None  # how its clauses fared on training examples

    def read(self, rows: Any) -> NDArray[Any]:
        """Raw rows as the model takes them; a frame's columns are taken by name."""
        return turn(self.preprocessing.transform(self.encode(rows)), self.about.turns)

    def encode(self, rows: Any) -> NDArray[Any]:
        """Raw rows as numbers: of text its place among its column's values, NaN where there is nothing."""
        if columns := self.preprocessing.text_columns:
            return encode_rows(rows, columns)
        return check_rows(rows, self.about.input_shape, self.about.features)


def turn(x: NDArray[Any], turns: int) -> NDArray[Any]:
    """[example, row, column, ...] turned to the left."""
    return np.ascontiguousarray(np.rot90(x, turns, axes=(1, 2))) if turns else x


def check_rows(rows: Any, input_shape: tuple[int, ...], features: Sequence[str]) -> NDArray[Any]:
    """[row, *input_shape] numbers; images may come flat."""
    x = np.asarray(pick_columns(rows, features) if hasattr(rows, "columns") else rows)
    if x.dtype.kind not in "buif":
        raise ValueError(f"rows are of {x.dtype}; numbers were expected")
    if x.shape[1:] == (prod(input_shape),):
        x = x.reshape(len(x), *input_shape)
    if x.ndim != 1 + len(input_shape) or x.shape[1:] != input_shape:
        hint = f"; give rows[None] for one alone, or {prod(input_shape)} numbers in each"
        raise ValueError(f"rows are of shape {x.shape}, [row, {', '.join(map(str, input_shape))}] was expected{hint}")
    if x.dtype.kind == "f" and not np.isfinite(x).all():
        bad = np.flatnonzero(~np.isfinite(x).reshape(len(x), -1).all(axis=1))
        raise ValueError(f"row {bad[0]} holds NaN or infinity, finite numbers were expected; fill in or drop it")
    return x


def pick_columns(frame: Any, features: Sequence[str]) -> Any:
    """Those that the model was trained on, in their order; all of a frame if these have no names."""
    if not features:
        return frame
    if lacking := [name for name in features if name not in list(frame.columns)]:
        raise ValueError(f"the rows have no column {', '.join(lacking)}; {', '.join(features)} were expected")
    return frame[list(features)]
