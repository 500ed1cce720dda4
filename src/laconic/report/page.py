"""Runs as one HTML file that needs nothing else: no network, no fonts, no second file."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from laconic.files import write_atomically
from laconic.pages import Section, read_charts, show_page
from laconic.records import find_runs
from laconic.report import clients, matrices, noted, plots, traffic
from laconic.report.budget import plot_budget
from laconic.report.figure import Cells, Figure
from laconic.report.glance import count, describe_data, show_glance
from laconic.report.html import MOST_NOTES, show_figure, show_notes, show_table
from laconic.report.run import NODES_OWN, Run, read_run
from laconic.report.sockets import list_sockets
from laconic.report.tables import NONE, Group, flatten, format_bytes, format_ratio, group_runs

# what the script needs, and what is said where it does not run
BEHIND = """<div id="tip" role="status" hidden></div>
<svg id="blank" hidden></svg>
<noscript><p class="note">Plots are drawn by a script in this file, which did not run; the tables hold all
numbers.</p></noscript>
"""


def write_report(folders: Sequence[str | Path], out: str | Path) -> None:
    """By records alone; `laconic.gallery` adds clauses of models. Replaces `out` whole or not at all."""
    write_atomically(Path(out), build_page(read_runs(folders)).encode())


def read_runs(folders: Sequence[str | Path]) -> list[Run]:
    """Of run folders, or folders that hold some; one that is given twice is read once."""
    if not folders:
        raise ValueError("no run folder was given; at least one was expected; give folders that `laconic run` made")
    found = [run for folder in folders for run in find_runs(Path(folder))]
    return [read_run(folder) for folder in {folder.resolve(): folder for folder in found}.values()]


def build_page(runs: Sequence[Run], more: Sequence[Section] = ()) -> str:
    """more: sections of what records do not hold, before the last one."""
    groups = group_runs(runs)
    declared, lacking = noted.plot_declared(groups)
    possible = [
        plots.plot_accuracy(groups),
        clients.plot_clients(groups),
        clients.plot_fairness(groups),
        clients.plot_gain(groups),
        *declared,
        matrices.plot_pairs(groups),
        clients.plot_labels(groups),
        matrices.plot_matrices(groups),
        traffic.plot_stages(groups),
        traffic.plot_fields(groups),
        plots.plot_bytes(groups),
        plot_budget(groups),
        traffic.plot_links(groups),
        plots.plot_seconds(groups),
    ]
    figures = [figure for figure in possible if figure is not None]
    small, once = noted.plot_notes(groups)
    sections = [Section("glance", "At a glance", show_glance(groups))]
    sections += [Section(figure.name, figure.title, show_figure(figure)) for figure in figures]
    if small or once or lacking:
        sections.append(Section("notes", "What the methods noted", show_notes(small, once, lacking)))
    sections += [*more, Section("runs", "How it was run", show_runs(groups))]
    methods = ", ".join(dict.fromkeys(run.method for run in runs))
    data = ", ".join(dict.fromkeys(run.config["data"]["name"] for run in runs))
    versions = ", ".join(sorted({run.env.laconic or "of unknown version" for run in runs}))
    return show_page(
        brand="Laconic report",
        title=f"{methods} on {data}",
        lead=describe_data(runs),
        sections=sections,
        footer=f"{count(len(runs), 'run')}, laconic {versions}",
        after=BEHIND + show_data("figures", list_drawn([*figures, *small[:MOST_NOTES]])),
        script=read_script(),
    )


def read_script() -> str:
    """Draws what stands under `figures`, and answers pointer and keys; the live page goes on from it."""
    return read_charts() + files("laconic.report").joinpath("page.js").read_text("utf-8")


def list_drawn(figures: Sequence[Figure]) -> dict[str, Any]:
    """What the script draws, by name."""
    return {figure.name: {"kind": figure.kind, "views": figure.views} for figure in figures if figure.views}


def show_data(name: str, content: Any) -> str:
    """For the script to read; whatever it holds cannot end it."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False).replace("<", r"\u003c")
    return f'<script type="application/json" id="{name}">{text}</script>'


def name_shares(run: Run) -> str:
    return NODES_OWN if run.partition.is_nodes_own else run.partition.sha256


def show_runs(groups: Sequence[Group]) -> str:
    named = [(group.name_run(run), run) for group in groups for run in group.runs]
    return "".join(show_run(name, run, is_open=len(named) == 1) for name, run in named)


def show_letters(run: Run) -> str:
    """What a run on real nodes cost beside what was coded."""
    if run.carried is None:
        return ""
    ways = (("Up", run.upload_bytes, run.carried.up_bytes), ("Down", run.download_bytes, run.carried.down_bytes))
    rows = [
        (way, format_bytes(coded), format_bytes(sent), format_ratio(sent / coded if coded else None))
        for way, coded, sent in ways
    ]
    title = (
        f"{run.carried.n_letters} messages of Flower carried it, tests and what was sent again among them; "
        "its polling, requests and TLS come on top (docs/deploy.md)"
    )
    return show_table(Cells(("Way", "Coded", "Flower's messages", "Ratio"), rows, title))


def show_sockets(run: Run) -> str:
    """What crossed the wire of a run on real nodes, beside what was coded and what papers would count."""
    if not run.sockets:
        return ""
    kinds = {"exchange": "Its messages", "connect": "Connecting", "idle": "Staying connected"}
    ways = (("Up", "up", run.upload_bytes), ("Down", "down", run.download_bytes))
    apart = {by: list(list_sockets(run, by)) for by in ("client", "round")}
    totals = [sum(column) for column in zip(*(sent for _, sent in apart["client"]), strict=True)]
    rows = []
    for at, (way, name, coded) in enumerate(ways):
        paper = sum(getattr(row, f"paper_{name}load_bytes") for row in run.rounds)
        sent = totals[at :: len(ways)]
        rows.append((way, *map(format_bytes, (paper, coded, *sent, sum(sent)))))
    title = "On the sockets of the nodes, TLS included, as they told; peers’ messages go up at one and down at another"
    whole = show_table(Cells(("Way", "As papers count", "Coded", *kinds.values(), "In all"), rows, title))
    headings = [f"{kind}\n{way.lower()}" for kind in kinds.values() for way, *_ in ways]
    for by, numbers in apart.items():
        cells = Cells((by.capitalize(), *headings), [(name, *map(format_bytes, sent)) for name, sent in numbers])
        whole += f"<details><summary>By {by}</summary>{show_table(cells)}</details>"
    return whole


def show_run(name: str, run: Run, *, is_open: bool) -> str:
    settings = Cells(("Setting", "Value"), [*flatten(run.config).items()], "Configuration")
    environment = {key: NONE if value is None else str(value) for key, value in asdict(run.env).items()}
    about = [*((key, text) for key, text in environment.items() if key != "command"), ("partition", name_shares(run))]
    machine = Cells(("What", "Value"), about, "Environment")
    return (
        f'<details class="run"{" open" if is_open else ""}>'
        f"<summary>{escape(name)} <small>{escape(run.status)}</small></summary>"
        f"<p>Folder <code>{escape(run.folder.name)}</code>. To repeat it:</p>"
        f'<p class="command"><code>{escape(run.env.command)}</code>'
        f'<button type="button" class="copy">Copy</button></p>'
        f"{show_letters(run)}{show_sockets(run)}"
        f'<div class="pair">{show_table(settings)}{show_table(machine)}</div></details>'
    )
