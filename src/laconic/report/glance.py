"""The head of the page: what to know before trusting it, a card for each method, and the table of all."""

from collections.abc import Iterator, Sequence
from html import escape

from laconic.pages import list_colours
from laconic.report.budget import find_spent
from laconic.report.figure import Cells
from laconic.report.html import show_table
from laconic.report.run import Run
from laconic.report.tables import Group, flatten, format_bytes, format_percent, format_ratio, summarise, table_cells

MOST_NAMED = 3  # runs that a warning names

# which settings of [data] say how examples were dealt out, by how a partition's name begins
DEALT_BY = {"dirichlet": "alpha", "quantity": "alpha", "shards": "labels", "windows": "labels"}


def describe_data(runs: Sequence[Run]) -> str:
    """What all runs have in common, as far as they do."""
    shared = [flatten(run.config["data"]) for run in runs]
    same = {key: value for key, value in shared[0].items() if all(other.get(key) == value for other in shared)}
    n_clients = {len(run.partition.clients) for run in runs}
    parts = [count(n_clients.pop(), "client")] if len(n_clients) == 1 else []
    if partition := same.get("partition"):
        parts.append(f"partition {partition}" + (f" by {same['group']}" if same.get("group") else ""))
        setting = next((key for name, key in DEALT_BY.items() if partition.startswith(name)), "")
        parts += [f"{setting} {same[setting]}"] if setting in same else []
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


# ---------------------------------------------------------------- warnings
def find_warnings(groups: Sequence[Group]) -> Iterator[str]:
    """Each once, after whom it holds for."""
    runs = [run for group in groups for run in group.runs]
    holds: dict[str, list[Run]] = {}
    for run in runs:
        for text in run.warnings:
            holds.setdefault(text, []).append(run)
    for text, some in holds.items():
        whom = name_runs(groups, some)
        yield f"{whom}: {text}" if whom else text
    for seed in sorted({run.seed for run in runs}):
        if len({run.shares for run in runs if run.seed == seed}) > 1:
            yield f"Seed {seed}: the runs divide the data in different ways, so their clients are not the same."


def name_runs(groups: Sequence[Group], some: Sequence[Run]) -> str:
    """In few words; nothing if it is all of them."""
    held = {id(run) for run in some}
    runs = [run for group in groups for run in group.runs]
    if len(held) == len(runs):
        return ""
    names: list[str] = []

    def take(name: str, whole: Sequence[Run]) -> None:
        if whole and held.issuperset(map(id, whole)):
            names.append(name)
            held.difference_update(map(id, whole))

    seeds = sorted({run.seed for run in runs})
    for seed in seeds if len(seeds) > 1 and len(groups) > 1 else ():
        take(f"seed {seed}", [run for run in runs if run.seed == seed])
    for group in groups:
        take(group.label, group.runs)
    for group in groups:
        for run in group.runs:
            take(group.name_run(run), [run])
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


# ---------------------------------------------------------------- cards
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
    }
    if group.sends:
        facts["Paper’s count"] = format_bytes(row.paper_bytes) + (
            f" <small>{format_ratio(row.ratio)} as much</small>" if row.ratio else ""
        )
        facts["Entropy estimate"] = format_bytes(entropy) + (f" <small>sent {above}</small>" if above else "")
    spent, limit = find_spent(group)
    if limit is not None:
        used = format_percent(max(spent.values()) / limit)
        facts["Budget"] = f"{format_bytes(limit)} <small>a client and round, {used} % used</small>"
    listed = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts.items())
    return (
        f'<article class="card c{colour % len(list_colours())}"><h3>{escape(group.label)}</h3>'
        f'<p class="big">{format_percent(row.accuracy)}<small> %</small>{spread}</p>'
        f'<p class="note">accuracy · {escape(seeds)} · {escape(status)}</p><dl>{listed}</dl></article>'
    )
