"""Figures of the matrices that methods noted: a target for each class, how alike these are, heads, and any other."""

import statistics
from collections.abc import Sequence
from math import sqrt

from laconic.records import Matrix
from laconic.report.notes import COSINES, HEADS, TARGETS
from laconic.report.panels import list_runs
from laconic.report.plots import Cells, Figure, View
from laconic.report.run import Run
from laconic.report.tables import NONE, Group

Rows = list[list[float]]


def plot_targets(groups: Sequence[Group]) -> Figure | None:
    views: list[View] = []
    tables = []
    for _, label, run in list_runs(groups):
        noted, alike = run.matrices.get(TARGETS), run.matrices.get(COSINES)
        if noted is None:
            continue
        names = [run.partition.classes[k] for k in noted.rows]
        views.append(heat(f"{label}, round {noted.round}", noted, list(range(len(noted.values[0]))), names))
        rows = []
        for k, name in enumerate(names):
            row, others = noted.values[k], [v for j, v in enumerate(alike.values[k]) if j != k] if alike else []
            shown = [f"{of(others):.2f}" if others else NONE for of in (statistics.fmean, min, max)]
            n_used, length = sum(value != 0 for value in row), sqrt(sum(value**2 for value in row))
            rows.append([name, str(n_used), f"{length:.3g}", *shown])
        headings = ["Class", "Dimensions that are not 0", "Length", "Mean cosine with others", "Lowest", "Highest"]
        tables.append(Cells(headings, rows, label))
    if not views:
        return None
    text = "A row is a class, a column a dimension of its target; a stronger colour is further from 0, and 0 is blank."
    return Figure("targets", "Prototypes of the classes", text, "heat", views, tables)


def plot_cosines(groups: Sequence[Group]) -> Figure | None:
    views: list[View] = []
    tables = []
    for _, label, run in list_runs(groups):
        noted = run.matrices.get(COSINES)
        if noted is None or len(noted.rows) < 2:
            continue
        names, title = [run.partition.classes[k] for k in noted.rows], f"{label}, round {noted.round}"
        view = heat(title, noted, names, names)
        for k, row in enumerate(view["values"]):
            row[k] = None
        views.append(view)
        rows = [[name, *(f"{value:.2f}" for value in row)] for name, row in zip(names, noted.values, strict=True)]
        tables.append(Cells(["Class", *names], rows, title))
    if not views:
        return None
    text = "The cosine of every two targets; fainter is further apart."
    return Figure("cosines", "How alike the prototypes are", text, "heat", views, tables)


def plot_matrices(groups: Sequence[Group]) -> Figure | None:
    """All those that no other figure knows how to draw."""
    views: list[View] = []
    tables = []
    for _, label, run in list_runs(groups):
        for name, noted in run.matrices.items():
            if name in (TARGETS, COSINES, HEADS) or not (noted.rows and noted.values[0]):
                continue
            across, title = list(range(len(noted.values[0]))), f"{label}: {name}, round {noted.round}"
            views.append(heat(title, noted, across, [str(row) for row in noted.rows]))
            rows = [[str(of), *(f"{v:.4g}" for v in row)] for of, row in zip(noted.rows, noted.values, strict=True)]
            tables.append(Cells([f"{noted.down} \\ {noted.across}", *map(str, across)], rows, title))
    if not views:
        return None
    text = "Numbers that a method noted for its own reasons; a stronger colour is further from 0, and 0 is blank."
    return Figure("matrices", "Matrices that the methods noted", text, "heat", views, tables)


def heat(label: str, matrix: Matrix, across: Sequence[int | str], down: Sequence[str]) -> View:
    values = [list(column) for column in zip(*matrix.values, strict=True)]
    return {"label": label, "across": across, "down": down, "values": values, "kinds": [matrix.across, matrix.down]}


# ---------------------------------------------------------------- heads against labels
def plot_heads(groups: Sequence[Group]) -> Figure | None:
    """Lengths of the head's weights beside what a client has, both from 0 to 1 within the client."""
    views: list[View] = []
    rows = []
    drawn = set()
    for _, label, run in list_runs(groups):
        noted = run.matrices.get(HEADS)
        if noted is None:
            continue
        labels, norms = scale_labels(run, noted), [scale(row) for row in noted.values]
        head = {"across": noted.rows, "down": run.partition.classes, "kinds": ["client", "class"]}
        if labels is not None and run.shares not in drawn:
            drawn.add(run.shares)
            views.append({"label": f"labels, seed {run.seed}", "values": labels, **head})
        views.append({"label": f"{label}, round {noted.round}", "values": norms, **head})
        distance = NONE if labels is None else f"{measure_distance(labels, norms):.2f}"
        rows.append((label, distance, str(len(norms))))
    if not views:
        return None
    text = (
        "Lengths of the head’s weights for each class, beside the client’s training examples of it; both run from 0 "
        "to 1 within a client. The nearer a head is to its labels, the more it is the client’s own."
    )
    table = Cells(("Method", "Distance from the labels (Frobenius)", "Clients"), rows)
    return Figure("heads", "Heads and labels", text, "heat", views, [table])


def scale_labels(run: Run, noted: Matrix) -> Rows | None:
    """[client of the matrix][class], as they were in that round; None: only the clients know."""
    trained = {holding.client: holding.train for holding in run.partition.at(noted.round)}
    counts = [trained[client] for client in noted.rows]
    return None if None in counts else [scale(row) for row in counts if row is not None]


def scale(row: Sequence[float]) -> list[float]:
    low, high = min(row), max(row)
    return [round((value - low) / (high - low), 4) if high > low else 0.0 for value in row]


def measure_distance(some: Rows, others: Rows) -> float:
    pairs = zip(some, others, strict=True)
    return sqrt(sum((a - b) ** 2 for one, other in pairs for a, b in zip(one, other, strict=True)))
