"""Figures of what methods noted: as their classes declare it, and plainly where they say nothing.

A run folder carries what its method declared (panels.json), so that nothing here knows a method or a note by name.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from laconic.records import Panel
from laconic.report.clients import MOST_DOTS, Dot, client_cell, compare, explain_seeds
from laconic.report.figure import (
    ROUNDS,
    Amount,
    Cells,
    Figure,
    Line,
    View,
    follow_seeds,
    line_view,
    make_series,
    share_cell,
    shorten,
    tabulate,
    thin_out,
)
from laconic.report.matrices import draw_beside_labels, draw_matrices
from laconic.report.plots import explain_bands
from laconic.report.run import Run
from laconic.report.tables import NONE, Group

OF_MODELS = (
    "A dot is a client, by the last accuracy recorded of each of its models: on its test examples where a method "
    "predicts in two ways, else on the examples that it set aside to judge by. Above the line the model named at "
    "the side is the better one."
)


def plot_declared(groups: Sequence[Group]) -> tuple[list[Figure], list[str]]:
    """And, in words, what was declared and never noted: a note that was renamed is not dropped in silence."""
    together: dict[tuple[str, str], list[Panel]] = {}
    for group in groups:
        for panel in group.runs[0].panels:
            same = together.setdefault((panel.kind, panel.title), [])
            if panel not in same:
                same.append(panel)
    figures: list[Figure] = []
    lacking: list[str] = []
    for (kind, title), panels in together.items():
        whose = [group for group in groups if any(declares(group, panel) for panel in panels)]
        if kind == "budget":
            continue  # its table takes them
        absent = [n for panel in panels for n in panel.notes if not any(has_noted(g, panel, n) for g in whose)]
        name = "panel-" + re.sub("[^a-z0-9]+", "-", title.lower()).strip("-")
        name += f"-{len(figures)}" if any(figure.name == name for figure in figures) else ""
        figure = DRAW[kind](groups, panels, name)
        if figure is not None:
            figures.append(figure)
        if absent:
            methods = ", ".join(dict.fromkeys(group.runs[0].method for group in whose))
            lacking.append(f"{methods}: {', '.join(absent)} for “{title}”")
    return figures, lacking


def has_noted(group: Group, panel: Panel, name: str) -> bool:
    if panel.kind in ("matrix", "labels"):
        return any(name in run.matrices for run in group.runs)
    if panel.kind in ("models", "classes"):
        return any(name in run.clients.last_notes for run in group.runs)
    return any(run.noted(name) for run in group.runs)


def declares(group: Group, panel: Panel) -> bool:
    return panel in group.runs[0].panels


# ---------------------------------------------------------------- as declared
def draw_lines(groups: Sequence[Group], panels: Sequence[Panel], name: str) -> Figure | None:
    """Several numbers of one method in a view of its own; one number of all methods in one."""
    views: list[View] = []
    tables = []
    for panel in panels:
        y = {"label": panel.axis, "unit": "number", "zero": len(panel.notes) > 1}
        if len(panel.notes) == 1:
            ((note, words),) = panel.notes.items()
            lines = [follow_note(group, note) if declares(group, panel) else {} for group in groups]
            if any(lines):
                views.append(line_view(words, groups, lines, y))
                tables.append(tabulate(groups, lines, write_number, words))
            continue
        for group in groups:
            noted = {words: follow_note(group, note) for note, words in panel.notes.items() if declares(group, panel)}
            drawn = {words: line for words, line in noted.items() if line}
            if not drawn:
                continue
            has_band = len(group.runs) > 1
            series = [make_series(words, k, drawn[words], has_band=has_band) for k, words in enumerate(drawn)]
            views.append({"label": group.label, "x": ROUNDS, "y": y, "series": series})
            rows = [
                [str(r), *(write_number(line[r].mean) if r in line else NONE for line in drawn.values())]
                for r in sorted(set.union(*map(set, drawn.values())))
            ]
            tables.append(Cells(["Round", *drawn], rows, group.label))
    text = " ".join(panel.text for panel in panels if panel.text) + explain_bands(groups)
    return Figure(name, panels[0].title, text, "lines", views, tables) if views else None


def follow_note(group: Group, note: str) -> Line:
    return follow_seeds(group, {id(run): run.noted(note) for run in group.runs})


def write_number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def draw_clients(groups: Sequence[Group], panels: Sequence[Panel], name: str) -> Figure | None:
    """Run by run: of client numbers there is no mean."""
    tables = []
    for group in groups:
        notes = {note: words for panel in panels if declares(group, panel) for note, words in panel.notes.items()}
        for run in group.runs:
            noted = {words: found for note, words in notes.items() if (found := run.noted(note))}
            if not noted:
                continue
            rows = [
                [str(r), *(run.name_client(int(by[r])) if r in by else NONE for by in noted.values())]
                for r in sorted(set.union(*map(set, noted.values())))
            ]
            tables.append(Cells(["Round", *noted], rows, group.name_run(run)))
    return Figure(name, panels[0].title, panels[0].text, "none", [], tables) if tables else None


def draw_classes(groups: Sequence[Group], panels: Sequence[Panel], name: str) -> Figure | None:
    """What each client noted last."""
    tables = []
    for group in groups:
        notes = {note: words for panel in panels if declares(group, panel) for note, words in panel.notes.items()}
        for run in group.runs:
            noted = {
                words: run.clients.last_notes[note] for note, words in notes.items() if note in run.clients.last_notes
            }
            if not noted:
                continue
            rows: list[list[str | Amount]] = [
                [client_cell(holding), *(name_class(run, by.get(holding.client)) for by in noted.values())]
                for holding in run.partition.clients
            ]
            tables.append(Cells(["Client", *noted], rows, group.name_run(run)))
    return Figure(name, panels[0].title, panels[0].text, "none", [], tables) if tables else None


def name_class(run: Run, number: float | None) -> str | Amount:
    names = run.partition.classes
    is_there = number is not None and 0 <= number < len(names)
    return Amount(names[int(number)], int(number)) if is_there and number is not None else Amount(NONE, -1)


def draw_models(groups: Sequence[Group], panels: Sequence[Panel], name: str) -> Figure | None:
    """What a client's models get right apart, against the first of them."""
    views: dict[str, View] = {}
    tables = []
    for colour, group in enumerate(groups):
        notes = {note: words for panel in panels if declares(group, panel) for note, words in panel.notes.items()}
        dots: dict[tuple[str, str], list[Dot]] = {}
        for run in group.runs:
            noted = {
                words: run.clients.last_notes[note] for note, words in notes.items() if note in run.clients.last_notes
            }
            if len(noted) < 2:
                continue
            first, *others = noted
            seed = [run.seed] if len(group.runs) > 1 else []
            for other in others:
                both = sorted(noted[first].keys() & noted[other].keys())
                shares = ((c, shorten(noted[first][c]), shorten(noted[other][c])) for c in both)
                dots.setdefault((first, other), []).extend([run.names.get(c, c), x, y, *seed] for c, x, y in shares)
            rows: list[list[str | Amount]] = [
                [client_cell(h), *(share_cell(by[h.client]) if h.client in by else NONE for by in noted.values())]
                for h in run.partition.clients
            ]
            tables.append(Cells(["Client", *(f"{words} %" for words in noted)], rows, group.name_run(run)))
        for (first, other), some in dots.items():
            better, worse = compare(some)
            said = f"{group.label}: of {len(some)} clients {better} do better with {other}, {worse} with {first}"
            axes = {
                axis: {"label": f"accuracy, {words}", "unit": "percent"} for axis, words in (("x", first), ("y", other))
            }
            view = views.setdefault(f"{other} against {first}", {"series": [], **axes})
            view["series"].append({"label": said, "colour": colour, "dots": thin_out(some, MOST_DOTS)})
    drawn = [{"label": label, **view} for label, view in views.items()]
    text = (panels[0].text or OF_MODELS) + explain_seeds(groups)
    return Figure(name, panels[0].title, text, "scatter", drawn, tables) if drawn else None


