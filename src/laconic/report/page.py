"""Runs as one HTML file that needs nothing else: no network, no fonts, no second file."""

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from laconic.files import write_atomically
from laconic.pages import read_style, show_section
from laconic.records import find_runs
from laconic.report import matrices, panels, plots
from laconic.report.notes import SIMILARITY, SPLIT
from laconic.report.plots import Amount, Cells, Figure
from laconic.report.run import NODES_OWN, Run, read_run
from laconic.report.sockets import list_sockets
from laconic.report.tables import (
    NONE,
    Group,
    flatten,
    format_bytes,
    format_percent,
    format_ratio,
    group_runs,
    summarise,
    table_cells,
)

MOST_RADIOS = 5  # more views than this are chosen from a list
MOST_NOTES = 24  # small plots; the tables hold the rest
N_COLOURS = 8  # as many as page.css has


def write_report(folders: Sequence[str | Path], out: str | Path) -> None:
    """Of runs, or folders that hold some. Replaces `out` whole or not at all; a folder given twice is read once."""
    if not folders:
        raise ValueError("no run folder was given; at least one was expected; give folders that `laconic run` made")
    found = [run for folder in folders for run in find_runs(Path(folder))]
    runs = [read_run(folder) for folder in {folder.resolve(): folder for folder in found}.values()]
    write_atomically(Path(out), build_page(runs).encode())


def build_page(runs: Sequence[Run]) -> str:
    groups = group_runs(runs)
    split = panels.plot_split(groups)
    possible = [
        plots.plot_accuracy(groups),
        plots.plot_clients(groups),
        panels.plot_gain(groups),
        panels.plot_models(groups),
        split,
        panels.plot_pairs(groups),
        plots.plot_labels(groups),
        matrices.plot_heads(groups),
        matrices.plot_targets(groups),
        matrices.plot_cosines(groups),
        matrices.plot_matrices(groups),
        plots.plot_stages(groups),
        plots.plot_fields(groups),
        plots.plot_bytes(groups),
        panels.plot_budget(groups),
        plots.plot_seconds(groups),
    ]
    figures = [figure for figure in possible if figure is not None]
    notes = plots.plot_notes(groups, left_out={*SPLIT, SIMILARITY} if split else set())
    sections = {"glance": ("At a glance", show_glance(groups))}
    sections |= {figure.name: (figure.title, show_figure(figure)) for figure in figures}
    if notes:
        sections["notes"] = ("What the methods noted", show_notes(notes))
    sections["runs"] = ("How it was run", show_runs(groups))

    script = read_script()
    drawn = {figure.name: {"kind": figure.kind, "views": figure.views} for figure in [*figures, *notes[:MOST_NOTES]]}
    methods = ", ".join(dict.fromkeys(run.method for run in runs))
    data = ", ".join(dict.fromkeys(run.config["data"]["name"] for run in runs))
    versions = ", ".join(sorted({run.env.laconic or "of unknown version" for run in runs}))
    return Template(files("laconic.report").joinpath("page.html").read_text("utf-8")).substitute(
        title=escape(f"{methods} on {data}"),
        subtitle=escape(describe_data(runs)),
        links="".join(f'<a href="#{name}">{escape(title)}</a> ' for name, (title, _) in sections.items()),
        body="\n".join(show_section(name, title, body) for name, (title, body) in sections.items()),
        footer=escape(f"{count(len(runs), 'run')}, laconic {versions}"),
        figures=json.dumps(drawn, separators=(",", ":"), allow_nan=False).replace("<", r"\u003c"),
        script=script,
        script_hash=hash_script(script),
        style=read_style(),
    )


def read_script() -> str:
    """Draws what stands under `figures`, and answers pointer and keys; the live page goes on from it."""
    return "".join(files("laconic.report").joinpath(name).read_text("utf-8") for name in ("charts.js", "page.js"))


