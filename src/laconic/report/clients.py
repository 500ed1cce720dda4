"""What each client has, how well it does, and how evenly that is spread."""

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from math import floor
from typing import Any

from laconic.records import ClientScore, Holding, Partition
from laconic.report.figure import Amount, Cells, Figure, View, count_cell, share_cell, shorten, spread, thin_out
from laconic.report.run import NODES_OWN, Run, rise
from laconic.report.tables import NONE, Group, format_bytes, format_percent

MOST_DOTS = 400  # of a row; more clients than this are counted in bins
BIN = 0.02  # two points of accuracy
MOST_QUANTILES = 100
MOST_ACROSS = 200  # clients of a picture of their labels
MOST_COLUMNS = 8  # of a table that is to fit a page
Dot = list[Any]  # of a client: its name or number, value, examples right, examples, and of several seeds which


def find_alone(run: Run, runs: Iterable[Run]) -> Run | None:
    """The run whose clients have the same data and learn alone."""
    same = (other for other in runs if other.is_silent and other.clients_have == run.clients_have)
    return None if run.is_silent else next(same, None)


def list_runs(groups: Sequence[Group]) -> list[Run]:
    return [run for group in groups for run in group.runs]


# ---------------------------------------------------------------- accuracies
def plot_clients(groups: Sequence[Group]) -> Figure:
    runs = list_runs(groups)
    accuracies: list[View] = []
    gains: list[View] = []
    for k, group in enumerate(groups):
        dots: list[Dot] = []
        gained: list[Dot] = []
        for run in group.runs:
            dots += [make_dot(group, run, s, s.accuracy) for s in run.scores if s.accuracy is not None]
            if alone := find_alone(run, runs):
                gained += [make_dot(group, run, s, end - start) for s, start, end in rise(run, alone)]
        accuracies.append(make_strip(group.label, k, dots))
        if gained:
            gains.append(make_strip(group.label, k, gained))
    views: list[View] = [{"label": "accuracy", "x": {"label": "accuracy", "unit": "percent"}, "rows": accuracies}]
    if gains:
        x = {"label": "gain over learning alone, points", "unit": "gain"}
        views.append({"label": "gain over local-only", "x": x, "rows": gains})
    partitions = {run.shares: run.partition for run in runs}
    tables = [table for shares in partitions for table in tabulate_clients(groups, shares)]
    text = "A dot is a client, at the last evaluated round; the bar marks the median, the tick the 10th percentile."
    if any("bins" in row for row in accuracies):
        text = "How many clients reach how much, at the last evaluated round" + text[text.index(";") :]
    return Figure("clients", "Accuracy of each client", text + explain_seeds(groups), "strip", views, tables)


def explain_seeds(groups: Sequence[Group]) -> str:
    return " Clients of all seeds are shown." if any(len(group.runs) > 1 for group in groups) else ""


def make_dot(group: Group, run: Run, score: ClientScore, value: float) -> Dot:
    which = [run.seed] if len(group.runs) > 1 else []
    return [run.names.get(score.client, score.client), shorten(value), score.n_correct, score.n_test, *which]


def make_strip(label: str, colour: int, dots: list[Dot]) -> View:
    row: View = {"label": label, "colour": colour}
    if len(dots) <= MOST_DOTS:
        return row | {"dots": dots}
    values = sorted(dot[1] for dot in dots)
    counts = Counter(floor(value / BIN + 1e-9) for value in values)
    bins = [[shorten(k * BIN), shorten((k + 1) * BIN), n] for k, n in sorted(counts.items())]
    return row | {"bins": bins, "median": find_quantile(values, 0.5), "p10": find_quantile(values, 0.1)}


def find_quantile(ordered: Sequence[float], share: float) -> float:
    at = (len(ordered) - 1) * share
    below = int(at)
    return ordered[below] + (at - below) * (ordered[min(below + 1, len(ordered) - 1)] - ordered[below])


