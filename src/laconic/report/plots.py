"""What each figure of the page shows: views for the browser to draw, and the same numbers as tables."""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from laconic.records import ENVELOPE, Holding, Partition, Round
from laconic.report.run import NODES_OWN, Run, add_counts, rise
from laconic.report.tables import NONE, Group, format_bytes, format_percent

LOG_FROM = 20.0  # largest over smallest value from which an axis is logarithmic
GREY = -1  # colour of what is no method or field
WAYS = {"up": "up", "down": "down", "peer": "peer to peer"}

ROUNDS = {"label": "round", "unit": "count"}

View = dict[str, Any]  # for the browser; see charts.js for what each kind draws


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
    kind: Literal["lines", "strip", "scatter", "bars", "heat"]
    views: Sequence[View]
    tables: Sequence[Cells]
    is_small: bool = field(default=False, kw_only=True)


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
    text = "Further left is cheaper, further up is better."
    if any(len(group.runs) > 1 for group in groups):
        text += " Lines are means over seeds; bands reach from the lowest to the highest seed."
    return Figure("accuracy", "Accuracy against bytes", text, "lines", views, [Cells(headings, rows)])


def follow(group: Group) -> list[Point]:
    """Over the rounds every seed evaluated."""
    common = sorted(set.intersection(*({r.round for r in run.evaluated} for run in group.runs)))
    so_far = {name: [add_up(run, count) for run in group.runs] for name, count in DIRECTIONS.items()}
    points = []
    for number in common:
        shares = [r.accuracy_mean or 0.0 for run in group.runs for r in run.evaluated if r.round == number]
        n_bytes = (statistics.fmean(by_round[number] for by_round in sums) for sums in so_far.values())
        points.append(Point(number, statistics.fmean(shares), min(shares), max(shares), *n_bytes))
    return points


def add_up(run: Run, count: Callable[[Round], int]) -> dict[int, int]:
    total = 0
    return {r.round: (total := total + count(r)) for r in run.rounds}


def plot_clients(groups: Sequence[Group]) -> Figure:
    runs = [(k, group.name_run(run), run) for k, group in enumerate(groups) for run in group.runs]
    alone = {id(run): find_alone(run, [other for _, _, other in runs]) for _, _, run in runs}
    accuracy = [
        {
            "label": label,
            "colour": k,
            "dots": [[s.client, s.accuracy, s.n_correct, s.n_test] for s in run.scores if s.accuracy is not None],
        }
        for k, label, run in runs
    ]
    views: list[View] = [{"label": "accuracy", "x": {"label": "accuracy", "unit": "percent"}, "rows": accuracy}]
    gains = [
        {
            "label": label,
            "colour": k,
            "dots": [[s.client, end - start, s.n_correct, s.n_test] for s, start, end in rise(run, other)],
        }
        for k, label, run in runs
        if (other := alone[id(run)]) is not None
    ]
    if gains:
        x = {"label": "gain over learning alone, points", "unit": "gain"}
        views.append({"label": "gain over local-only", "x": x, "rows": gains})
    partitions = {run.shares: run.partition for _, _, run in runs}
    tables = []
    for shares, partition in partitions.items():
        same = [(group.label, run) for group in groups for run in group.runs if run.shares == shares]
        tables.append(tabulate_clients(partition, [(label, run, alone[id(run)]) for label, run in same]))
    text = "A dot is a client, at the last evaluated round; the bar marks the median, the tick the 10th percentile."
    return Figure("clients", "Accuracy of each client", text, "strip", views, tables)


def find_alone(run: Run, runs: Iterable[Run]) -> Run | None:
    """The run whose clients have the same data and learn alone."""
    same = (other for other in runs if other.is_silent and other.clients_have == run.clients_have)
    return None if run.is_silent else next(same, None)