def hash_script(script: str) -> str:
    """As a Content-Security-Policy names the one script that it lets run."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def describe_data(runs: Sequence[Run]) -> str:
    """What all runs have in common, as far as they do."""
    shared = [flatten(run.config["data"]) for run in runs]
    same = {key: value for key, value in shared[0].items() if all(other.get(key) == value for other in shared)}
    n_clients = {len(run.partition.clients) for run in runs}
    parts = [count(n_clients.pop(), "client")] if len(n_clients) == 1 else []
    parts += [f"{key} {same[key]}" for key in ("partition", "alpha") if key in same]
    parts += ["images turned"] if same.get("shift") == "turned" else []
    seeds = sorted({run.seed for run in runs})
    parts += [count(len(runs), "run"), f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}"]
    return " · ".join(parts)


def count(n: int, thing: str) -> str:
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"


def show_glance(groups: Sequence[Group]) -> str:
    warnings = "".join(f"<li>{escape(text)}</li>" for text in find_warnings(groups))
    cards = "".join(show_card(k, group) for k, group in enumerate(groups))
    parts = [
        f'<div class="warnings" role="note"><h3>Before you trust these numbers</h3><ul>{warnings}</ul></div>'
        if warnings
        else ""
    ]
    parts.append(f'<div class="cards">{cards}</div>')
    if len(groups) > 1:
        headings, rows = table_cells([summarise(group, groups[0]) for group in groups])
        parts.append(show_table(Cells([heading[0].upper() + heading[1:] for heading in headings], rows)))
    text = (
        "Accuracy is the mean over clients at the last evaluated round, p10 the accuracy that nine clients in ten "
        "reach. Bytes are those of the encoded messages, set-up and envelopes included, over all clients and rounds; "
        "bytes per client and round are of a client that takes part, without set-up. Over the first: mean difference "
        "in points between a client and itself in the first row, and its standard error."
    ) + ("" if all(run.is_finished for group in groups for run in group.runs) else " * not finished.")
    return "".join(parts) + f'<p class="note">{text}</p>'


def find_warnings(groups: Sequence[Group]) -> Iterator[str]:
    """Each once, after the names of those it holds for."""
    runs = [run for group in groups for run in group.runs]
    named: dict[str, list[str]] = {}
    for group in groups:
        for run in group.runs:
            for text in run.warnings:
                named.setdefault(text, []).append(group.name_run(run))
    yield from (f"{', '.join(names)}: {text}" if len(runs) > 1 else text for text, names in named.items())
    for seed in sorted({run.seed for run in runs}):
        if len({run.shares for run in runs if run.seed == seed}) > 1:
            yield f"Seed {seed}: the runs divide the data in different ways, so their clients are not the same."


def show_card(colour: int, group: Group) -> str:
    row = summarise(group)
    entropy = group.mean(lambda run: run.counts.entropy_bytes)
    spread = "" if row.accuracy_sd is None else f'<small class="sd"> ± {100 * row.accuracy_sd:.1f}</small>'
    seeds = f"{row.n_seeds} seeds" if row.n_seeds > 1 else f"seed {group.runs[0].seed}"
    n_finished = sum(run.is_finished for run in group.runs)
    status = group.runs[0].status if row.n_seeds == 1 else f"{n_finished} finished"
    above = format_ratio(row.total_bytes / entropy) if entropy else ""
    facts = {
        "p10": f"{format_percent(row.p10)} %",
        "Best round": f"{format_percent(row.best)} %",
        "Sent in total": format_bytes(row.total_bytes),
        "Paper’s count": format_bytes(row.paper_bytes)
        + (f" <small>{format_ratio(row.ratio)} as much</small>" if row.ratio else ""),
        "Entropy estimate": format_bytes(entropy) + (f" <small>sent {above}</small>" if above else ""),
    }
    listed = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts.items())
    return (
        f'<article class="card c{colour % N_COLOURS}"><h3>{escape(group.label)}</h3>'
        f'<p class="big">{format_percent(row.accuracy)}<small> %</small>{spread}</p>'
        f'<p class="note">accuracy · {escape(seeds)} · {escape(status)}</p><dl>{listed}</dl></article>'
    )


def show_figure(figure: Figure) -> str:
    text = f'<p class="lead">{escape(figure.text)}</p>' if figure.text else ""
    return f'{text}<figure data-figure="{figure.name}">{show_plot(figure)}{show_folded(figure.tables)}</figure>'


def show_plot(figure: Figure) -> str:
    label = escape(f"{figure.title}. Arrow keys step through the values; the table holds them all.")
    return f'{show_views(figure)}<ul class="legend"></ul><div class="plot" data-label="{label}"></div>'


def show_views(figure: Figure) -> str:
    labels = [escape(view["label"]) for view in figure.views]
    if len(labels) < 2:
        return ""
    if len(labels) > MOST_RADIOS:
        options = "".join(f'<option value="{k}">{label}</option>' for k, label in enumerate(labels))
        return f'<label class="views">Show <select name="{figure.name}">{options}</select></label>'
    radios = "".join(
        f'<label><input type="radio" name="{figure.name}" value="{k}"{" checked" if k == 0 else ""}>'
        f"<span>{label}</span></label>"
        for k, label in enumerate(labels)
    )
    return f'<fieldset class="views"><legend>Show</legend>{radios}</fieldset>'


def show_notes(figures: Sequence[Figure]) -> str:
    small = "".join(
        f'<figure data-figure="{figure.name}" data-small><h3>{escape(figure.title)}</h3>{show_plot(figure)}</figure>'
        for figure in figures[:MOST_NOTES]
    )
    more = (
        f'<p class="note">{len(figures) - MOST_NOTES} more are in the tables.</p>' if len(figures) > MOST_NOTES else ""
    )
    folded = show_folded([cells for figure in figures for cells in figure.tables])
    return f'<div class="smalls">{small}</div>{more}{folded}'


def show_folded(tables: Sequence[Cells]) -> str:
    """The first that sorts is worth seeing at once."""
    shown = [show_table(cells) for cells in tables]
    if tables[0].is_sortable:
        return "".join(
            f"<details{' open' if k == 0 else ''}><summary>{escape(cells.caption)}</summary>{table}</details>"
            for k, (cells, table) in enumerate(zip(tables, shown, strict=True))
        )
    title = "As a table" if len(tables) == 1 else f"As {len(tables)} tables"
    return f"<details><summary>{title}</summary>{''.join(shown)}</details>"


def show_table(cells: Cells) -> str:
    """Without the end tags HTML lets us leave out: a partition has a cell for each client and class."""
    is_wordy = [not all(is_numeric(row[k]) for row in cells.rows) for k in range(len(cells.headings))]
    heads = "".join(
        f'<th scope="col"{" class=w" if wordy else ""}>'
        + (f'<button type="button">{show_heading(heading)}</button>' if cells.is_sortable else show_heading(heading))
        for heading, wordy in zip(cells.headings, is_wordy, strict=True)
    )
    body = "".join(
        "<tr>" + "".join(show_cell(cell, wordy) for cell, wordy in zip(row, is_wordy, strict=True))
        for row in cells.rows
    )
    caption = f"<caption>{escape(cells.caption)}</caption>" if cells.caption else ""
    kind = ' class="sortable"' if cells.is_sortable else ""
    label = escape(cells.caption or "Table")
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{label}"><table{kind}>{caption}'
        f"<thead><tr>{heads}<tbody>{body}</table></div>"
    )


def show_heading(heading: str) -> str:
    """What stands before a line break goes above, as the name of several columns."""
    over, _, name = heading.rpartition("\n")
    return f"<span>{escape(over)}</span>{escape(name)}" if over else escape(name)


def is_numeric(cell: str | Amount) -> bool:
    """Also what has a sign before it or a unit behind it, or is missing."""
    return isinstance(cell, Amount) or cell.lstrip("+-")[:1].isdigit() or cell == NONE


def show_cell(cell: str | Amount, wordy: bool) -> str:
    if isinstance(cell, Amount):
        return f"<td data-v={cell.value:.6g}>{escape(cell.text)}"
    return f"<td{' class=w' if wordy else ''}>{escape(cell)}"


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
    rows = []
    for way, name, coded in ways:
        paper = sum(getattr(row, f"paper_{name}load_bytes") for row in run.rounds)
        sent = [getattr(run.sockets.get(kind, (0, 0)), f"{name}_bytes", 0) for kind in kinds]
        rows.append((way, *map(format_bytes, (paper, coded, *sent, sum(sent)))))
    title = "On the sockets of the nodes, TLS included, as they told; peers’ messages go up at one and down at another"
    whole = show_table(Cells(("Way", "As papers count", "Coded", *kinds.values(), "In all"), rows, title))
    headings = [f"{kind}\n{way.lower()}" for kind in kinds.values() for way, *_ in ways]
    for by in ("client", "round"):
        apart = [(name, *map(format_bytes, sent)) for name, sent in list_sockets(run.folder, by)]
        cells = Cells((by.capitalize(), *headings), apart)
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
