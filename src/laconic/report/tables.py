"""Runs side by side: the comparison as rows and as a table for the terminal, and how bytes are written."""

import json
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Literal

from rich.table import Table

from laconic.records import ClientScore
from laconic.report.run import ClientBytes, Run, rise

UNITS = ("B", "kB", "MB", "GB", "TB", "PB")  # each a thousand of the one before
NONE = "–"  # where there is nothing to show


@dataclass(frozen=True)
class Group:
    """Runs that differ in their seed alone."""

    label: str
    runs: tuple[Run, ...]

    def mean(self, of: Callable[[Run], float | None]) -> float | None:
        values = [value for run in self.runs if (value := of(run)) is not None]
        return statistics.fmean(values) if values else None

    @property
    def sends(self) -> bool:
        return any(run.counts.sent_bytes for run in self.runs)

    def name_run(self, run: Run) -> str:
        return self.label if len(self.runs) == 1 else f"{self.label} · seed {run.seed}"


@dataclass(frozen=True)
class Row:
    """Means over the seeds; bytes per client and round leave out the set-up (round 0), totals hold it."""

    method: str
    n_seeds: int
    accuracy: float | None
    accuracy_sd: float | None  # None for a single seed
    best: float | None
    p10: float | None
    upload_bytes_per_client_round: float | None
    download_bytes_per_client_round: float | None
    upload_bytes: float
    download_bytes: float
    peer_bytes: float
    paper_bytes: float
    ratio: float | None  # the paper's bytes over those sent
    seconds: float
    is_finished: bool
    gain: float | None  # in accuracy over the first configuration, mean over clients and seeds
    gain_error: float | None  # standard error of that mean

    @property
    def total_bytes(self) -> float:
        return self.upload_bytes + self.download_bytes + self.peer_bytes


def compare_table(runs: Sequence[Run]) -> list[Row]:
    """A row for each configuration, in the order first met."""
    groups = group_runs(runs)
    return [summarise(group, groups[0]) for group in groups]


def summarise(group: Group, base: Group | None = None) -> Row:
    """base: the configuration that gains are counted from."""
    gain, gain_error = find_gain(group, base) if base and base is not group else (None, None)
    accuracies = [run.accuracy_mean for run in group.runs if run.accuracy_mean is not None]
    upload, download, peer = (
        statistics.fmean(getattr(run, name) for run in group.runs)
        for name in ("upload_bytes", "download_bytes", "peer_bytes")
    )
    paper = statistics.fmean(run.counts.paper_bytes for run in group.runs)
    sent = upload + download + peer
    return Row(
        method=group.label,
        n_seeds=len(group.runs),
        accuracy=group.mean(lambda run: run.accuracy_mean),
        accuracy_sd=statistics.stdev(accuracies) if len(accuracies) > 1 else None,
        best=group.mean(lambda run: run.accuracy_best),
        p10=group.mean(lambda run: run.accuracy_p10),
        upload_bytes_per_client_round=group.mean(lambda run: per_client_round(run, "upload_bytes")),
        download_bytes_per_client_round=group.mean(lambda run: per_client_round(run, "download_bytes")),
        upload_bytes=upload,
        download_bytes=download,
        peer_bytes=peer,
        paper_bytes=paper,
        ratio=paper / sent if sent else None,
        seconds=statistics.fmean(run.seconds for run in group.runs),
        is_finished=all(run.is_finished for run in group.runs),
        gain=gain,
        gain_error=gain_error,
    )


def find_gain(group: Group, base: Group) -> tuple[float | None, float | None]:
    """Client by client, each against itself in the base; nothing unless all learnt from and were tested on the same."""
    pairs = list(zip(group.runs, base.runs, strict=False))
    if len(group.runs) != len(base.runs) or any(run.clients_have != other.clients_have for run, other in pairs):
        return None, None
    gains = [end - start for run, other in pairs for _, start, end in rise(run, other)]
    if len(gains) < 2:
        return None, None
    return statistics.fmean(gains), statistics.stdev(gains) / len(gains) ** 0.5