def tabulate_clients(partition: Partition, runs: Sequence[tuple[str, Run, Run | None]]) -> Cells:
    headings = ["Client", "Train", "Test"]
    columns: list[dict[int, Amount]] = []
    for label, run, alone in runs:
        headings.append(f"{label}\naccuracy %")
        columns.append({s.client: share_cell(s.accuracy) for s in run.scores if s.accuracy is not None})
        if alone is not None:
            headings.append(f"{label}\ngain")
            gains = {score.client: end - start for score, start, end in rise(run, alone)}
            columns.append({client: Amount(f"{100 * gain:+.1f}", gain) for client, gain in gains.items()})
        for position, heading in enumerate(("sent", "received")) if run.counts.sent_bytes else ():
            headings.append(f"{label}\n{heading}")
            columns.append({c: Amount(format_bytes(b[position]), b[position]) for c, b in run.sums.by_client.items()})
    empty = Amount(NONE, -1)
    n_tested = {score.client: score.n_test for _, run, _ in runs for score in run.scores}
    rows: list[list[str | Amount]] = [
        [
            str(holding.client),
            count_cell(None if holding.train is None else sum(holding.train)),
            count_cell(n_tested.get(holding.client) if holding.test is None else sum(holding.test)),
            *(column.get(holding.client, empty) for column in columns),
        ]
        for holding in partition.clients
    ]
    seeds = ", ".join(str(seed) for seed in sorted({run.seed for _, run, _ in runs}))
    whose = NODES_OWN if partition.is_nodes_own else f"partition {partition.sha256[:8]}"
    return Cells(headings, rows, f"Clients with seed {seeds}; {whose}", is_sortable=True)


def count_cell(count: int | None) -> Amount:
    """None: only the client knows."""
    return Amount(NONE, -1) if count is None else Amount(str(count), count)


def share_cell(share: float) -> Amount:
    return Amount(format_percent(share), share)


def plot_labels(groups: Sequence[Group]) -> Figure | None:
    """Of each distinct partition that is known: the runs of one seed share theirs."""
    runs = [run for group in groups for run in group.runs]
    partitions = {run.shares: (run.seed, run.partition) for run in runs if not run.partition.is_nodes_own}
    views, tables = [], []
    for seed, partition in partitions.values():
        moments: list[tuple[str, list[Holding]]] = [("", partition.clients)]
        if partition.drift is not None:
            moments.append((f" after round {partition.drift.round}", partition.drift.clients))
        for moment, holdings in moments:
            for part in ("train", "test"):
                label = f"{part}{moment}" if len(partitions) == 1 else f"{part}{moment} · seed {seed}"
                counts = {holding.client: getattr(holding, part) or [] for holding in holdings}
                head = {"across": list(counts), "down": partition.classes}
                views.append({"label": label, "values": list(counts.values()), "are_counts": True, **head})
                rows = [[str(client), *map(str, row)] for client, row in counts.items()]
                tables.append(Cells(["Client", *partition.classes], rows, f"Examples: {label}"))
    if not views:
        return None
    text = "How many examples of each class a client holds; a stronger colour is more."
    return Figure("labels", "Labels of each client", text, "heat", views, tables)


def plot_fields(groups: Sequence[Group]) -> Figure:
    views, tables = [], []
    for group in groups:
        for run in group.runs:
            names = dict.fromkeys(name for _, _, name in run.sums.by_field if name != ENVELOPE)
            colours = {name: k for k, name in enumerate(names)} | {ENVELOPE: GREY}
            steps = dict.fromkeys((step, direction) for step, direction, _ in run.sums.by_field)
            bars = []
            for step, direction in steps:
                parts = {name: run.sums.by_field.get((step, direction, name)) for name in colours}
                segments = [
                    {"label": name, "colour": colours[name], "value": counts.sent_bytes}
                    for name, counts in parts.items()
                    if counts is not None
                ]
                bars.append({"label": f"{step}, {WAYS[direction]}", "segments": segments})
            label = group.name_run(run)
            views.append({"label": label, "rows": bars})
            rows = [
                (step, WAYS[direction], name, *(format_bytes(n_bytes) for n_bytes in counts))
                for (step, direction, name), counts in run.sums.by_field.items()
            ]
            headings = ("Step", "Direction", "Field", "Sent", "Packed", "Entropy estimate", "Paper's count")
            tables.append(Cells(headings, rows, label))
    text = "What was sent in the whole run, by step, direction and field. The envelope is head and checksum; "
    text += "notes are numbers for the record, where a real node lets them go."
    return Figure("fields", "Bytes by message field", text, "bars", views, tables)


def plot_stages(groups: Sequence[Group]) -> Figure:
    views, rows = [], []
    for group in groups:
        n_runs = len(group.runs)
        sent, packed, entropy, paper = (n / n_runs for n in add_counts(run.counts for run in group.runs))
        envelope = sum(run.envelope_bytes for run in group.runs) / n_runs
        stages = (("the paper’s count", paper, 0), ("packed", packed, 0), ("sent", sent, envelope))
        bars = [
            {
                "label": name,
                "segments": [
                    {"label": "fields", "colour": 0, "value": n_bytes - rest},
                    {"label": ENVELOPE, "colour": GREY, "value": rest},
                ],
            }
            for name, n_bytes, rest in (*stages, ("entropy estimate", entropy, 0))
        ]
        views.append({"label": group.label, "rows": bars, "has_steps": True})
        rows.append((group.label, *(format_bytes(n_bytes) for n_bytes in (paper, packed, sent, envelope, entropy))))
    text = (
        "From the bytes by the paper’s own rule, over every number in the fewest bits that hold its array, to what "
        "travelled, envelopes included. The estimate takes every bit and number as independent, so a coder that "
        "knows more can come below it."
    )
    headings = ("Method", "Paper’s count", "Packed", "Sent", "of it envelopes", "Entropy estimate")
    return Figure("stages", "From the paper’s count to the wire", text, "bars", views, [Cells(headings, rows)])