def plot_fairness(groups: Sequence[Group]) -> Figure | None:
    """Clients from the one that does worst to the one that does best."""
    series, rows = [], []
    for k, group in enumerate(groups):
        sorted_runs = [sorted(s.accuracy for s in run.scores if s.accuracy is not None) for run in group.runs]
        if not all(len(values) > 1 for values in sorted_runs):
            continue
        n_steps = min(MOST_QUANTILES, min(map(len, sorted_runs)) - 1)
        points = []
        for step in range(n_steps + 1):
            share = step / n_steps
            reached = spread([find_quantile(values, share) for values in sorted_runs])
            points.append([f"{100 * share:.0f} %", shorten(share), *map(shorten, reached)])
        series.append({"label": group.label, "colour": k, "points": points, "has_band": len(group.runs) > 1})
        measures = zip(*map(measure_fairness, sorted_runs), strict=True)
        rows.append((group.label, *(format_percent(statistics.fmean(values)) for values in measures)))
    if not series:
        return None
    view = {
        "label": "",
        "x": {"label": "clients, from the one that does worst", "unit": "percent"},
        "y": {"label": "accuracy", "unit": "percent"},
        "each": "clients below:",
        "series": series,
    }
    headings = ("Method", "Lowest %", "Mean of the worst tenth", "p10", "Median", "Highest", "Standard deviation")
    text = "So many clients reach no more than the line. The flatter it is, the more evenly a method serves them; "
    text += "further up is better." + (" Bands are over seeds." if any(one["has_band"] for one in series) else "")
    return Figure("fairness", "Fairness", text, "lines", [view], [Cells(headings, rows, "Means over seeds")])