def describe(run: Run) -> dict[str, Any]:
    """One run in figures, ready for JSON; bytes are of all clients over the whole run."""
    return {
        "run": str(run.folder),
        "method": run.method,
        "seed": run.seed,
        "git": run.env.git,
        "partition": run.partition.sha256[:12],
        "rounds": run.rounds[-1].round if run.rounds else 0,
        "is_finished": run.is_finished,
        "accuracy_by_round": {r.round: r.accuracy_mean for r in run.evaluated},
        "accuracy_best": run.accuracy_best,
        "accuracy_p10": run.accuracy_p10,
        "upload_bytes": run.upload_bytes,
        "download_bytes": run.download_bytes,
        "peer_bytes": run.peer_bytes,
        "paper_upload_bytes": sum(r.paper_upload_bytes for r in run.rounds),
        "paper_download_bytes": sum(r.paper_download_bytes for r in run.rounds),
        "seconds": round(run.seconds, 1),
        "notes": {name: statistics.fmean(of.values()) for name, of in run.clients.last_notes.items() if of},
        "clients": [describe_client(run, score) for score in run.scores],
    }


def describe_client(run: Run, score: ClientScore) -> dict[str, Any]:
    carried = run.sums.by_client.get(score.client, ClientBytes())
    return {
        "client": score.client,
        "name": run.names.get(score.client, ""),
        "accuracy": score.accuracy,
        "n_test": score.n_test,
        **carried._asdict(),
    }


def per_client_round(run: Run, column: str) -> float | None:
    """Of a client that takes part in a round."""
    rounds = [r for r in run.rounds if r.round > 0]
    n_asked = sum(r.n_sampled for r in rounds)
    return sum(getattr(r, column) for r in rounds) / n_asked if n_asked else None


def group_runs(runs: Sequence[Run]) -> list[Group]:
    """Runs of equal configuration but for the seed together; a seed that comes twice begins another group."""
    together: dict[tuple[str, int], list[Run]] = defaultdict(list)
    for run in runs:
        key = json.dumps({**run.config, "seed": None}, sort_keys=True, default=str)
        repeat = 0
        while any(other.seed == run.seed for other in together[key, repeat]):
            repeat += 1
        together[key, repeat].append(run)
    labels = label_configs([members[0].config for members in together.values()])
    repeats = [f" (again, {repeat + 1})" if repeat else "" for _, repeat in together]
    return [
        Group(label + repeat, tuple(sorted(members, key=lambda run: run.seed)))
        for label, repeat, members in zip(labels, repeats, together.values(), strict=True)
    ]


