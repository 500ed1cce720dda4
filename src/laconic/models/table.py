"""Tables with text or gaps as bits or values: a bit for each threshold of a number, each value of a text, each gap.

Rows come encoded, see laconic.columns: a number is itself, a text its place in the column's values, a gap NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from laconic.columns import Column
from laconic.models.inputs import Preprocessing, Rows
from laconic.tsetlin.booleanize import Bit, QuantileThermometer


@dataclass(frozen=True)
class Is(Bit):
    """A column that has some value, in words and in those of the contrary."""

    threshold: float = 0.5
    contrary: str = ""

    def __str__(self) -> str:
        return self.feature

    @property
    def negated(self) -> str:
        return self.contrary


@dataclass(frozen=True)
class TableBits(Preprocessing):
    """Column by column: number > threshold, or text = value, for each of them; then, where cells may be empty, that."""

    kind = "table-bits"

    columns: tuple[Column, ...]
    thresholds: tuple[tuple[float, ...], ...]  # [column] ascending; none for text

    @classmethod
    def fit(cls, columns: Sequence[Column], rows: Rows, levels: float = 4) -> Self:
        cuts = [() if column.values else cut(rows[:, k], int(levels)) for k, column in enumerate(columns)]
        return cls(tuple(columns), tuple(cuts))

    @property
    def text_columns(self) -> tuple[Column, ...]:
        return self.columns

    def transform(self, rows: Rows) -> NDArray[np.uint8]:
        sizes = [len(self.describe(column.name, k)) for k, column in enumerate(self.columns)]
        bits = np.zeros((len(rows), sum(sizes)), np.bool_)
        for k, (column, end) in enumerate(zip(self.columns, np.cumsum(sizes), strict=True)):
            mine, cells = bits[:, end - sizes[k] : end], rows[:, k]
            n_known = sizes[k] - column.may_lack
            if column.values:
                mine[:, :n_known] = cells[:, None] == np.arange(n_known)
            else:
                mine[:, :n_known] = cells[:, None] > np.array(self.thresholds[k])  # never of NaN
            if column.may_lack:
                mine[:, -1] = np.isnan(cells)
        return bits.view(np.uint8)

    def describe(self, name: str, column: int = 0) -> list[Bit]:
        found = self.columns[column]
        values = [*found.values, *(["missing"] if found.may_lack else [])]
        features = [f"{name} is {value}" for value in values]
        gaps = tuple(features[-1:]) if found.may_lack else ()
        bits = [Bit(name, threshold, gaps, *gaps) for threshold in self.thresholds[column]]
        for feature, value in zip(features, values, strict=True):
            rivals = tuple(other for other in (name, *features) if other != feature)
            bits.append(Is(feature, rivals=rivals, contrary=f"{name} is not {value}"))
        return bits


def cut(cells: Rows, levels: int) -> tuple[float, ...]:
    known = cells[~np.isnan(cells)]
    return tuple(QuantileThermometer(levels).fit(known[:, None]).thresholds_[0]) if len(known) else ()


@dataclass(frozen=True, eq=False)
class TableValues(Preprocessing):
    """Numbers less their mean in units of their spread, 0 where there is none; texts and gaps as TableBits has them."""

    kind = "table-values"

    columns: tuple[Column, ...]
    mean: NDArray[np.float64]  # [column] of training examples; of text: 0
    spread: NDArray[np.float64]

    @classmethod
    def fit(cls, columns: Sequence[Column], rows: Rows) -> Self:
        is_text = np.array([bool(column.values) for column in columns])
        known = [cells[~np.isnan(cells)] for cells in rows.T]
        mean = np.array([cells.mean() if len(cells) else 0.0 for cells in known])
        spread = np.array([cells.std() if len(cells) else 0.0 for cells in known])
        return cls(tuple(columns), np.where(is_text, 0, mean), np.where(is_text | (spread == 0), 1, spread))

    @property
    def text_columns(self) -> tuple[Column, ...]:
        return self.columns

    def transform(self, rows: Rows) -> NDArray[np.float32]:
        sizes = [max(1, len(column.values)) + column.may_lack for column in self.columns]
        values = np.empty((len(rows), sum(sizes)), np.float32)
        for k, (column, end) in enumerate(zip(self.columns, np.cumsum(sizes), strict=True)):
            mine, cells = values[:, end - sizes[k] : end], rows[:, [k]]
            n_known = sizes[k] - column.may_lack
            if column.values:
                mine[:, :n_known] = cells == np.arange(n_known)
            else:
                mine[:, :n_known] = np.nan_to_num((cells - self.mean[k]) / self.spread[k])
            if column.may_lack:
                mine[:, n_known:] = np.isnan(cells)
        return values
