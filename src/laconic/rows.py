"""Rows to predict, read from a file: an .npz with one array of them, or a .csv with a line for each."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.columns import Column
from laconic.data.cells import ENCODING, guess_form, is_number, tell_encoding, with_point

ARRAYS = ("rows", "x", "x_test")  # of an .npz with several, the first of these


class NamedRows:
    """Columns by name, as a frame has them; enough of one for a model to pick its own."""

    def __init__(self, columns: Sequence[str], values: NDArray[np.float64]) -> None:
        self.columns, self.values = list(columns), values

    def __getitem__(self, names: list[str]) -> NDArray[np.float64]:
        return self.values[:, [self.columns.index(name) for name in names]]

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype)


def read_rows(path: Path, features: Sequence[str], columns: Sequence[Column] = ()) -> Any:
    """features: those needed; other columns of a .csv may hold anything. columns: if cells may be text or empty."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there; give an .npz or a .csv with rows to predict")
    if path.suffix == ".npz":
        return read_npz(path)
    if path.suffix.lower() in (".csv", ".tsv"):
        return read_texts(path, columns) if columns else read_csv(path, features)
    if path.suffix == ".parquet":
        return read_parquet(path)
    raise ValueError(f"{path} is of kind {path.suffix or 'unknown'}; .npz, .csv or .parquet was expected")


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


def read_parquet(path: Path) -> Any:
    try:
        import pandas
    except ImportError:
        raise ValueError(f'{path} needs pandas, which is not installed.  pip install "laconic-fl[tables]"') from None
    return pandas.read_parquet(path)


class TextRows:
    """Cells as a file has them, by the names on top of it."""

    def __init__(self, columns: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
        self.columns, self.lines = list(columns), lines

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, name: str) -> list[str]:
        place = self.columns.index(name)
        return [line[place] for line in self.lines]


def read_texts(path: Path, columns: Sequence[Column]) -> TextRows:
    (names, *lines), decimal = read_lines(path)
    for number, line in enumerate(lines, 1):
        if len(line) != len(names):
            raise ValueError(f"row {number} of {path} has {len(line)} cells, {len(names)} were expected")
    names = [name.strip() for name in names]
    texts = {column.name for column in columns if column.values}  # 0,5 may be one: it was kept as it stood
    counted = [place for place, name in enumerate(names) if name not in texts and decimal == ","]
    for line in lines:
        for place in counted:
            line[place] = with_point(line[place])
    return TextRows(names, lines)


def read_lines(path: Path) -> tuple[list[list[str]], str]:
    """Cells of each line, and the mark before decimals."""
    try:
        form = guess_form(path)
        with path.open(newline="", encoding=ENCODING) as file:
            lines = [line for line in csv.reader(file, delimiter=form.separator) if line]
    except UnicodeDecodeError:
        raise ValueError(tell_encoding(path)) from None
    except csv.Error as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    if not lines:
        raise ValueError(f"{path} is empty; a line for each row was expected")
    return lines, form.decimal


def read_csv(path: Path, features: Sequence[str]) -> NDArray[Any] | NamedRows:
    """With a line of names on top, or of numbers alone."""
    lines, decimal = read_lines(path)
    if decimal == ",":
        lines = [[with_point(cell) for cell in line] for line in lines]
    has_names = not all(is_number(cell) for cell in lines[0])
    n_columns = len(lines[0])
    by_order = list(features) if len(features) == n_columns else [f"x{k}" for k in range(n_columns)]
    names = [cell.strip() for cell in lines[0]] if has_names else by_order
    wanted = [name for name in (features or names) if name in names]
    places = [names.index(name) for name in wanted]
    values = [read_line(path, n, line, names, places) for n, line in enumerate(lines[has_names:], has_names + 1)]
    return NamedRows(wanted, np.array(values).reshape(len(values), len(wanted)))


def read_line(path: Path, number: int, line: Sequence[str], names: Sequence[str], places: Sequence[int]) -> list[float]:
    if len(line) != len(names):
        raise ValueError(f"{path}:{number} has {len(line)} cells, {len(names)} were expected")
    for place in places:
        if not is_number(line[place]):
            raise ValueError(f"{path}:{number}: column {names[place]} holds {line[place]!r:.40}, a number was expected")
    return [float(line[place]) for place in places]