def label_configs(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """The method's name, and where one method was run in several ways, the settings that tell them apart."""
    flat = [flatten(config) for config in configs]
    labels = []
    for config in flat:
        alike = [other for other in flat if other["method.name"] == config["method.name"]]
        telling = [
            f"{key.removeprefix('method.')} = {config[key]}"
            for key in config
            if key != "seed" and any(other.get(key) != config[key] for other in alike)
        ]
        labels.append(config["method.name"] + (f" ({', '.join(telling)})" if telling else ""))
    return labels


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Dotted keys to what stands there, as text."""
    flat: dict[str, str] = {}
    for key, value in config.items():
        flat |= flatten(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": str(value)}
    return flat


def format_bytes(n_bytes: float | None) -> str:
    """Three digits: 1234 -> "1.23 kB"; kB = 1000 B."""
    if n_bytes is None:
        return NONE
    value, power = float(f"{n_bytes:.3g}"), 0  # rounded first: 999.9 kB are 1.00 MB
    if value < 1000 and n_bytes == int(n_bytes):
        return f"{n_bytes:.0f} B"
    while value >= 1000 and power < len(UNITS) - 1:
        value, power = value / 1000, power + 1
    return f"{value:.{max(0, 3 - len(str(int(value))))}f} {UNITS[power]}"


DURATIONS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "days": 86400.0, "years": 365.25 * 86400}


def format_duration(seconds: float) -> str:
    """Three digits, in a unit of which there are two or more: 90 s, but 2.5 min; less than 2 s are 1.5 s."""
    unit = next((unit for unit in reversed(DURATIONS) if seconds >= 2 * DURATIONS[unit]), "ms")
    if unit == "ms" and seconds >= 1:
        unit = "s"
    return f"{three_digits(seconds / DURATIONS[unit])} {unit}"


def format_joules(joules: float) -> str:
    unit, factor = ("mJ", 1e3) if joules < 1 else ("J", 1.0) if joules < 1000 else ("kJ", 1e-3)
    return f"{three_digits(joules * factor)} {unit}"


def three_digits(number: float) -> str:
    """Or more, rather than a power of ten."""
    return f"{number:.3g}" if number < 999.5 else f"{number:.0f}"


def format_percent(share: float | None, digits: int = 1) -> str:
    return NONE if share is None else f"{100 * share:.{digits}f}"


def format_accuracy(row: Row) -> str:
    return format_percent(row.accuracy) + ("" if row.accuracy_sd is None else f" ± {100 * row.accuracy_sd:.1f}")


def format_gain(row: Row) -> str:
    """In points."""
    if row.gain is None or row.gain_error is None:
        return NONE
    return f"{100 * row.gain:+.1f} ± {100 * row.gain_error:.1f}"


def format_ratio(ratio: float | None) -> str:
    return NONE if ratio is None else f"{ratio:.{2 if ratio < 10 else 1 if ratio < 100 else 0}f}×"


COLUMNS: dict[str, Callable[[Row], str]] = {
    "method": lambda row: row.method + ("" if row.is_finished else "*"),
    "seeds": lambda row: str(row.n_seeds),
    "accuracy %": format_accuracy,
    "best %": lambda row: format_percent(row.best),
    "p10 %": lambda row: format_percent(row.p10),
    "over the first": format_gain,
    "up per client and round": lambda row: format_bytes(row.upload_bytes_per_client_round),
    "down per client and round": lambda row: format_bytes(row.download_bytes_per_client_round),
    "up": lambda row: format_bytes(row.upload_bytes),
    "down": lambda row: format_bytes(row.download_bytes),
    "peer to peer": lambda row: format_bytes(row.peer_bytes),
    "paper's bytes": lambda row: format_bytes(row.paper_bytes),
    "paper ÷ sent": lambda row: format_ratio(row.ratio),
    "seconds": lambda row: f"{row.seconds:.1f}",
}


# What a page has room for and a terminal of 80 columns has not.
PAGE_ONLY = {"seeds", "over the first", "up per client and round", "down per client and round", "paper's bytes"}


def table_cells(rows: Sequence[Row], left_out: Set[str] = frozenset()) -> tuple[list[str], list[list[str]]]:
    """Headings and texts; a column that is empty for all is left out."""
    empty = set(left_out)
    if not any(row.peer_bytes for row in rows):
        empty.add("peer to peer")
    if not any(row.gain is not None for row in rows):
        empty.add("over the first")
    columns = {name: write for name, write in COLUMNS.items() if name not in empty}
    return list(columns), [[write(row) for write in columns.values()] for row in rows]


def render(rows: Sequence[Row]) -> Table:
    headings, lines = table_cells(rows, PAGE_ONLY)
    caption = None if all(row.is_finished for row in rows) else "* not finished"
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), caption=caption, caption_justify="left")
    for heading in headings:  # in a narrower one cells break at their spaces; nothing is cut off
        justify: Literal["left", "right"] = "left" if heading == "method" else "right"
        table.add_column(heading, justify=justify, overflow="fold", vertical="bottom")
    for line in lines:
        table.add_row(*(cell.replace("[", r"\[") for cell in line))  # a list among the settings is no markup
    return table
