"""How accuracy, bytes and time went on, round by round."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from laconic.records import Round
from laconic.report.figure import ROUNDS, Cells, Figure, Line, follow_seeds, is_wide, line_view, spread, tabulate
from laconic.report.run import Run
from laconic.report.tables import Group, format_bytes, format_percent

SET_UP = 0  # its round


class Point(NamedTuple):
    """Of a group at the end of a round: mean over the seeds, lowest and highest seed, bytes so far."""

    round: int
    accuracy: float
    low: float
    high: float
    total_bytes: float
    up_bytes: float
    down_bytes: float


# What clients send, what they get, and everything once; what goes between peers is sent by one and got by another.
DIRECTIONS: dict[str, Callable[[Round], int]] = {
    "both": lambda r: r.total_bytes,
    "up": lambda r: r.upload_bytes + r.peer_bytes,
    "down": lambda r: r.download_bytes + r.peer_bytes,
}


def plot_accuracy(groups: Sequence[Group]) -> Figure:
    curves = [follow(group) for group in groups]
    y = {"label": "accuracy, mean of clients", "unit": "percent"}
    views = []
    for name, column in (("both", 4), ("up", 5), ("down", 6), ("rounds", 0)):
        bytes_axis = {"label": f"bytes so far, all clients, {name}", "unit": "bytes", "log": True}
        series = [
            {
                "label": group.label,
                "colour": k,
                "points": [[p.round, p[column], p.accuracy, p.low, p.high] for p in curve],
                "has_band": len(group.runs) > 1,
            }
            for k, (group, curve) in enumerate(zip(groups, curves, strict=True))
        ]
        views.append({"label": name, "x": ROUNDS if name == "rounds" else bytes_axis, "y": y, "series": series})
    rows = [
        (
            group.label,
            str(p.round),
            *(format_percent(share, 2) for share in p[1:4]),
            *(format_bytes(n_bytes) for n_bytes in p[4:]),
        )
        for group, curve in zip(groups, curves, strict=True)
        for p in curve
    ]
    headings = ("Method", "Round", "Accuracy %", "Lowest seed %", "Highest seed %", "Both", "Up", "Down")
    text = "Further left is cheaper, further up is better." + explain_bands(groups)
    return Figure("accuracy", "Accuracy against bytes", text, "lines", views, [Cells(headings, rows)])


def explain_bands(groups: Sequence[Group]) -> str:
    if all(len(group.runs) == 1 for group in groups):
        return ""
    return " Lines are means over seeds; bands reach from the lowest to the highest seed."


def follow(group: Group) -> list[Point]:
    """Over the rounds every seed evaluated."""
    common = sorted(set.intersection(*({r.round for r in run.evaluated} for run in group.runs)))
    so_far = {name: [add_up(run, count) for run in group.runs] for name, count in DIRECTIONS.items()}
    points = []
    for number in common:
        shares = [r.accuracy_mean or 0.0 for run in group.runs for r in run.evaluated if r.round == number]
        n_bytes = (spread([by_round[number] for by_round in sums]).mean for sums in so_far.values())
        points.append(Point(number, *spread(shares), *n_bytes))
    return points


def add_up(run: Run, count: Callable[[Round], int]) -> dict[int, int]:
    total = 0
    return {r.round: (total := total + count(r)) for r in run.rounds}


def plot_bytes(groups: Sequence[Group]) -> Figure | None:
    """Of those that sent any."""
    if not any(group.sends for group in groups):
        return None
    views, tables = [], []
    set_up: list[str] = []
    for name, count in DIRECTIONS.items():
        lines = [
            follow_seeds(group, {id(run): {r.round: count(r) for r in run.rounds} for run in group.runs})
            if group.sends
            else {}
            for group in groups
        ]
        later = leave_out_set_up(lines)
        y = {"label": f"bytes in the round, all clients, {name}", "unit": "bytes", "log": is_wide(later), "zero": True}
        views.append(line_view(name, groups, later, y))
        tables.append(tabulate(groups, lines, format_bytes, name))
        first = [line[SET_UP].mean if SET_UP in line else 0 for line in lines]
        set_up = set_up or [f"{g.label} {format_bytes(n)}" for g, n in zip(groups, first, strict=True) if n]
    text = "What all clients together sent and received in each round." + explain_bands(groups)
    if set_up:
        text += f" The set-up before the first is in the table alone: {', '.join(set_up)}."
    return Figure("bytes", "Bytes of each round", text, "lines", views, tables)


def leave_out_set_up(lines: Sequence[Line]) -> list[Line]:
    """Beside it rounds would look alike: it may be many times what they are."""
    return [{r: value for r, value in line.items() if r != SET_UP or len(line) == 1} for line in lines]


def plot_seconds(groups: Sequence[Group]) -> Figure:
    views, tables = [], []
    for key, name in (("seconds", "whole round"), ("evaluate_seconds", "evaluation alone")):
        lines = [
            follow_seeds(group, {id(run): {r: getattr(t, key) for r, t in run.times.items()} for run in group.runs})
            for group in groups
        ]
        later = leave_out_set_up(lines)
        y = {"label": "seconds", "unit": "seconds", "log": is_wide(later), "zero": True}
        views.append(line_view(name, groups, later, y))
        tables.append(tabulate(groups, lines, lambda seconds: f"{seconds:.3g}", f"Seconds, {name}"))
    text = "Wall time on the machine that ran it; runs made side by side on one machine slow each other."
    text += " The set-up, round 0, is in the table alone." + explain_bands(groups)
    return Figure("seconds", "Time of each round", text, "lines", views, tables)