Drawing = Callable[[Sequence[Group], Sequence[Panel], str], Figure | None]
DRAW: dict[str, Drawing] = {
    "lines": draw_lines,
    "clients": draw_clients,
    "classes": draw_classes,
    "models": draw_models,
    "matrix": draw_matrices,
    "labels": draw_beside_labels,
}


# ---------------------------------------------------------------- plainly
def plot_notes(groups: Sequence[Group]) -> tuple[list[Figure], Cells | None]:
    """A small figure for each number that no panel shows, of the server or as mean of clients; those of one round."""
    noted: dict[str, dict[int, dict[int, float]]] = {}  # name -> run -> round -> value
    for run in (run for group in groups for run in group.runs):
        shown = {(panel.kind, name) for panel in run.panels for name in panel.notes}
        for r in run.rounds:
            for name, value in r.notes.items():
                if value is None or not math.isfinite(value) or {("lines", name), ("clients", name)} & shown:
                    continue
                noted.setdefault(name, {}).setdefault(id(run), {})[r.round] = value
        for name, by_round in run.clients.mean_notes.items():
            if ("classes", name) not in shown:
                noted.setdefault(f"{name}, mean of clients", {})[id(run)] = by_round
    figures: list[Figure] = []
    once: list[list[str]] = []
    for name, by_run in noted.items():
        lines = [follow_seeds(group, by_run) for group in groups]
        rounds = {r for line in lines for r in line}
        if len(rounds) == 1:
            (only,) = rounds
            once.append([name, str(only), *(write_number(line[only].mean) if line else NONE for line in lines)])
        elif rounds:
            y: dict[str, Any] = {"label": "", "unit": "number"}
            table = tabulate(groups, lines, write_number, name)
            view = line_view(name, groups, lines, y)
            figures.append(Figure(f"note-{len(figures)}", name, "", "lines", [view], [table]))
    headings = ["What", "Round", *(group.label for group in groups)]
    return figures, Cells(headings, once, "Noted in one round") if once else None
