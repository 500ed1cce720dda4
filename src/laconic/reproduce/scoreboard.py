"""A row for each published figure: what ours is, of how many seeds, in how many bytes, and what that says."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from laconic.files import write_atomically
from laconic.reproduce.published import Figure, read_figures
from laconic.reproduce.recipe import SCALES, Computed, Impossible, Scale, Way
from laconic.reproduce.verdicts import REFUTED, Verdict, compare
from laconic.reproduce.ways import find_way, name_command

# of the source tree that this package lies in, else under the folder at work
IN_SOURCE = Path(__file__).parents[3] / "docs" / "results" / "scoreboard.json"
ELSEWHERE = Path("runs") / "reproduce" / "scoreboard.json"
LACKED = {"svhn": "SVHN", "emnist_byclass": "EMNIST", "cifar100": "CIFAR-100", "tiny_imagenet": "Tiny ImageNet"}
NO_DATA = "could not be had where this board was filled; --download fetches it"


@dataclass(frozen=True)
class Measured:
    """Of one figure, as runs told it."""

    values: tuple[float, ...]  # one of each seed
    seeds: tuple[int, ...]
    scale: Scale
    rounds: int
    bytes_sent: float | None  # all clients, both ways, mean of a round
    commit: str
    source: str = ""  # file of results that had it before there were scoreboards
    remark: str = ""  # what is otherwise than in the paper

    @property
    def rank(self) -> tuple[int, int, int]:
        """By which a better measurement takes the place of a lesser one."""
        return SCALES.index(self.scale), len(self.seeds), self.rounds


@dataclass(frozen=True, kw_only=True)
class Row:
    """As `laconic reproduce --list --json` gives it."""

    paper: str
    table: str
    row: str
    published: float
    ours: float | None
    seeds: int
    scale: str
    bytes_published: int | None
    bytes_sent: int | None
    command: str
    verdict: Verdict
    why: str


def find_file() -> Path:
    return IN_SOURCE if IN_SOURCE.parent.is_dir() else ELSEWHERE


def read_measured(file: Path) -> dict[str, Measured]:
    """By name of the figure."""
    if not file.exists():
        return {}
    try:
        found = json.loads(file.read_text("utf-8"))["measured"]
        return {name: Measured(**{**entry, "values": tuple(entry["values"]), "seeds": tuple(entry["seeds"])})
                for name, entry in found.items()}  # fmt: skip
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise ValueError(f"{file} is no scoreboard: {error}; restore it from a copy, or remove it") from error


def write(file: Path, measured: Mapping[str, Measured]) -> None:
    """All rows, for those who read them elsewhere, and what they are made from; a line each, so that changes show."""
    rows = [json.dumps(asdict(row), ensure_ascii=False) for row in list_rows(read_figures(), measured)]
    entries = [f"{json.dumps(name)}: {json.dumps(asdict(entry))}" for name, entry in sorted(measured.items())]
    text = '{"rows": [\n' + ",\n".join(rows) + '\n],\n"measured": {\n' + ",\n".join(entries) + "\n}}\n"
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, text.encode())


def enter(measured: dict[str, Measured], figure: Figure, found: Measured) -> None:
    """Unless what is there is of a larger scale, or of more seeds on the same."""
    before = measured.get(figure.name)
    if before is None or before.rank <= found.rank:
        measured[figure.name] = found


def list_rows(figures: Iterable[Figure], measured: Mapping[str, Measured]) -> list[Row]:
    return [make_row(figure, find_way(figure), measured.get(figure.name)) for figure in figures]


def make_row(figure: Figure, way: Way, found: Measured | None) -> Row:
    plain = Row(
        paper=figure.paper,
        table=figure.table,
        row=figure.row,
        published=figure.published,
        ours=None,
        seeds=0,
        scale="",
        bytes_published=figure.bytes,
        bytes_sent=None,
        command="" if isinstance(way, Impossible) else name_command(figure),
        verdict="not run",
        why=figure.note,
    )
    row = fill(plain, figure, way, found)
    return replace(row, verdict="refuted", why=REFUTED[figure.name]) if figure.name in REFUTED else row


def fill(row: Row, figure: Figure, way: Way, found: Measured | None) -> Row:
    if isinstance(way, Impossible):
        return replace(row, verdict="impossible", why=way.why)
    if isinstance(way, Computed):
        verdict, gap = compare(figure, way.ours)
        return replace(row, ours=round(way.ours, 4), scale="paper", verdict=verdict, why=join(gap, way.how))
    if found is None:
        lacked = f"{LACKED[way.data]} {NO_DATA}" if way.data in LACKED else ""
        hours = f"about {way.core_hours:.3g} core hours a seed on the paper's scale"
        return replace(row, why=join(lacked, hours, figure.note))
    ours = fmean(found.values)
    verdict, gap = compare(figure, ours)
    if found.scale == "tiny":
        verdict, gap = "not run", "tiny runs show that the command works"
    cut = f" of {way.rounds}" if found.rounds < way.rounds else ""
    done = [gap, f"{found.rounds}{cut} rounds", f"commit {found.commit}", found.remark, found.source, figure.note]
    return replace(
        row,
        ours=round(ours, 4),
        seeds=len(found.seeds),
        scale=found.scale,
        command=name_command(figure, found.scale, len(found.seeds)),  # what was done, not what might be
        bytes_sent=None if found.bytes_sent is None else round(found.bytes_sent),
        verdict=verdict,
        why=join(*done),
    )


def join(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def count_verdicts(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], dict[str, int]]:
    """By paper and table."""
    counts: dict[tuple[str, str], dict[str, int]] = {}
    for row in rows:
        table = counts.setdefault((row["paper"], row["table"]), {})
        table[row["verdict"]] = table.get(row["verdict"], 0) + 1
    return counts


KEYS = tuple(field.name for field in fields(Row))
