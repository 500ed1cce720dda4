"""Figures that only some runs have: each is drawn where the records hold what it shows, and is None elsewhere."""

import statistics
from collections.abc import Sequence

from laconic.records import Pairs
from laconic.report.notes import N_PRIVATE, N_SHARED, N_SHARED_BY_PAPER, SIMILARITY, SPLIT, find_models
from laconic.report.plots import (
    GREY,
    ROUNDS,
    Cells,
    Figure,
    View,
    average,
    find_alone,
    is_wide,
    line_view,
    share_cell,
)
from laconic.report.run import Run, rise
from laconic.report.tables import NONE, Group, format_bytes, format_percent

MOST_DRAWN = 120  # clients of a matrix; of more, some are left out

Dot = tuple[int, float, float]  # client, across, up


def list_runs(groups: Sequence[Group]) -> list[tuple[int, str, Run]]:
    """Colour, label and run of each."""
    return [(k, group.name_run(run), run) for k, group in enumerate(groups) for run in group.runs]


# ---------------------------------------------------------------- two accuracies of each client
def plot_gain(groups: Sequence[Group]) -> Figure | None:
    """Over learning alone on the same examples."""
    runs, series, rows = list_runs(groups), [], []
    for colour, label, run in runs:
        alone = find_alone(run, [other for _, _, other in runs])
        dots = [(score.client, start, end) for score, start, end in rise(run, alone)] if alone else []
        if not dots:
            continue
        better, worse = compare(dots)
        said = f"{label}: of {len(dots)} clients {better} gain, {worse} lose"
        series.append({"label": said, "colour": colour, "dots": dots})
        gains = sorted(up - across for _, across, up in dots)
        points = (
            f"{100 * gain:+.1f}" for gain in (statistics.fmean(gains), statistics.median(gains), gains[0], gains[-1])
        )
        rows.append((label, str(better), str(worse), str(len(dots) - better - worse), *points))
    if not series:
        return None
    axes = [{"label": f"accuracy, {name}", "unit": "percent"} for name in ("learning alone", "with the method")]
    headings = ("Method", "Clients that gain", "lose", "stay", "Mean gain, points", "Median", "Lowest", "Highest")
    text = "A dot is a client; above the line it does better than alone, on the same examples."
    view = {"label": "", "x": axes[0], "y": axes[1], "series": series}
    return Figure("gain", "Gain over learning alone", text, "scatter", [view], [Cells(headings, rows)])


def plot_models(groups: Sequence[Group]) -> Figure | None:
    """What a client's models get right apart, for methods that note it of more than one."""
    views: dict[str, View] = {}
    tables = []
    for colour, label, run in list_runs(groups):
        noted = find_models(run)
        if len(noted) < 2:
            continue
        first, *others = noted
        for other in others:
            both = sorted(noted[first].keys() & noted[other].keys())
            dots = [(client, noted[first][client], noted[other][client]) for client in both]
            better, worse = compare(dots)
            said = f"{label}: of {len(dots)} clients {better} do better with {other}, {worse} with {first}"
            axes = {
                axis: {"label": f"accuracy, {name}", "unit": "percent"} for axis, name in (("x", first), ("y", other))
            }
            view = views.setdefault(f"{other} against {first}", {"series": [], **axes})
            view["series"].append({"label": said, "colour": colour, "dots": dots})
        clients = sorted(set.union(*map(set, noted.values())))
        rows = [
            [str(client), *(share_cell(by[client]) if client in by else NONE for by in noted.values())]
            for client in clients
        ]
        tables.append(Cells(["Client", *(f"{name} %" for name in noted)], rows, label))
    if not views:
        return None
    text = (
        "A dot is a client, by the last accuracy recorded of each of its models: on its test examples where a method "
        "predicts in two ways, else on the examples that it set aside to judge by. Above the line the model named at "
        "the side is the better one."
    )
    drawn = [{"label": label, **view} for label, view in views.items()]
    return Figure("models", "Two models of each client", text, "scatter", drawn, tables)


def compare(dots: Sequence[Dot]) -> tuple[int, int]:
    """How many lie above the line and below it."""
    above, below = (sum(sign * (up - across) > 1e-12 for _, across, up in dots) for sign in (1, -1))
    return above, below


# ---------------------------------------------------------------- what is shared
def plot_split(groups: Sequence[Group]) -> Figure | None:
    views: list[View] = []
    tables = []
    for group in groups:
        noted = {
            name: average(group, {id(run): run.noted(name) for run in group.runs}) for name in (*SPLIT, SIMILARITY)
        }
        if not (noted[N_SHARED] and noted[N_PRIVATE]):
            continue
        series = [
            {"label": SPLIT[name], "colour": k, "points": [[r, r, n, n, n] for r, n in noted[name].items()]}
            for k, name in enumerate(SPLIT)
            if noted[name]
        ]
        y = {"label": "clauses of each class", "unit": "number", "zero": True}
        views.append({"label": group.label, "x": ROUNDS, "y": y, "series": series})
        shown = [name for name in noted if noted[name]]
        rows = [
            [str(r), *(f"{noted[name][r]:.4g}" if r in noted[name] else NONE for name in shown)]
            for r in sorted(set.union(*(set(noted[name]) for name in shown)))
        ]
        tables.append(Cells(["Round", *(SPLIT.get(name, name) for name in shown)], rows, group.label))
    if not views:
        return None
    lines = [average(group, {id(run): run.noted(SIMILARITY) for run in group.runs}) for group in groups]
    if any(lines):
        views.append(line_view("similarity", groups, lines, {"label": "similarity of the clients", "unit": "number"}))
    text = "How much of a client’s model is the same for all, and how alike the clients were when that was decided."
    return Figure("split", "Shared and private", text, "lines", views, tables)


