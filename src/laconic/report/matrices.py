"""Figures of matrices: how alike clients are, and whatever else methods noted of two kinds of things."""

from collections.abc import Sequence
from math import sqrt

from laconic.records import Matrix, Pairs, Panel
from laconic.report.figure import Cells, Figure, View, thin_out
from laconic.report.run import Run
from laconic.report.tables import NONE, Group

MOST_DRAWN = 120  # clients of a matrix; of more, some are left out
PLAIN = "A stronger colour is further from 0, and 0 is blank."

Rows = list[list[float]]


def first_runs(groups: Sequence[Group]) -> list[tuple[str, Run]]:
    """One of each configuration, for a matrix has no mean."""
    return [(group.name_run(group.runs[0]), group.runs[0]) for group in groups]


def explain_first(groups: Sequence[Group]) -> str:
    return " Of several seeds the first is shown." if any(len(group.runs) > 1 for group in groups) else ""


def name_things(run: Run, kind: str, numbers: Sequence[int]) -> list[str]:
    """Classes and clients by their names, all else by its number."""
    if kind == "client":
        return [run.name_client(number) for number in numbers]
    names = run.partition.classes if kind == "class" else []
    return [names[number] if number < len(names) else str(number) for number in numbers]


# ---------------------------------------------------------------- every two clients
def plot_pairs(groups: Sequence[Group]) -> Figure | None:
    """The first and the last matrix that a run noted under a name."""
    views: list[View] = []
    tables = []
    is_thinned = False
    for label, run in first_runs(groups):
        for name in dict.fromkeys(pairs.name for pairs in run.pairs):
            mine = [pairs for pairs in run.pairs if pairs.name == name and len(pairs.clients) > 1]
            for pairs in mine[:1] + mine[1:][-1:]:
                title = f"{label}: {name}, round {pairs.round}"
                order = line_up(pairs)
                is_thinned = is_thinned or len(order) < len(pairs.clients)
                names = name_things(run, "client", [pairs.clients[k] for k in order])
                values = [[None if i == j else pairs.values[i][j] for j in order] for i in order]
                views.append({"label": title, "across": names, "down": names, "values": values})
                cells = [[NONE if value is None else f"{value:.2f}" for value in row] for row in values]
                rows = [[client, *row] for client, row in zip(names, cells, strict=True)]
                tables.append(Cells(["Client", *names], rows, title))
    if not views:
        return None
    text = "A cell is a pair of clients; a stronger colour is more. Clients stand beside those most like them."
    if is_thinned:
        text += f" Of more than {MOST_DRAWN} clients some are left out here; pairs.jsonl in the run’s folder has all."
    return Figure("pairs", "How alike the clients are", text + explain_first(groups), "heat", views, tables)


def line_up(pairs: Pairs) -> list[int]:
    """Places in the matrix, each followed by the one most like it of those left; first the one most like all."""
    left = set(thin_out(range(len(pairs.clients)), MOST_DRAWN))
    here = max(left, key=lambda i: sum(pairs.values[i]))
    order = []
    while left:
        left.remove(here)
        order.append(here)
        here = max(left, key=lambda j: (pairs.values[order[-1]][j], -j), default=0)
    return order


# ---------------------------------------------------------------- any two kinds of things
def draw_matrices(groups: Sequence[Group], panels: Sequence[Panel], name: str) -> Figure | None:
    """As a method wants them to be seen."""
    return _plot(groups, name, panels[0].title, panels[0].text or PLAIN, [n for panel in panels for n in panel.notes])


def plot_matrices(groups: Sequence[Group]) -> Figure | None:
    """All those of which methods say nothing."""
    declared = {
        name
        for _, run in first_runs(groups)
        for panel in run.panels
        if panel.kind in ("matrix", "labels")
        for name in panel.notes
    }
    others = dict.fromkeys(name for _, run in first_runs(groups) for name in run.matrices if name not in declared)
    text = f"Numbers that a method noted for its own reasons. {PLAIN}"
    return _plot(groups, "matrices", "Matrices that the methods noted", text, list(others), is_named=True)


