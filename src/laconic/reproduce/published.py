"""The figures that papers print, as data: a line of published.csv for each, named paper, table and row."""

from __future__ import annotations

import csv
import difflib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("published.csv")
DATA = {"emnist": "emnist_byclass"}  # what papers call a set, where laconic's name is another


@dataclass(frozen=True)
class Figure:
    paper: str
    table: str  # as printed; text: a claim in the running text
    row: str  # method/data/alpha and what else tells it from others of the table
    published: float
    unit: str  # % are of test examples
    bytes: int | None  # printed beside it; note: whose
    note: str

    @property
    def name(self) -> str:
        return f"{self.paper}:{self.table}:{self.row}"

    @property
    def parts(self) -> list[str]:
        return self.row.split("/")


@cache
def read_figures() -> tuple[Figure, ...]:
    with FILE.open(encoding="utf-8", newline="") as file:
        return tuple(
            Figure(
                line["paper"],
                line["table"],
                line["row"],
                float(line["published"]),
                line["unit"],
                int(line["bytes"]) if line["bytes"] else None,
                line["note"],
            )
            for line in csv.DictReader(file)
        )


def select(wanted: str) -> list[Figure]:
    """Of PAPER, PAPER:TABLE or PAPER:TABLE:ROW; a row may be left unfinished, as in fedpurin:1:fedavg."""
    found = list(read_figures())
    for key, value in zip(("paper", "table", "row"), wanted.split(":", 2) if wanted else (), strict=False):
        there = list(dict.fromkeys(getattr(figure, key) for figure in found))
        exact = [figure for figure in found if getattr(figure, key) == value]
        begun = [figure for figure in found if key == "row" and figure.row.startswith(f"{value}/")]
        if not exact and not begun:
            close = difflib.get_close_matches(value, there, n=3) or there[:8]
            raise ValueError(f'there is no {key} "{value}"; there are {", ".join(close)}  (laconic reproduce --list)')
        found = exact or begun
    return found
