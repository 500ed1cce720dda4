"""Columns of a table as numbers: text by its place in a list of values, nothing as NaN; models carry these lists.

What is no number and no text is refused, with its row and column.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal, InvalidOperation
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "?")  # what stands for nothing in a file
LOGICAL = {"TRUE": "True", "true": "True", "FALSE": "False", "false": "False"}  # pandas reads some as truths, some not
MOST_VALUES = 100  # of a column of text; each is a bit
DATE = re.compile(  # and times of day
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d\d)\b|\d{1,2}:\d\d"
    r"|(\d{1,2}\.? )?(jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|oct(ober)?"
    r"|nov(ember)?|dec(ember)?)\.? \d",
    re.IGNORECASE,
)
EXACT = 2**53  # from here on floats take whole numbers for their neighbours
COMMAS = re.compile(r"-?\d+(,\d+)+")  # 0,5 or 1,000: which of them cannot be told
DECIMAL_COMMA = re.compile(r"-?(?![1-9]\d{0,2},\d{3}$)\d+,\d+")  # 1,000 may be a thousand
LEAVE_OUT = "leave the column out: name the others in data.features"
ABOUT_DATES = f"make numbers of dates, days since a day that matters, say, or {LEAVE_OUT}"

Numbers: TypeAlias = NDArray[np.float64]
Texts: TypeAlias = list[str | None]


@dataclass(frozen=True)
class Origin:
    """Where rows are from, for errors; files count theirs from 1, as people do."""

    name: str = "the rows"
    first: int = 0
    n_before: int = 0  # rows, if these are a piece

    def error(self, column: str, row: int, came: Any, remedy: str) -> ValueError:
        came = came.item() if isinstance(came, np.generic) else came
        held = "no value" if came is None or is_nothing(came) else f"{came!r:.60}"
        where = f"row {row + self.n_before + self.first} of {self.name}, counted from {self.first}"
        return ValueError(f"column {column} holds {held} in {where}; {remedy}")


@dataclass(frozen=True)
class Column:
    name: str
    values: tuple[str, ...] = ()  # what its text may be; none: it holds numbers
    may_lack: bool = False  # some rows have no value

    def encode(self, cells: Any, origin: Origin = Origin()) -> Numbers:  # noqa: B008  # frozen
        """[row] numbers, of text the place in values; NaN: no value."""
        numbers = self._place(cells, origin) if self.values else self._count(cells, origin)
        lacks = np.isnan(numbers)
        if lacks.any() and not self.may_lack:
            raise origin.error(self.name, int(lacks.argmax()), None, "all rows to learn from had one: fill it in")
        return numbers

    def _place(self, cells: Any, origin: Origin) -> Numbers:
        found = read_cells(self.name, cells, origin)
        texts = found if isinstance(found, list) else write_numbers(found)
        alike = find_alike({text for text in texts if text is not None}, self.values)
        strangers = {text for text, values in alike.items() if len(values) != 1}
        if strangers:
            row = next(row for row, text in enumerate(texts) if text in strangers)
            raise origin.error(self.name, row, texts[row], f"known are {', '.join(self.values)}")
        places: dict[str | None, float] = {text: self.values.index(value) for text, (value,) in alike.items()}
        places[None] = np.nan
        return np.array([places[text] for text in texts], np.float64)

    def _count(self, cells: Any, origin: Origin) -> Numbers:
        found = read_cells(self.name, cells, origin)
        if not isinstance(found, list):
            return found
        numbers: dict[str | None, float] = {text: read_number(text) for text in found if text is not None}
        strangers = {text for text, number in numbers.items() if not np.isfinite(number)}
        if strangers:
            row = next(row for row, text in enumerate(found) if text in strangers)
            raise origin.error(self.name, row, found[row], "a number was expected")
        numbers[None] = np.nan
        return np.array([numbers[text] for text in found], np.float64)


def fit_column(name: str, parts: Sequence[tuple[Any, Origin]]) -> tuple[Column, list[Numbers], str]:
    """A column as found in several tables, its numbers in each, and what is odd about it, if anything."""
    found = [(read_cells(name, cells, origin), origin) for cells, origin in parts]
    numbers = [cells for cells, _ in found if not isinstance(cells, list)]
    if len(numbers) == len(found):
        if np.isnan(numbers[0]).all():
            raise ValueError(f"column {name} has no value in any row; {LEAVE_OUT}")
        return Column(name, (), any(bool(np.isnan(each).any()) for each in numbers)), numbers, ""
    for cells, origin in found:
        if not isinstance(cells, list):
            refuse_merged(name, cells, origin)
    texts = [(cells if isinstance(cells, list) else write_numbers(cells), origin) for cells, origin in found]
    written = {text for cells, _ in found if isinstance(cells, list) for text in cells if text is not None}
    counted = {text for part, _ in texts for text in part if text is not None} - written
    values = sorted(written | {text for text, alike in find_alike(counted, written).items() if not alike})
    odd = check_values(name, values, texts)
    column = Column(name, tuple(values), any(None in part for part, _ in texts))
    return column, [column.encode(part, origin) for part, origin in texts], odd


def check_values(name: str, values: Sequence[str], parts: Sequence[tuple[Texts, Origin]]) -> str:
    """Refuses dates, and text of which every row has another; tells of text among numbers."""
    strays = {value for value in values if not np.isfinite(read_number(value))}
    wanted = strays or {*values}
    row, text, origin = next(
        (row, text, origin) for part, origin in parts for row, text in enumerate(part) if text in wanted
    )
    if all(DATE.match(value) for value in values[:MOST_VALUES]):
        raise origin.error(name, row, text, ABOUT_DATES)
    if all(COMMAS.fullmatch(value) for value in wanted):
        raise origin.error(name, row, text, "write numbers with a point and without other marks, 0.5 or 1000")
    are_mostly_numbers = 0 < len(strays) < len(values) / 2
    if len(values) > MOST_VALUES:
        if are_mostly_numbers:
            raise origin.error(name, row, text, "all the others are numbers: write one there, or nothing")
        raise ValueError(
            f"column {name} holds {len(values)} different texts; {MOST_VALUES} are the most, for each becomes a bit. "
            f"Group them, or {LEAVE_OUT}"
        )
    if are_mostly_numbers:
        return f"column {name} is read as text, for it holds {text!r} in row {row + origin.first} of {origin.name}"
    return ""


def read_cells(name: str, cells: Any, origin: Origin) -> Numbers | Texts:
    """Of a column of any frame, an array or a list; NaN or None where a cell is empty."""
    if not isinstance(cells, np.ndarray) and not isinstance(cells, list):
        cells = np.asarray(cells)
    if isinstance(cells, list):
        return read_objects(name, cells, origin)
    if cells.ndim != 1:
        raise origin.error(name, 0, cells[0].tolist(), "one number or text was expected in each row")
    kind = cells.dtype.kind
    if kind in "uif":
        numbers: Numbers = cells.astype(np.float64)
        if np.isinf(numbers).any():
            row = int(np.isinf(numbers).argmax())
            raise origin.error(name, row, numbers[row], "a finite number was expected")
        return numbers
    if kind == "b":
        return [str(value) for value in cells.tolist()]
    if kind in "mM":
        row = int(np.isnat(cells).argmin())  # the first that is one
        raise origin.error(name, row, str(cells[row]), ABOUT_DATES)
    return read_objects(name, cells.tolist(), origin)


def read_objects(name: str, cells: Sequence[Any], origin: Origin) -> Numbers | Texts:
    try:
        meanings = {cell: None if is_nothing(cell) else cell for cell in {*cells}}
    except TypeError:  # lists and the like cannot be in a set
        row = next(row for row, cell in enumerate(cells) if not isinstance(cell, Hashable))
        raise origin.error(name, row, cells[row], "a number or a text was expected") from None
    present = [cell for cell in meanings.values() if cell is not None]
    if all(isinstance(cell, Real | Decimal) and not isinstance(cell, bool) for cell in present):
        numbers = np.array([np.nan if meanings[cell] is None else float(cell) for cell in cells], np.float64)
        return read_cells(name, numbers, origin)
    if all(isinstance(cell, str | bool) for cell in present):
        texts = {cell: None if is_nothing(cell) else spell(str(cell).strip()) for cell in meanings}
        return [texts[cell] for cell in cells]
    odd = next(row for row, cell in enumerate(cells) if meanings[cell] is not None and not isinstance(cell, str))
    is_date = isinstance(cells[odd], date | time) or type(cells[odd]).__name__ == "Period"
    remedy = ABOUT_DATES if is_date else "numbers or text were expected, alike in all rows"
    raise origin.error(name, odd, cells[odd], remedy)


def spell(text: str) -> str:
    return LOGICAL.get(text, text)


def is_nothing(cell: Any) -> bool:
    if isinstance(cell, str):
        return cell.strip() in MISSING
    if isinstance(cell, float | np.floating | Decimal):
        return bool(cell != cell)
    return cell is None or type(cell).__name__ in ("NAType", "NaTType")


def read_number(text: str) -> float:
    """NaN where it is none."""
    try:
        return float(text)
    except ValueError:
        return np.nan


def write_numbers(numbers: Numbers) -> Texts:
    """As a file would have them, where other rows hold text."""
    return [None if each != each else f"{each:.0f}" if each % 1 == 0 else f"{each:.15g}" for each in numbers.tolist()]


def find_alike(texts: Collection[str], known: Collection[str]) -> dict[str, list[str]]:
    """Of each text itself, if it is known, or else those known that are the same number: 03 and 3.0 are 3."""
    spellings: dict[Decimal, list[str]] = {}
    for value in known:
        if (number := read_exactly(value)) is not None:
            spellings.setdefault(number, []).append(value)
    numbers = {text: read_exactly(text) for text in texts}
    return {
        text: [text] if text in known else spellings.get(number, []) if number is not None else []
        for text, number in numbers.items()
    }


def read_exactly(text: str) -> Decimal | None:
    try:
        number = Decimal(text.replace(",", ".") if DECIMAL_COMMA.fullmatch(text) else text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def refuse_merged(name: str, numbers: Numbers, origin: Origin) -> None:
    """Of numbers that are names or stand beside text."""
    is_large = np.abs(numbers) >= EXACT
    if is_large.any():
        row = int(is_large.argmax())
        raise origin.error(name, row, numbers[row], "numbers so large run together as floats: give them as text")


def is_frame(rows: Any) -> bool:
    if hasattr(type(rows), "collect"):  # what a LazyFrame of polars would be asked after, it would work out each time
        raise ValueError(f"a {type(rows).__name__} came, not worked out yet; give what its collect() gives")
    return hasattr(rows, "columns")


def by_text(frame: Any, origin: Origin) -> Any:
    """With columns called by text, each otherwise; those of a frame of pandas may be called by numbers."""
    names = [str(name) for name in frame.columns]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{origin.name} has more than one column called {', '.join(twice)}; call each otherwise")
    if not len(frame):
        raise ValueError(f"{origin.name} has no rows")
    return frame if names == list(frame.columns) else frame.set_axis(names, axis=1)


def find_columns(frame: Any, origin: Origin = Origin("the frame")) -> tuple[Column, ...]:  # noqa: B008  # frozen
    """Of a frame that holds text or lacks values; none of one of plain numbers, or of anything else."""
    if not is_frame(frame):
        return ()
    frame = by_text(frame, origin)
    columns = tuple(fit_column(name, [(frame[name], origin)])[0] for name in frame.columns)
    return columns if any(column.values or column.may_lack for column in columns) else ()


def encode_rows(rows: Any, columns: Sequence[Column], origin: Origin = Origin()) -> Numbers:  # noqa: B008  # frozen
    """[row, column] of a frame, whose columns are taken by name, or of an array, where they come in their order.

    An array of floats is taken as encoded before: it cannot hold text.
    """
    if is_frame(rows):
        rows = by_text(rows, origin)
        if lacking := [column.name for column in columns if column.name not in list(rows.columns)]:
            names = ", ".join(column.name for column in columns)
            raise ValueError(f"the rows have no column {', '.join(lacking)}; {names} were expected")
        return np.stack([column.encode(rows[column.name], origin) for column in columns], axis=1)
    cells = rows if isinstance(rows, np.ndarray) else np.array(rows, dtype=object)
    if cells.ndim != 2 or cells.shape[1] != len(columns):
        raise ValueError(
            f"rows are of shape {cells.shape}, [row, {len(columns)}] was expected; give [row] for one alone"
        )
    if cells.dtype.kind != "f":
        return np.stack([column.encode(cells[:, k], origin) for k, column in enumerate(columns)], axis=1)
    for k, column in enumerate(columns):
        check_encoded(column, cells[:, k], origin)
    return cells.astype(np.float64, copy=False)


def check_encoded(column: Column, numbers: NDArray[Any], origin: Origin) -> None:
    is_wrong = np.isinf(numbers) | (np.isnan(numbers) & (not column.may_lack))
    if column.values:
        is_wrong |= ~np.isnan(numbers) & ~np.isin(numbers, np.arange(len(column.values)))
    if is_wrong.any():
        row = int(is_wrong.argmax())
        known = f", or as text: {', '.join(column.values)}" if column.values else ""
        raise origin.error(column.name, row, float(numbers[row]), f"a number as in training was expected{known}")
