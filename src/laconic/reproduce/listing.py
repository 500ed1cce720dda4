"""Rows of the scoreboard on the terminal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from laconic.console import PIPED_COLUMNS, show_table
from laconic.reproduce.published import Figure
from laconic.reproduce.recipe import SCALES, Recipe
from laconic.reproduce.scoreboard import Row, list_rows, read_measured
from laconic.reproduce.ways import find_way


def show_rows(figures: Sequence[Figure], file: Path, *, as_json: bool) -> None:
    rows = list_rows(figures, read_measured(file))
    if as_json:
        typer.echo(json.dumps([asdict(row) for row in rows]))
        return
    # names are to be found and copied: piped, a row is a line
    show_table([tell(figure, row) for figure, row in zip(figures, rows, strict=True)], PIPED_COLUMNS)
    typer.echo(f"core hours of a seed: {', '.join(SCALES)}; a row is run by  laconic reproduce PAPER:TABLE:ROW")
    typer.echo(f"why, bytes and commands: --json; results are entered in {file}")


def tell(figure: Figure, row: Row) -> dict[str, Any]:
    way = find_way(figure)
    hours = [f"{way.hours_at(scale):.2g}" for scale in SCALES] if isinstance(way, Recipe) else []
    return {
        "row": figure.name,
        "published": f"{row.published:g} {figure.unit}",
        "ours": "" if row.ours is None else f"{row.ours:.4g}",
        "seeds": row.seeds or "",
        "scale": row.scale,
        "hours": " · ".join(hours),
        "verdict": row.verdict,
    }