def _plot(
    groups: Sequence[Group], name: str, title: str, text: str, wanted: Sequence[str], *, is_named: bool = False
) -> Figure | None:
    views: list[View] = []
    tables = []
    for label, run in first_runs(groups):
        for noted in (run.matrices[name] for name in wanted if name in run.matrices):
            if not (noted.rows and noted.values[0]):
                continue
            caption = f"{label}: {noted.name}, round {noted.round}" if is_named else f"{label}, round {noted.round}"
            views.append(make_heat(caption, run, noted))
            tables.append(tabulate_matrix(caption, run, noted))
    return Figure(name, title, text + explain_first(groups), "heat", views, tables) if views else None


def make_heat(label: str, run: Run, noted: Matrix) -> View:
    """Nothing is set beside itself."""
    drawn = thin_out(range(len(noted.rows)), MOST_DRAWN) if noted.down == "client" else range(len(noted.rows))
    is_square = noted.down == noted.across and len(noted.rows) == len(noted.values[0])
    values = [
        [None if is_square and k == j else noted.values[k][j] for k in drawn] for j in range(len(noted.values[0]))
    ]
    down = name_things(run, noted.down, [noted.rows[k] for k in drawn])
    across = name_things(run, noted.across, range(len(noted.values[0])))
    return {"label": label, "across": across, "down": down, "values": values, "kinds": [noted.across, noted.down]}


def tabulate_matrix(caption: str, run: Run, noted: Matrix) -> Cells:
    """Cell by cell where columns have names; of many without, what a row has in all."""
    names = name_things(run, noted.down, noted.rows)
    rows = zip(names, noted.values, strict=True)
    kind = noted.down.capitalize()
    if noted.across in ("class", "client"):
        across = name_things(run, noted.across, range(len(noted.values[0])))
        return Cells([kind, *across], [[name, *(f"{v:.4g}" for v in row)] for name, row in rows], caption)
    headings = [kind, f"{noted.across.capitalize()}s that are not 0", "Length", "Lowest", "Highest"]
    summed = [
        [
            name,
            str(sum(v != 0 for v in row)),
            f"{sqrt(sum(v**2 for v in row)):.3g}",
            f"{min(row):.4g}",
            f"{max(row):.4g}",
        ]
        for name, row in rows
    ]
    return Cells(headings, summed, caption)


# ---------------------------------------------------------------- beside labels
def draw_beside_labels(groups: Sequence[Group], panels: Sequence[Panel], name: str) -> Figure | None:
    """A number of each client and class beside what the client has of it, both from 0 to 1 within the client."""
    views: list[View] = []
    rows = []
    drawn = set()
    wanted = [note for panel in panels for note in panel.notes]
    for label, run in first_runs(groups):
        for noted in (run.matrices[note] for note in wanted if note in run.matrices):
            labels, scaled = scale_labels(run, noted), [scale(row) for row in noted.values]
            shown = thin_out(range(len(noted.rows)), MOST_DRAWN)
            names = name_things(run, "client", [noted.rows[k] for k in shown])
            head = {"across": names, "down": run.partition.classes, "kinds": ["client", "class"]}
            if labels is not None and run.shares not in drawn:
                drawn.add(run.shares)
                views.append({"label": f"labels, seed {run.seed}", "values": [labels[k] for k in shown], **head})
            views.append({"label": f"{label}, round {noted.round}", "values": [scaled[k] for k in shown], **head})
            distance = NONE if labels is None else f"{measure_distance(labels, scaled):.2f}"
            rows.append((label, distance, str(len(scaled))))
    if not views:
        return None
    words = " and ".join(dict.fromkeys(words for panel in panels for words in panel.notes.values()))
    text = f"{words[0].upper()}{words[1:]} for each class, beside the client’s training examples of it; "
    text += f"both run from 0 to 1 within a client. {panels[0].text}{explain_first(groups)}"
    table = Cells(("Method", "Distance from the labels (Frobenius)", "Clients"), rows)
    return Figure(name, panels[0].title, text, "heat", views, [table])


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
