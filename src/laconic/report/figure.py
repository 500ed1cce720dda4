"""What a figure of the page is: views for the browser to draw, and the same numbers as tables; what many need."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from laconic.report.tables import NONE, Group, format_percent

LOG_FROM = 20.0  # largest over smallest value from which an axis is logarithmic
GREY = -1  # colour of what is no method or field
ROUNDS = {"label": "round", "unit": "count"}

View = dict[str, Any]  # for the browser; pages/charts.js says what each kind draws


class Amount(NamedTuple):
    """A cell that sorts by its value."""

    text: str
    value: float


@dataclass(frozen=True)
class Cells:
    headings: Sequence[str]
    rows: Sequence[Sequence[str | Amount]]
    caption: str = ""
    is_sortable: bool = False


@dataclass(frozen=True)
class Figure:
    name: str
    title: str
    text: str
    kind: Literal["lines", "strip", "scatter", "bars", "heat", "none"]  # none: tables alone
    views: Sequence[View]
    tables: Sequence[Cells]


class Spread(NamedTuple):
    """Over seeds."""

    mean: float
    low: float
    high: float


Line = dict[int, Spread]  # by round


def spread(values: Sequence[float]) -> Spread:
    return Spread(statistics.fmean(values), min(values), max(values))


def follow_seeds(group: Group, by_run: Mapping[int, Mapping[int, float]]) -> Line:
    """Where all seeds have it; by_run has values by round, under id(run)."""
    columns = [by_run.get(id(run), {}) for run in group.runs]
    return {r: spread([column[r] for column in columns]) for r in sorted(set.intersection(*map(set, columns)))}


def is_wide(lines: Sequence[Line]) -> bool:
    some = [value.mean for line in lines for value in line.values() if value.mean > 0]
    return bool(some) and max(some) > LOG_FROM * min(some)


def make_series(label: str, colour: int, line: Line, *, has_band: bool) -> View:
    points = [[r, r, *(shorten(value) for value in values)] for r, values in line.items()]
    return {"label": label, "colour": colour, "points": points, "has_band": has_band}


def line_view(label: str, groups: Sequence[Group], lines: Sequence[Line], y: dict[str, Any]) -> View:
    series = [
        make_series(group.label, k, line, has_band=len(group.runs) > 1)
        for k, (group, line) in enumerate(zip(groups, lines, strict=True))
        if line
    ]
    return {"label": label, "x": ROUNDS, "y": y, "series": series}


def tabulate(groups: Sequence[Group], lines: Sequence[Line], write: Callable[[float], str], caption: str) -> Cells:
    """Means over seeds."""
    rounds = sorted({r for line in lines for r in line})
    rows = [[str(r), *(write(line[r].mean) if r in line else NONE for line in lines)] for r in rounds]
    return Cells(["Round", *(group.label for group in groups)], rows, caption)


def count_cell(count: int | None) -> Amount:
    """None: only the client knows."""
    return Amount(NONE, -1) if count is None else Amount(str(count), count)


def share_cell(share: float) -> Amount:
    return Amount(format_percent(share), share)


def shorten(value: float) -> float:
    """Six digits: more cannot be seen, and take room in the page."""
    short = float(f"{value:.6g}")
    return int(short) if short.is_integer() else short


def thin_out(some: Sequence[Any], most: int) -> list[Any]:
    """Every second, third … so that no more than so many are left."""
    return list(some[:: -(-len(some) // most) or 1])
