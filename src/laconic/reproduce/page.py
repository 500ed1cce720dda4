"""The scoreboard as a page: its first line and its tables are made from the rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from laconic.reproduce.scoreboard import NO_DATA, count_verdicts
from laconic.reproduce.verdicts import VERDICTS

Rows = Sequence[Mapping[str, Any]]
TABLE = re.compile(r"(<!-- table: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
OPENING = re.compile(r"^Of [\d,]+ published figures .*$", re.MULTILINE)
NOTHING = "–"


def render_table(header: str, rows: Iterable[Sequence[str]]) -> str:
    """As Markdown."""
    cells = [header.split("|"), *rows]
    head, *body = ["| " + " | ".join(cell.strip() for cell in row) + " |\n" for row in cells]
    return head + "|---" * len(cells[0]) + "|\n" + "".join(body)


def tell_verdict(rows: Rows) -> str:
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in VERDICTS}
    reached, near, missed, refuted, impossible, not_run = (f"{counts[verdict]}" for verdict in VERDICTS)
    lacking = sum(row["verdict"] == "not run" and NO_DATA in row["why"] for row in rows)
    return (
        f"Of {len(rows):,} published figures {reached} are reached, {near} near, {missed} missed, {refuted} refuted, "
        f"{impossible} impossible; {not_run} not run ({lacking}: no data)."
    )


def sum_up(rows: Rows) -> Iterator[list[str]]:
    for (paper, table), counts in count_verdicts(rows).items():
        yield [paper, table, *(str(counts.get(verdict, NOTHING)) for verdict in VERDICTS)]


def list_measured(rows: Rows) -> Iterator[list[str]]:
    for row in rows:
        if row["verdict"] in ("not run", "impossible"):
            continue
        told = [NOTHING if row[key] is None else f"{row[key]:,}" for key in ("bytes_published", "bytes_sent")]
        ours = NOTHING if row["ours"] is None else f"{row['ours']:.4g}"
        name, seeds = f"{row['paper']}:{row['table']}:{row['row']}", str(row["seeds"] or NOTHING)
        yield [name, f"{row['published']:g}", ours, seeds, row["scale"], " · ".join(told), row["verdict"], row["why"]]


TABLES = {
    "scoreboard": ("paper | table | " + " | ".join(VERDICTS), sum_up),
    "scoreboard.measured": (
        "figure | published | ours | seeds | scale | bytes published · sent | verdict | why",
        list_measured,
    ),
}


def refresh(page: Path, rows: Rows) -> None:
    """Nothing where there is no page."""
    if not page.exists():
        return
    text = TABLE.sub(
        lambda found: found[1] + render_table(TABLES[found[2]][0], TABLES[found[2]][1](rows)) + found[3],
        page.read_text("utf-8"),
    )
    page.write_text(OPENING.sub(tell_verdict(rows), text, count=1), "utf-8")
