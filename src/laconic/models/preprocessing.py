"""From raw rows to what a method takes, fitted once: plain data, so that a model can carry it wherever it goes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, make_dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from laconic.columns import Column
from laconic.models.inputs import Preprocessing as Preprocessing  # they are looked for here
from laconic.models.inputs import Rows as Rows
from laconic.models.table import TableBits, TableValues
from laconic.tsetlin import booleanize
from laconic.tsetlin.booleanize import Bit
from laconic.tsetlin.rules import Flag

CHUNK_ROWS = 4096  # at a time, so that what lies between takes little memory
PEAKS = (1, 16, 255)  # largest values that pixels may be meant to have


@dataclass(frozen=True)
class Unchanged(Preprocessing):
    """Of 0 and 1 alone."""

    kind = "none"

    @classmethod
    def fit(cls, rows: Rows) -> Self:
        return cls()

    def transform(self, rows: Rows) -> NDArray[np.uint8]:
        if not np.isin(rows, (0, 1)).all():
            raise ValueError(f"values from {rows.min():g} to {rows.max():g} came, 0 and 1 were expected")
        return rows.astype(np.uint8)

    def describe(self, name: str, column: int = 0) -> list[Bit]:
        return [Flag(name)]


@dataclass(frozen=True)
class Threshold(Preprocessing):
    kind = "threshold"

    above: float = 75

    @classmethod
    def fit(cls, rows: Rows, above: float = 75) -> Self:
        return cls(above)

    def transform(self, rows: Rows) -> NDArray[np.uint8]:
        return (rows > self.above).astype(np.uint8)

    def describe(self, name: str, column: int = 0) -> list[Bit]:
        return [Bit(name, self.above)]


@dataclass(frozen=True)
class Adaptive(Preprocessing):
    """A pixel against the Gaussian mean around it."""

    kind = "adaptive"

    window: int = 11
    offset: float = 2

    @classmethod
    def fit(cls, rows: Rows, window: float = 11, offset: float = 2) -> Self:
        return cls(int(window), offset)

    def transform(self, rows: Rows) -> NDArray[np.uint8]:
        return booleanize.AdaptiveGaussianThreshold(self.window, self.offset).transform(rows)

    def describe(self, name: str, column: int = 0) -> list[Bit]:
        return [Bit(f"{name} minus its {self.window}x{self.window} mean", -math.ceil(self.offset))]


@dataclass(frozen=True)
class Thermometer(Preprocessing):
    """Every channel of an image against the same ascending thresholds."""

    kind = "thermometer"

    n_levels: int = 8
    top: float = 255

    @classmethod
    def fit(cls, rows: Rows, levels: float = 8, top: float = 255) -> Self:
        return cls(int(levels), top)

    def transform(self, rows: Rows) -> NDArray[np.uint8]:
        return booleanize.Thermometer(self.n_levels, self.top).transform(rows)

    @property
    def levels(self) -> int:
        return self.n_levels

    @property
    def thresholds(self) -> list[float]:
        return booleanize.Thermometer(self.n_levels, self.top).list_thresholds()

    def describe(self, name: str, column: int = 0) -> list[Bit]:
        return [Bit(name, threshold) for threshold in self.thresholds]


@dataclass(frozen=True)
class Quantiles(Preprocessing):
    """Every column of a table against thresholds of its own, ascending."""

    kind = "quantile"

    thresholds: tuple[tuple[float, ...], ...]

    @classmethod
    def fit(cls, rows: Rows, levels: float = 4) -> Self:
        fitted = booleanize.QuantileThermometer(int(levels)).fit(rows)
        return cls(tuple(tuple(column) for column in fitted.thresholds_))

    def transform(self, rows: Rows) -> NDArray[np.uint8]:
        bits = [rows[:, [k]] > np.array(column) for k, column in enumerate(self.thresholds) if column]
        return np.concatenate(bits, axis=1).view(np.uint8)

    def describe(self, name: str, column: int = 0) -> list[Bit]:
        return [Bit(name, threshold) for threshold in self.thresholds[column]]


@dataclass(frozen=True, eq=False)
class PlaceQuantiles(Preprocessing):
    """Every place of an image against thresholds of its own, so that it stays an image."""

    kind = "place-quantile"

    thresholds: NDArray[Any]  # [row, column, (channel,) level]

    @classmethod
    def fit(cls, rows: Rows, levels: float = 4) -> Self:
        shares = np.arange(1, int(levels) + 1) / (int(levels) + 1)
        return cls(np.moveaxis(np.quantile(rows.astype(np.float32), shares, axis=0), 0, -1))

    @property
    def levels(self) -> int:
        return int(self.thresholds.shape[-1])

    def transform(self, rows: Rows) -> NDArray[np.uint8]:
        above = (rows[..., None] > self.thresholds).view(np.uint8)
        return above.reshape(*above.shape[:3], -1)

    def describe(self, name: str, column: int = 0) -> list[Bit]:
        shares = (f"{100 * k / (self.levels + 1):.0f}" for k in range(1, self.levels + 1))
        return [Flag(f"{name} above {share} % of its place") for share in shares]


@dataclass(frozen=True, eq=False)
class Centred(Preprocessing):
    """Values less their mean, in units of their spread; both are of all training examples, so everyone knows them."""

    kind = "centred"

    mean: NDArray[np.float64]
    spread: NDArray[np.float64]

    @classmethod
    def fit(cls, rows: Rows) -> Self:
        spread = rows.std(axis=0, dtype=np.float64)
        return cls(rows.mean(axis=0, dtype=np.float64), np.where(spread > 0, spread, 1))

    def transform(self, rows: Rows) -> NDArray[np.float32]:
        centred = np.empty(rows.shape, np.float32)
        for start in range(0, len(rows), CHUNK_ROWS):
            part = slice(start, start + CHUNK_ROWS)
            centred[part] = (rows[part] - self.mean) / self.spread
        return centred


@dataclass(frozen=True)
class Pixels(Preprocessing):
    """Bytes stay bytes: a network makes numbers from -1 to 1 of them, by the largest."""

    kind = "pixels"

    largest: float = 255.0

    @classmethod
    def fit(cls, rows: Rows) -> Self:
        return cls(float(next(peak for peak in PEAKS if rows.max() <= peak)))

    @property
    def peak(self) -> float:
        return self.largest

    def transform(self, rows: Rows) -> NDArray[np.uint8]:
        if rows.dtype != np.uint8 and not (np.all(rows >= 0) and np.all(rows <= 255) and np.all(rows == np.rint(rows))):
            raise ValueError(f"values from {rows.min():g} to {rows.max():g} came, whole numbers to 255 were expected")
        return rows.astype(np.uint8, copy=False)


@dataclass(frozen=True)
class Bytes(Preprocessing):
    """Values on 256 levels, for a bank of features: pixels fill them, others have mean 128 and spread 32."""

    kind = "bytes"

    n_layers: int  # of an image, or columns of a table
    pixels: Pixels | None  # one of these
    centred: Centred | None
    table: TableValues | None = None

    @classmethod
    def fit(cls, rows: Rows) -> Self:
        n_layers = 1 if rows.ndim == 3 else rows.shape[-1]
        is_pixels = rows.dtype == np.uint8
        return cls(n_layers, Pixels.fit(rows) if is_pixels else None, None if is_pixels else Centred.fit(rows))

    @property
    def text_columns(self) -> tuple[Column, ...]:
        return self.table.columns if self.table else ()

    def transform(self, rows: Rows) -> NDArray[np.uint8]:
        if self.pixels is not None:
            return self.pixels.transform(rows) * np.uint8(255 // int(self.pixels.largest))
        centred = self.centred or self.table
        assert centred is not None
        levels: NDArray[np.uint8] = np.rint(128 + 32 * centred.transform(rows)).clip(0, 255).astype(np.uint8)
        return levels


@dataclass(frozen=True, eq=False)
class BitsAndBytes(Preprocessing):
    """Both side by side; a kind for each rule of bits, see BESIDE."""

    bits: Any
    values: Bytes

    @property
    def levels(self) -> int:
        return int(self.bits.levels)

    @property
    def byte_layers(self) -> int:
        return self.values.n_layers

    @property
    def text_columns(self) -> tuple[Column, ...]:
        return self.values.text_columns

    def transform(self, rows: Rows) -> NDArray[np.uint8]:
        both = self.bits.transform(rows), self.values.transform(rows)
        return np.concatenate([x[..., None] if x.ndim == 3 else x for x in both], axis=-1)

    def describe(self, name: str, column: int = 0) -> list[Bit]:
        described: list[Bit] = self.bits.describe(name, column)
        return described


BIT_KINDS: tuple[type[Preprocessing], ...] = (
    *(Unchanged, Threshold, Adaptive, Thermometer, Quantiles, PlaceQuantiles, TableBits),
)
# a class each, so that a file is read by annotations alone
BESIDE: dict[type[Preprocessing], type[BitsAndBytes]] = {
    cls: make_dataclass(
        f"{cls.__name__}AndBytes",
        [("bits", cls), ("values", Bytes)],
        bases=(BitsAndBytes,),
        namespace={"kind": f"{cls.kind}+bytes"},
        frozen=True,
        eq=False,
    )
    for cls in BIT_KINDS
}
ALL_KINDS: list[type[Preprocessing]] = [*BIT_KINDS, Centred, Pixels, TableValues, Bytes, *BESIDE.values()]
KINDS = {cls.kind: cls for cls in ALL_KINDS}
BIT_RULES = ("none", "threshold", "adaptive", "thermometer", "quantile")


def from_transformer(given: Any) -> Preprocessing:
    """What a fitted booleanizer of laconic's does, as plain data; ValueError for any other transformer."""
    match given:
        case None:
            return Unchanged()
        case Preprocessing():
            return given
        case booleanize.Threshold():
            return Threshold(float(given.above))
        case booleanize.AdaptiveGaussianThreshold():
            return Adaptive(given.window, float(given.offset))
        case booleanize.Thermometer():
            return Thermometer(given.levels, float(given.top))
        case booleanize.QuantileThermometer():
            return Quantiles(tuple(tuple(column) for column in given.thresholds_))
    raise ValueError(
        f"booleanizer is a {type(given).__name__}, which no model file can hold; one of laconic.tsetlin.booleanize was "
        "expected"
    )