def plot_bytes(groups: Sequence[Group]) -> Figure:
    views, tables = [], []
    for name, count in DIRECTIONS.items():
        lines = [
            average(group, {id(run): {r.round: count(r) for r in run.rounds} for run in group.runs}) for group in groups
        ]
        y = {"label": f"bytes in the round, all clients, {name}", "unit": "bytes", "log": is_wide(lines), "zero": True}
        views.append(line_view(name, groups, lines, y))
        tables.append(tabulate(groups, lines, format_bytes, name))
    text = "What all clients together sent and received in each round; round 0 is the set-up."
    return Figure("bytes", "Bytes of each round", text, "lines", views, tables)


def plot_seconds(groups: Sequence[Group]) -> Figure:
    views, tables = [], []
    for key, name in (("seconds", "whole round"), ("evaluate_seconds", "evaluation alone")):
        lines = [
            average(group, {id(run): {r: getattr(t, key) for r, t in run.times.items()} for run in group.runs})
            for group in groups
        ]
        y = {"label": "seconds", "unit": "seconds", "log": is_wide(lines), "zero": True}
        views.append(line_view(name, groups, lines, y))
        tables.append(tabulate(groups, lines, lambda seconds: f"{seconds:.3g}", f"Seconds, {name}"))
    text = "Wall time on the machine that ran it; runs made side by side on one machine slow each other."
    return Figure("seconds", "Time of each round", text, "lines", views, tables)


def plot_notes(groups: Sequence[Group], left_out: Set[str]) -> list[Figure]:
    """One small figure for each other number the methods noted, by the server or as mean over clients."""
    noted: dict[str, dict[int, dict[int, float]]] = {}  # name -> run -> round -> value
    for run in (run for group in groups for run in group.runs):
        for r in run.rounds:
            for name, value in r.notes.items():
                if value is not None and math.isfinite(value) and name not in left_out:
                    noted.setdefault(name, {}).setdefault(id(run), {})[r.round] = value
        for name, by_round in run.clients.mean_notes.items():
            noted.setdefault(f"{name}, mean of clients", {})[id(run)] = by_round
    figures = []
    for k, (name, by_run) in enumerate(noted.items()):
        lines = [average(group, by_run) for group in groups]
        view = line_view(name, groups, lines, {"label": "", "unit": "number"})
        table = tabulate(groups, lines, lambda value: f"{value:.4g}", name)
        figures.append(Figure(f"note-{k}", name, "", "lines", [view], [table], is_small=True))
    return figures


def average(group: Group, by_run: dict[int, dict[int, Any]]) -> dict[int, float]:
    """Round -> mean over the seeds, where all have it; by_run has them under id(run)."""
    columns = [by_run.get(id(run), {}) for run in group.runs]
    return {r: statistics.fmean(c[r] for c in columns) for r in sorted(set.intersection(*map(set, columns)))}


def is_wide(lines: Sequence[dict[int, float]]) -> bool:
    some = [value for line in lines for value in line.values() if value > 0]
    return bool(some) and max(some) > LOG_FROM * min(some)


def line_view(label: str, groups: Sequence[Group], lines: Sequence[dict[int, float]], y: dict[str, Any]) -> View:
    series = [
        {"label": group.label, "colour": k, "points": [[r, r, value, value, value] for r, value in line.items()]}
        for k, (group, line) in enumerate(zip(groups, lines, strict=True))
    ]
    return {
        "label": label,
        "x": ROUNDS,
        "y": y,
        "series": [s for s in series if s["points"]],
    }


def tabulate(
    groups: Sequence[Group], lines: Sequence[dict[int, float]], write: Callable[[float], str], caption: str
) -> Cells:
    rounds = sorted({r for line in lines for r in line})
    rows = [[str(r), *(write(line[r]) if r in line else NONE for line in lines)] for r in rounds]
    return Cells(["Round", *(group.label for group in groups)], rows, caption)
