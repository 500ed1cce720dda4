"""Rows to predict, read from a file: an .npz with one array of them, or a .csv with a line for each."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ARRAYS = ("rows", "x", "x_test")  # of an .npz with several, the first of these


class NamedRows:
    """Columns by name, as a frame has them; enough of one for a model to pick its own."""

    def __init__(self, columns: Sequence[str], values: NDArray[np.float64]) -> None:
        self.columns, self.values = list(columns), values

    def __getitem__(self, names: list[str]) -> NDArray[np.float64]:
        return self.values[:, [self.columns.index(name) for name in names]]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype)


def read_rows(path: Path, features: Sequence[str]) -> NDArray[Any] | NamedRows:
    """features: the columns that are needed; others of a .csv may hold anything."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there; give an .npz or a .csv with rows to predict")
    if path.suffix == ".npz":
        return read_npz(path)
    if path.suffix == ".csv":
        return read_csv(path, features)
    raise ValueError(f"{path} is of kind {path.suffix or 'unknown'}; .npz or .csv was expected")


def read_npz(path: Path) -> NDArray[Any]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            alone = archive.files if len(archive.files) == 1 else []
            names = [name for name in (*ARRAYS, *alone) if name in archive.files]
            if not names:
                raise ValueError(f"it has {', '.join(archive.files) or 'no arrays'}; call that of the rows {ARRAYS[0]}")
            rows: NDArray[Any] = archive[names[0]]
            return rows
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error


def read_csv(path: Path, features: Sequence[str]) -> NDArray[Any] | NamedRows:
    """With a line of names on top, or of numbers alone."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        lines = [line for line in csv.reader(file) if line]
    if not lines:
        raise ValueError(f"{path} is empty; a line for each row was expected")
    has_names = not all(is_number(cell) for cell in lines[0])
    n_columns = len(lines[0])
    by_order = list(features) if len(features) == n_columns else [f"x{k}" for k in range(n_columns)]
    names = [cell.strip() for cell in lines[0]] if has_names else by_order
    wanted = [name for name in (features or names) if name in names]
    places = [names.index(name) for name in wanted]
    values = np.array(
        [read_line(path, n, line, names, places) for n, line in enumerate(lines[has_names:], has_names + 1)]
    )
    return NamedRows(wanted, values.reshape(-1, len(wanted)))


def read_line(path: Path, number: int, line: Sequence[str], names: Sequence[str], places: Sequence[int]) -> list[float]:
    if len(line) != len(names):
        raise ValueError(f"{path}:{number} has {len(line)} cells, {len(names)} were expected")
    for place in places:
        if not is_number(line[place]):
            raise ValueError(f"{path}:{number}: column {names[place]} holds {line[place]!r:.40}, a number was expected")
    return [float(line[place]) for place in places]


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