def plot_pairs(groups: Sequence[Group]) -> Figure | None:
    """The first and the last matrix that a run noted under a name."""
    views: list[View] = []
    tables = []
    for _, label, run in list_runs(groups):
        for name in dict.fromkeys(pairs.name for pairs in run.pairs):
            mine = [pairs for pairs in run.pairs if pairs.name == name and len(pairs.clients) > 1]
            for pairs in mine[:1] + mine[1:][-1:]:
                title = f"{label}: {name}, round {pairs.round}"
                order = line_up(pairs)
                ids = [pairs.clients[k] for k in order]
                values = [[None if i == j else pairs.values[i][j] for j in order] for i in order]
                views.append({"label": title, "across": ids, "down": [str(client) for client in ids], "values": values})
                cells = [[NONE if value is None else f"{value:.2f}" for value in row] for row in values]
                rows = [[str(client), *row] for client, row in zip(ids, cells, strict=True)]
                tables.append(Cells(["Client", *map(str, ids)], rows, title))
    if not views:
        return None
    text = "A cell is a pair of clients; a stronger colour is more. Clients stand beside those most like them."
    if any(len(pairs.clients) > MOST_DRAWN for _, _, run in list_runs(groups) for pairs in run.pairs):
        text += f" Of more than {MOST_DRAWN} clients some are left out here; pairs.jsonl in the run’s folder has all."
    return Figure("pairs", "How alike the clients are", text, "heat", views, tables)


def line_up(pairs: Pairs) -> list[int]:
    """Places in the matrix, each followed by the one most like it of those left; first the one most like all."""
    skip = -(-len(pairs.clients) // MOST_DRAWN)
    left = set(range(0, len(pairs.clients), skip))
    here = max(left, key=lambda i: sum(pairs.values[i]))
    order = []
    while left:
        left.remove(here)
        order.append(here)
        here = max(left, key=lambda j: (pairs.values[order[-1]][j], -j), default=0)
    return order


# ---------------------------------------------------------------- the budget
def plot_budget(groups: Sequence[Group]) -> Figure | None:
    """Of the seed that came nearest to it."""
    series: list[View] = []
    rows = []
    for colour, group in enumerate(groups):
        spent: dict[int, int] = {}
        for r in (r for run in group.runs for r in run.rounds):
            if r.budget_bytes is not None and r.busiest_bytes is not None:
                spent[r.round] = max(spent.get(r.round, 0), r.busiest_bytes)
        limit = group.runs[0].rounds[0].budget_bytes if spent else None
        if limit is None:
            continue
        series.append({"label": group.label, "colour": colour, "points": [[r, r, n, n, n] for r, n in spent.items()]})
        level = [[r, r, limit, limit, limit] for r in spent]
        series.append({"label": f"budget of {format_bytes(limit)}", "colour": GREY, "points": level})
        counts = [average_last(group, name) for name in (N_SHARED, N_SHARED_BY_PAPER)]
        most = max(spent.values())
        counts.append(counts[0] * limit / most // 1 if counts[0] and most else None)
        rows.append(
            (
                group.label,
                format_bytes(limit),
                format_bytes(most),
                f"{format_percent(most / limit)} %",
                format_bytes(statistics.median(spent.values())),
                *(NONE if count is None else f"{count:.4g}" for count in counts),
            )
        )
    if not series:
        return None
    unique = list({one["label"]: one for one in series}.values())
    heights = [{p[0]: p[2] for p in one["points"]} for one in unique]
    y = {"label": "bytes of the busiest client, both ways", "unit": "bytes", "log": is_wide(heights), "zero": True}
    headings = ["Method", "Budget", "Busiest client, worst round", "of the budget", "Median round"]
    headings += ["Clauses shared", "by the paper’s count", "at the worst round’s bytes, about"]
    text = (
        "The most that one client sent and received in each round, in bytes really sent, and what it was allowed. "
        "A budget is kept whatever is learned, so most rounds stay below it."
    )
    if all(row[-2] == NONE for row in rows):
        headings, rows = headings[:5], [row[:5] for row in rows]
    else:
        text += (
            " The table has how many clauses that lets clients share, how many the paper’s count of the same bytes "
            "would, and how many would fit if every clause took what it took in the worst round."
        )
    view = {"label": "", "x": ROUNDS, "y": y, "series": unique}
    return Figure("budget", "Bytes against the budget", text, "lines", [view], [Cells(headings, rows)])


def average_last(group: Group, name: str) -> float | None:
    """Over the seeds, of what the server noted last."""
    return group.mean(lambda run: next(reversed(run.noted(name).values()), None))
