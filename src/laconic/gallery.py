"""What a report cannot know from records: the clauses that some clients' models decide by, as pictures or in words.

The report imports nothing that trains or reads models, so this section is made here and handed to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from laconic.algorithms import METHODS
from laconic.files import write_atomically
from laconic.pages import Section
from laconic.report import Group, Run, build_page, group_runs

N_CLIENTS = 3  # of each method: who does worst, who does best, and one between
N_RULES = 8  # of each client
MOST_EXAMPLES = 200_000  # of all clients; more are not read again just to count how often clauses fire


def report(runs: Sequence[Run], out: str | Path, clients: Sequence[str] | None = None) -> None:
    """Writes the page of these runs. clients: whose clauses are shown, by number or name; none if empty; None: some."""
    sections = [] if clients is not None and not clients else show_gallery(runs, clients)
    write_atomically(Path(out), build_page(runs, sections).encode())


def show_gallery(runs: Sequence[Run], clients: Sequence[str] | None) -> list[Section]:
    """One section of the first seed of each configuration; none where no model has clauses."""
    from laconic.runs.prepare import load_for

    load, body = cache(load_for), ""
    for group in group_runs(runs):
        known = METHODS.get(group.runs[0].method)
        if known is None or known.family != "networks":  # whose models need not be opened to know that
            body += show_group(group, clients, load, is_open=not body)
    if not body:
        return []
    from laconic.explain.page import read_rule_style

    whose = (
        "some clients, who does worst, who does best and one between" if clients is None else "the clients asked for"
    )
    text = (
        f"Clauses that say most in the models of {whose}, after the last round. A number is what a clause adds to a "
        "class where it fires; support is the share of the client’s training examples that it fires on, precision "
        "the share of these about which it is right. laconic explain RUN --client shows all of them."
    )
    return [Section("clauses", "Clauses", f'<p class="lead">{escape(text)}</p>{body}', read_rule_style())]


def show_group(group: Group, clients: Sequence[str] | None, load: Callable[[Any], Any], *, is_open: bool) -> str:
    run, shown = group.runs[0], ""
    for client in pick_clients(run) if clients is None else clients:
        try:
            shown += show_client(run, client, load, has_legend=not shown)
        except Exception as error:
            if clients is not None:
                raise
            # nodes keep their models, nothing may have been saved yet, methods from elsewhere may fail in any way: no
            # page is lost for want of a gallery
            shown += f'<p class="note">{escape(str(error))}</p>'
            break
    head = f'<details class="run"{" open" if is_open else ""}><summary>{escape(group.name_run(run))}</summary>'
    return f"{head}{shown}</details>" if shown else ""


def pick_clients(run: Run) -> list[str]:
    ranked = sorted((s for s in run.scores if s.accuracy is not None), key=lambda score: score.accuracy or 0)
    places = dict.fromkeys(round(k * (len(ranked) - 1) / (N_CLIENTS - 1)) for k in range(N_CLIENTS)) if ranked else ()
    return [str(ranked[place].client) for place in places]


def show_client(run: Run, client: str, load: Callable[[Any], Any], *, has_legend: bool) -> str:
    """Nothing if its model has no clauses."""
    from laconic.explain.explanation import explain_model
    from laconic.explain.page import show_legend, show_rules
    from laconic.explain.rules import count_evidence
    from laconic.runs.client_models import read_client, read_examples
    from laconic.runs.typed_toml import ConfigError

    model = read_client(run.folder, client)
    about, evidence = model.about, None
    if sum(sum(holding.train or ()) for holding in run.partition.clients) <= MOST_EXAMPLES:
        try:
            rows, labels = read_examples(run.folder, about.client, "train", load)
            evidence = count_evidence(model.model, model.read(rows), labels)
        except ConfigError:  # the data set is not at hand
            pass
    found = explain_model(model, evidence=evidence, background=model.find_background())
    if not found.rules:
        return ""
    reached = next((s.accuracy for s in run.scores if s.client == about.client), None)
    accuracy = "" if reached is None else f" · accuracy {100 * reached:.1f} %"
    legend = show_legend(found) if found.draws() and has_legend else ""
    name = escape(run.name_client(about.client))
    return f'{legend}<h3 class="after">Client {name}{accuracy}</h3>{show_rules(found, N_RULES)}'