def measure_fairness(ordered: Sequence[float]) -> tuple[float, ...]:
    worst = ordered[: max(1, len(ordered) // 10)]
    quantiles = (find_quantile(ordered, share) for share in (0.1, 0.5))
    return ordered[0], statistics.fmean(worst), *quantiles, ordered[-1], statistics.pstdev(ordered)


def plot_gain(groups: Sequence[Group]) -> Figure | None:
    """Over learning alone on the same examples."""
    runs, series, rows = list_runs(groups), [], []
    is_thinned = False
    for colour, group in enumerate(groups):
        dots: list[Dot] = []
        for run in group.runs:
            alone = find_alone(run, runs)
            for score, start, end in rise(run, alone) if alone else ():
                who, reached, _, _, *seed = make_dot(group, run, score, end)
                dots.append([who, shorten(start), reached, *seed])
        if not dots:
            continue
        better, worse = compare(dots)
        said = f"{group.label}: of {len(dots)} clients {better} gain, {worse} lose"
        shown = thin_out(dots, MOST_DOTS)
        is_thinned = is_thinned or len(shown) < len(dots)
        series.append({"label": said, "colour": colour, "dots": shown})
        gains = sorted(up - across for _, across, up, *_ in dots)
        points = (
            f"{100 * gain:+.1f}" for gain in (statistics.fmean(gains), statistics.median(gains), gains[0], gains[-1])
        )
        rows.append((group.label, str(better), str(worse), str(len(dots) - better - worse), *points))
    if not series:
        return None
    axes = [{"label": f"accuracy, {name}", "unit": "percent"} for name in ("learning alone", "with the method")]
    headings = ("Method", "Clients that gain", "lose", "stay", "Mean gain, points", "Median", "Lowest", "Highest")
    text = "A dot is a client; above the line it does better than alone, on the same examples." + explain_seeds(groups)
    text += f" Of more than {MOST_DOTS} clients some are left out of the picture." if is_thinned else ""
    view = {"label": "", "x": axes[0], "y": axes[1], "series": series}
    return Figure("gain", "Gain over learning alone", text, "scatter", [view], [Cells(headings, rows)])


def compare(dots: Sequence[Dot]) -> tuple[int, int]:
    """How many lie above the line and below it."""
    above, below = (sum(sign * (up - across) > 1e-9 for _, across, up, *_ in dots) for sign in (1, -1))
    return above, below


# ---------------------------------------------------------------- tables
def tabulate_clients(groups: Sequence[Group], shares: str) -> Iterable[Cells]:
    """Of the runs whose clients have these shares: accuracies, gains and bytes, none wider than a page."""
    runs = list_runs(groups)
    same = [(group.name_run(run), run) for group in groups for run in group.runs if run.shares == shares]
    if len({run.seed for _, run in same}) == 1:
        same = [(group.label, run) for group in groups for run in group.runs if run.shares == shares]
    seeds = ", ".join(str(seed) for seed in sorted({run.seed for _, run in same}))
    partition = same[0][1].partition
    whose = NODES_OWN if partition.is_nodes_own else f"partition {partition.sha256[:8]}"
    accuracies, gains, carried = list[Column](), list[Column](), list[Column]()
    for label, run in same:
        shown = {s.client: share_cell(s.accuracy) for s in run.scores if s.accuracy is not None}
        accuracies.append((f"{label}\naccuracy %", shown))
        if alone := find_alone(run, runs):
            rises = {score.client: end - start for score, start, end in rise(run, alone)}
            gains.append((f"{label}\ngain", {c: Amount(f"{100 * gain:+.1f}", gain) for c, gain in rises.items()}))
        for place, way in enumerate(("sent", "received")) if run.counts.sent_bytes else ():
            both = run.sums.by_client.items()
            carried.append((f"{label}\n{way}", {c: Amount(format_bytes(b[place]), b[place]) for c, b in both}))
    for what, columns in (("accuracy", accuracies), ("gain over learning alone", gains), ("bytes", carried)):
        most = MOST_COLUMNS - 2 * (what == "accuracy")
        for some in (columns[k : k + most] for k in range(0, len(columns), most)):
            which = f" of {', '.join(dict.fromkeys(name.partition(chr(10))[0] for name, _ in some))}"
            caption = f"Clients with seed {seeds}: {what}{which if len(columns) > len(some) else ''}; {whose}"
            yield make_table(partition, same, some, caption, has_examples=what == "accuracy")


Column = tuple[str, dict[int, Amount]]  # its heading, and cells by client


def make_table(
    partition: Partition,
    runs: Sequence[tuple[str, Run]],
    columns: Sequence[Column],
    caption: str,
    *,
    has_examples: bool,
) -> Cells:
    empty = Amount(NONE, -1)
    n_tested = {score.client: score.n_test for _, run in runs for score in run.scores}
    rows: list[list[str | Amount]] = []
    for holding in partition.clients:
        row: list[str | Amount] = [client_cell(holding)]
        if has_examples:
            row.append(count_cell(None if holding.train is None else sum(holding.train)))
            row.append(count_cell(n_tested.get(holding.client) if holding.test is None else sum(holding.test)))
        rows.append(row + [cells.get(holding.client, empty) for _, cells in columns])
    headings = ["Client", *(("Train", "Test") if has_examples else ()), *(heading for heading, _ in columns)]
    return Cells(headings, rows, caption, is_sortable=True)


def client_cell(holding: Holding) -> str | Amount:
    """By its name, sorted by its number."""
    return Amount(holding.name, holding.client) if holding.name else str(holding.client)


# ---------------------------------------------------------------- labels
def plot_labels(groups: Sequence[Group]) -> Figure | None:
    """Of each distinct partition that is known: the runs of one seed share theirs."""
    partitions = {run.shares: (run.seed, run.partition) for run in list_runs(groups) if not run.partition.is_nodes_own}
    views, tables = [], []
    for seed, partition in partitions.values():
        moments: list[tuple[str, list[Holding]]] = [("", partition.clients)]
        if partition.drift is not None:
            moments.append((f" after round {partition.drift.round}", partition.drift.clients))
        for moment, holdings in moments:
            for part in ("train", "test"):
                label = f"{part}{moment}" if len(partitions) == 1 else f"{part}{moment} · seed {seed}"
                drawn = thin_out(holdings, MOST_ACROSS)
                head = {"across": [holding.name or holding.client for holding in drawn], "down": partition.classes}
                nothing = [None] * len(partition.classes)
                values = [getattr(holding, part) or nothing for holding in drawn]
                views.append({"label": label, "values": values, "are_counts": True, **head})
                unknown = [NONE] * len(partition.classes)
                rows = [[client_cell(holding), *map(str, getattr(holding, part) or unknown)] for holding in holdings]
                tables.append(Cells(["Client", *partition.classes], rows, f"Examples: {label}"))
    if not views:
        return None
    text = "How many examples of each class a client holds; a stronger colour is more."
    if any(len(partition.clients) > MOST_ACROSS for _, partition in partitions.values()):
        text += f" Of more than {MOST_ACROSS} clients some are left out of the picture; the table has all."
    return Figure("labels", "Labels of each client", text, "heat", views, tables)