def fit_bits(rule: str, rows: Rows, columns: Sequence[Column] = ()) -> Preprocessing:
    """rule: a name of BIT_RULES and its numbers, thermometer:8:255, say. columns: of a table with text or gaps."""
    name, *numbers = rule.split(":")
    if name not in BIT_RULES:
        raise KeyError(name)
    if columns:
        if name != "quantile":
            raise ValueError("a table with text or empty cells came, which quantile:4 and the like can read")
        return TableBits.fit(columns, rows, *map(float, numbers))
    kind: Any = PlaceQuantiles if name == "quantile" and rows.ndim > 2 else KINDS[name]
    fitted: Preprocessing = kind.fit(rows, *map(float, numbers))
    return fitted


def fit_bytes(rows: Rows, columns: Sequence[Column] = ()) -> Bytes:
    """columns: of a table with text or gaps."""
    if not columns:
        return Bytes.fit(rows)
    table = TableValues.fit(columns, rows)
    return Bytes(table.transform(rows[:1]).shape[1], None, None, table)


def put_beside(bits: Preprocessing, values: Bytes) -> BitsAndBytes:
    return BESIDE[type(bits)](bits, values)


def fit_values(rows: Rows, columns: Sequence[Column] = ()) -> Preprocessing:
    """Bytes stay bytes, other values are centred. columns: of a table with text or gaps."""
    if columns:
        return TableValues.fit(columns, rows)
    return Pixels.fit(rows) if rows.dtype == np.uint8 else Centred.fit(rows)


def fit_for(takes: str, rule: str, rows: Rows, columns: Sequence[Column] = ()) -> Preprocessing:
    """takes: bits, by that rule, values, bytes, or bits and bytes, as a method says of itself."""
    if takes in ("values", "bytes"):
        return fit_values(rows, columns) if takes == "values" else fit_bytes(rows, columns)
    bits = fit_bits(rule, rows, columns)
    return bits if takes == "bits" else put_beside(bits, fit_bytes(rows, columns))


def name_columns(features: Sequence[str], n_columns: int) -> list[str]:
    return list(features) or [f"x{k}" for k in range(n_columns)]
