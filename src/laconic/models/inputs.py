"""What any preprocessing can do; the kinds of it: preprocessing.py, and for tables with text or gaps table.py."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from laconic.columns import Column
from laconic.tsetlin.booleanize import Bit

Rows = NDArray[Any]  # [example, ...] as the data set has them


@dataclass(frozen=True)
class Preprocessing(ABC):
    kind: ClassVar[str]

    @property
    def levels(self) -> int:
        """Bits only: layers come in runs of so many nested thermometer levels."""
        return 1

    @property
    def peak(self) -> float:
        """Values only: the largest that a pixel may have; 0: they have no scale of their own."""
        return 0.0

    @property
    def byte_layers(self) -> int:
        """Bits and bytes: the last so many layers, or columns of a table, are bytes."""
        return 0

    @property
    def text_columns(self) -> tuple[Column, ...]:
        """Of a table that may hold text or lack values: all its columns. None: rows are numbers."""
        return ()

    @abstractmethod
    def transform(self, rows: Rows) -> NDArray[Any]: ...

    def describe(self, name: str, column: int = 0) -> list[Bit]:
        """What the bits of a column or channel of that name say, in their order."""
        raise ValueError(f"{type(self).__name__} makes numbers, not bits; there is nothing to describe")
