"""What travelled: by field, beside what papers count, and on the air of common links."""

import statistics
from bisect import bisect
from collections.abc import Mapping, Sequence
from itertools import accumulate

from laconic.records import ENVELOPE
from laconic.report.figure import GREY, Cells, Figure, View, shorten, spread
from laconic.report.links import LINKS, Link, estimate
from laconic.report.plots import explain_bands
from laconic.report.run import Counts, add_counts
from laconic.report.tables import NONE, Group, format_bytes, format_duration, format_joules

WAYS = {"up": "up", "down": "down", "peer": "peer to peer"}


def plot_fields(groups: Sequence[Group]) -> Figure | None:
    views, tables = [], []
    for group in (group for group in groups if group.sends):
        by_field = average_fields(group)
        names = dict.fromkeys(name for _, _, name in by_field if name != ENVELOPE)
        colours = {name: k for k, name in enumerate(names)} | {ENVELOPE: GREY}
        bars = []
        for step, direction in dict.fromkeys((step, direction) for step, direction, _ in by_field):
            parts = {name: by_field.get((step, direction, name)) for name in colours}
            segments = [
                {"label": name, "colour": colours[name], "value": shorten(counts.sent_bytes)}
                for name, counts in parts.items()
                if counts is not None
            ]
            bars.append({"label": f"{step}, {WAYS[direction]}", "segments": segments})
        views.append({"label": group.label, "rows": bars})
        rows = [
            (step, WAYS[direction], name, *(format_bytes(n_bytes) for n_bytes in counts))
            for (step, direction, name), counts in by_field.items()
        ]
        headings = ("Step", "Direction", "Field", "Sent", "Packed", "Entropy estimate", "Paper's count")
        tables.append(Cells(headings, rows, group.label))
    if not views:
        return None
    text = "What was sent in the whole run, by step, direction and field. The envelope is head and checksum; "
    text += "notes are numbers for the record, where a real node lets them go."
    if any(len(group.runs) > 1 for group in groups):
        text += " Of several seeds it is the mean."
    return Figure("fields", "Bytes by message field", text, "bars", views, tables)


def average_fields(group: Group) -> dict[tuple[str, str, str], Counts]:
    """Over the seeds; a seed that never sent a field sent 0 of it."""
    keys = dict.fromkeys(key for run in group.runs for key in run.sums.by_field)
    sums = {key: add_counts(run.sums.by_field.get(key, Counts()) for run in group.runs) for key in keys}
    return {key: Counts(*(n / len(group.runs) for n in counts)) for key, counts in sums.items()}  # type: ignore[arg-type]


def plot_stages(groups: Sequence[Group]) -> Figure | None:
    views, rows = [], []
    for group in (group for group in groups if group.sends):
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
    if not views:
        return None
    text = (
        "From the bytes by the paper’s own rule, over every number in the fewest bits that hold its array, to what "
        "travelled, envelopes included. The estimate takes every bit and number as independent, so a coder that "
        "knows more can come below it."
    )
    headings = ("Method", "Paper’s count", "Packed", "Sent", "of it envelopes", "Entropy estimate")
    return Figure("stages", "From the paper’s count to the wire", text, "bars", views, [Cells(headings, rows)])


# ---------------------------------------------------------------- on the air
def plot_links(groups: Sequence[Group]) -> Figure | None:
    """Accuracy against how long the rounds until then would take on a link."""
    senders = [(k, group) for k, group in enumerate(groups) if group.sends]
    if not senders:
        return None
    views: list[View] = []
    rows: list[tuple[str, ...]] = []
    for link in LINKS:
        series = []
        for colour, group in senders:
            points, took = follow_on_air(group, link)
            band = {"label": group.label, "colour": colour, "points": points, "has_band": len(group.runs) > 1}
            series.append(band)
            rows.append((link.name, group.label, *took))
        x = {"label": f"time so far on {link.name}", "unit": "duration", "log": True}
        y = {"label": "accuracy, mean of clients", "unit": "percent"}
        views.append({"label": link.name, "x": x, "y": y, "series": series})
    headings = ("Link", "Method", "The run takes", "A round, median", "A client’s energy, mean", "the most")
    sources = [(link.name, link.up.words, link.down.words, link.source) for link in LINKS]
    text = (
        "An estimate, not a measurement: how long the same bytes would take where every client has such a link for "
        "itself, nothing is lost and training takes no time. A round lasts as long as its slowest client; energy is "
        "that of a client’s radio. Sources and years are in the second table, and which figures could not be checked."
    )
    tables = [
        Cells(headings, rows, "Estimates for the whole run, set-up included"),
        Cells(("Link", "Up", "Down", "Figures from"), sources, "Links"),
    ]
    return Figure("links", "On the air", text + explain_bands(groups), "lines", views, tables)


def add_up(seconds: Mapping[int, float], rounds: Sequence[int]) -> list[float]:
    """Up to each of these rounds, with it."""
    numbers = sorted(seconds)
    totals = [0.0, *accumulate(seconds[number] for number in numbers)]
    return [totals[bisect(numbers, number)] for number in rounds]


def follow_on_air(group: Group, link: Link) -> tuple[list[list[float]], tuple[str, ...]]:
    """Points by evaluated round, and in words: the run, a round of it, the energy of a client and the most of one."""
    on_air = [estimate(link, run.sums.by_client_round) for run in group.runs]
    accuracies = [{r.round: r.accuracy_mean or 0.0 for r in run.evaluated} for run in group.runs]
    common = sorted(set.intersection(*map(set, accuracies)))
    so_far = [add_up(one.seconds, common) for one in on_air]
    points = []
    for number, *seconds_each in zip(common, *so_far, strict=True):
        shares = [accuracy[number] for accuracy in accuracies]
        points.append([number, *(shorten(value) for value in (statistics.fmean(seconds_each), *spread(shares)))])
    seconds = statistics.fmean(sum(one.seconds.values()) for one in on_air)
    rounds = [s for one in on_air for r, s in one.seconds.items() if r > 0]
    joules = [joules for one in on_air for joules in one.joules.values()]
    return points, (
        format_duration(seconds),
        format_duration(statistics.median(rounds)) if rounds else NONE,
        format_joules(statistics.fmean(joules)),
        format_joules(max(joules)),
    )
