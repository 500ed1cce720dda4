"""Files of cells, .csv and the like: what parts cells, what stands on top; read piece by piece, in little memory."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from laconic.columns import DECIMAL_COMMA, EXACT, MISSING, Numbers, Origin, Texts, read_cells, read_number

SEPARATORS = (",", ";", "\t", "|")  # the first of those that part the first line into most cells
SAMPLE = 2**16  # characters that are looked at to tell what a file is like
POINT = re.compile(r"-?\d+\.\d+")
PIECE = 2**16  # rows at a time; all at once would take twice the memory
ENCODING = "utf-8-sig"  # takes the mark that spreadsheets put in front


@dataclass(frozen=True)
class Form:
    """How a file is to be read."""

    separator: str
    decimal: str  # "," in files of countries where cells are parted by ;
    names: tuple[str, ...]  # "" where a column has none


class Cells:
    """Columns of a file by name, as a frame has them."""

    def __init__(self, names: Sequence[str], columns: dict[str, Numbers | Texts], n_rows: int) -> None:
        self.columns, self._cells, self._n_rows = list(names), columns, n_rows

    def __getitem__(self, name: str) -> Numbers | Texts:
        return self._cells[name]

    def __len__(self) -> int:
        return self._n_rows


def find_form(path: Path) -> Form:
    """By its beginning; names on top must differ."""
    form = guess_form(path)
    if not any(form.names):
        raise ValueError(f"{path} is empty; names of columns on top and a line for each row were expected")
    if twice := sorted({name for name in form.names if name and form.names.count(name) > 1}):
        raise ValueError(f"{path} has more than one column called {', '.join(twice)}; give each a name of its own")
    return form


def guess_form(path: Path) -> Form:
    """names: whatever the first line has."""
    with path.open(encoding=ENCODING, newline="") as file:
        try:
            sample = file.read(SAMPLE)
        except UnicodeDecodeError:
            raise ValueError(tell_encoding(path)) from None
    lines = sample.splitlines(keepends=True)
    tops = {each: next(csv.reader(lines, delimiter=each), []) for each in SEPARATORS}
    # of numbers without names on top, 0,5;1,5 has more commas than cells
    are_rows = {each: all(is_number(with_point(cell)) for cell in top) for each, top in tops.items()}
    separator = max(SEPARATORS, key=lambda each: (are_rows[each], len(tops[each])))
    rows = lines if are_rows[separator] else lines[1:]
    cells = [cell for row in csv.reader(rows, delimiter=separator) for cell in row]
    has_points, has_commas = (any(form.fullmatch(cell) for cell in cells) for form in (POINT, DECIMAL_COMMA))
    decimal = "," if has_commas and not has_points and separator != "," else "."
    return Form(separator, decimal, tuple(name.strip() for name in tops[separator]))


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def with_point(cell: str) -> str:
    """A number with a decimal comma as others write it; anything else as it is."""
    pointed = cell.replace(",", ".")
    return pointed if is_number(pointed) else cell


def count_cells(path: Path, form: Form) -> Iterator[int]:
    """In each row, names on top first; blank lines are none.

    Only lines with quotes are taken apart, for that takes ten times as long as counting.
    """
    with path.open(encoding=ENCODING, newline="") as file:
        for line in file:
            if '"' in line:  # then a row may go on in the next line
                yield len(next(csv.reader(chain([line], file), delimiter=form.separator)))
            elif line.strip(" \r\n"):  # tabs may be what parts cells of nothing
                yield line.count(form.separator) + 1


def check_widths(path: Path, form: Form) -> None:
    """Refuses rows with too few or too many cells: pandas would fill up the former and shift or cut the latter."""
    try:
        for row, n_cells in enumerate(count_cells(path, form)):
            if n_cells != len(form.names):
                raise ValueError(
                    f"row {row} of {path.name}, counted from 1, has {n_cells} cells, {len(form.names)} were expected; "
                    "mend or drop it"
                )
    except UnicodeDecodeError:
        raise ValueError(tell_encoding(path)) from None


def tell_encoding(path: Path) -> str:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                came = f"byte {line[error.start]:02x} in line {number}"
                return f"{path} is not in UTF-8 ({came}); save it anew in that encoding: CSV UTF-8 in spreadsheets"
    return f"{path} is not in UTF-8; save it anew in that encoding"


def read_csv(path: Path, form: Form, wanted: Sequence[str], exact: Sequence[str] = ()) -> Cells:
    """wanted: names of columns; the others are skipped. exact: those whose numbers are names. Needs pandas."""
    import pandas

    check_widths(path, form)
    places = {form.names.index(name): name for name in wanted}
    options: dict[str, Any] = {
        "sep": form.separator, "decimal": form.decimal, "header": 0, "names": range(len(form.names)),
        "index_col": False, "keep_default_na": False, "na_values": list(MISSING), "encoding": ENCODING,
        "low_memory": False,
    }  # fmt: skip

    def read_written(place: int, name: str) -> Numbers | Texts:
        alone = pandas.read_csv(path, usecols=[place], dtype=str, **options)
        return read_cells(name, alone[place], Origin(path.name, 1))

    found: dict[int, list[Numbers | Texts]] = {place: [] for place in places}
    n_rows = 0
    with pandas.read_csv(path, usecols=sorted(places), chunksize=PIECE, **options) as pieces:
        for piece in pieces:
            for place, name in places.items():
                found[place].append(read_cells(name, piece[place], Origin(path.name, 1, n_rows)))
            n_rows += len(piece)
    columns: dict[str, Numbers | Texts] = {}
    for place, name in places.items():
        held = found.pop(place)
        # numbers here and text there: what numbers were like in the file is needed
        cells = as_numbers(join(held) if are_alike(held) else read_written(place, name))
        if name in exact and not isinstance(cells, list) and (np.abs(cells) >= EXACT).any():
            cells = read_written(place, name)
        columns[name] = cells
    return Cells([name for name in form.names if name in columns], columns, n_rows)


def as_numbers(cells: Numbers | Texts) -> Numbers | Texts:
    """Of text that is but numbers and blanks, which pandas takes for text."""
    if not isinstance(cells, list):
        return cells
    meant = {text: np.nan if text is None else read_number(text) for text in {*cells}}
    if not all(text is None or np.isfinite(number) for text, number in meant.items()):
        return cells
    return np.array([meant[text] for text in cells], np.float64)


def are_alike(pieces: Sequence[Numbers | Texts]) -> bool:
    """All numbers, or all text; cells of nothing are like either."""
    has_numbers = any(not isinstance(piece, list) and not np.isnan(piece).all() for piece in pieces)
    return not (has_numbers and any(isinstance(piece, list) for piece in pieces))


def join(pieces: Sequence[Numbers | Texts]) -> Numbers | Texts:
    if any(isinstance(piece, list) for piece in pieces):
        return [cell for piece in pieces for cell in (piece if isinstance(piece, list) else [None] * len(piece))]
    return np.concatenate([np.empty(0), *pieces])
