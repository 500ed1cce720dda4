"""Runs as a notebook shows them: a table, and accuracy against bytes as a small picture without scripts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from laconic.report import Run, compare_table, format_bytes
from laconic.report.plots import Point, follow
from laconic.report.tables import PAGE_ONLY, Group, group_runs, table_cells

WIDTH, HEIGHT, LEFT, BOTTOM = 520, 220, 46, 34
COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#b07aa1", "#9c755f", "#edc948")
MOST_ROWS = 10  # of a table of records


def show_run(run: Run) -> str:
    return show_comparison([run])


def show_comparison(runs: Sequence[Run]) -> str:
    headings, rows = table_cells(compare_table(runs), PAGE_ONLY - {"over the first"})
    return show_cells(headings, rows) + draw(group_runs(runs))


def show_table(columns: Mapping[str, Any]) -> str:
    """The first and last rows."""
    n_rows = len(next(iter(columns.values()), ()))
    shown = range(n_rows) if n_rows <= MOST_ROWS else [*range(MOST_ROWS // 2), *range(n_rows - MOST_ROWS // 2, n_rows)]
    rows = [[str(row), *(write(column[row]) for column in columns.values())] for row in shown]
    if n_rows > MOST_ROWS:
        rows.insert(MOST_ROWS // 2, ["…"] * (1 + len(columns)))
    return show_cells(["", *columns], rows) + f"<p>{n_rows} rows</p>"


def write(value: Any) -> str:
    if isinstance(value, dict):  # what methods note; as long as may be
        return f"{len(value)} notes" if value else ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def show_cells(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def draw(groups: Sequence[Group]) -> str:
    """Accuracy against bytes so far; who sends nothing is a dashed line."""
    curves = [follow(group) for group in groups]
    points = [point for curve in curves for point in curve]
    if not points:
        return ""
    sent = [point.total_bytes for point in points if point.total_bytes]
    low, high = (math.log10(min(sent)), math.log10(max(sent))) if sent else (0.0, 1.0)
    floor, ceiling = min(p.accuracy for p in points), max(p.accuracy for p in points)

    def place(n_bytes: float, accuracy: float) -> tuple[float, float]:
        across = (math.log10(n_bytes) - low) / (high - low or 1)
        up = (accuracy - floor) / (ceiling - floor or 1)
        return LEFT + across * (WIDTH - LEFT - 12), HEIGHT - BOTTOM - up * (HEIGHT - BOTTOM - 12)

    lines = [draw_curve(curve, COLOURS[k % len(COLOURS)], place, 10**low, 10**high) for k, curve in enumerate(curves)]
    words = [
        f'<text x="4" y="16">{100 * ceiling:.1f} %</text><text x="4" y="{HEIGHT - BOTTOM}">{100 * floor:.1f} %</text>',
        f'<text x="{LEFT}" y="{HEIGHT - 16}">{format_bytes(10**low)}</text>',
        f'<text x="{WIDTH - 12}" y="{HEIGHT - 16}" text-anchor="end">{format_bytes(10**high)}</text>',
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 16}" text-anchor="middle">bytes so far, all clients</text>',
    ]
    key = " ".join(
        f'<tspan fill="{COLOURS[k % len(COLOURS)]}">■ {escape(group.label)}</tspan>' for k, group in enumerate(groups)
    )
    words.append(f'<text x="{LEFT}" y="{HEIGHT - 2}">{key}</text>')
    frame = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" font-size="11" '
    return frame + f'fill="currentColor" font-family="sans-serif">{"".join([*lines, *words])}</svg>'


def draw_curve(curve: Sequence[Point], colour: str, place: Any, least: float, most: float) -> str:
    sending = [place(point.total_bytes, point.accuracy) for point in curve if point.total_bytes]
    dash = ""
    if curve and not sending:
        sending, dash = [place(n_bytes, curve[-1].accuracy) for n_bytes in (least, most)], ' stroke-dasharray="5 4"'
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in sending)
    dots = [] if dash else [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in sending]
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>' + "".join(dots)
