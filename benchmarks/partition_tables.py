"""Tables of many methods on one and the same partition: the ruler's, and natural data."""

from statistics import fmean, stdev
from typing import Any

from tables import NOTHING, Rows, link, list_shares, number, sent_kb, table, tell_precision


@table("ruler", "| data | α | 25 rounds | 50 rounds | 75 rounds | 100 rounds")
def ruler(file: Any) -> Rows:
    """Methods by their best accuracy; cells: percent, worst tenth, kilobytes of a client until then."""
    cells: dict[tuple[str, float, str], dict[int, Any]] = {}
    for row in file["rows"]:
        label = link(row["method"]) + tell_precision(row)
        cells.setdefault((row["data"], row["alpha"], label), {})[row["rounds"]] = row
    best = {key: max(row["accuracy"] for row in rows.values()) for key, rows in cells.items()}
    for key in sorted(cells, key=lambda key: (key[0], key[1], -best[key])):
        data, alpha, label = key
        points = [show_point(cells[key].get(rounds)) for rounds in (25, 50, 75, 100)]
        yield [label, data, f"{alpha:g}", *points]


def show_point(row: Any) -> str:
    return f"{row['accuracy']:.2f} ({row['p10']:.1f}), {row['kilobytes']:,.0f} kB" if row else NOTHING


@table("ruler.chosen", "| data | settings | rounds | % of validation examples")
def ruler_chosen(file: Any) -> Rows:
    for row in file["validation"]:
        settings = [row["data"], row["settings"], str(row["rounds"])]
        yield [link(row["method"]), *settings, f"{row['accuracy']:.1f} ({row['p10']:.1f})"]


NATURAL = {  # runs are named by these and their seed
    "clausepool": link("clausepool"),
    "seedhead": f"{link('seedhead')}, control",
    "private": "private seed head, control",
    "own": "own clauses, control",
    "local": f"{link('local-tm')}, control",
}


@table("natural", "| seeds | % of a speaker's words | all words | worst tenth | kB a client | clausepool is above by")
def natural(file: Any) -> Rows:
    """Standard errors are over speakers, of each the mean of its runs; differences are of the same speaker's."""
    runs: dict[str, list[Any]] = {}
    for run in file["runs"]:
        runs.setdefault(run["run"].removeprefix("t-").rpartition("-")[0], []).append(run)
    ours = share_right(runs["clausepool"])
    for name in sorted(runs, key=lambda name: -fmean(share_right(runs[name]))):
        mine, right, tested = share_right(runs[name]), 0, 0
        for run in runs[name]:
            right, tested = right + sum(run["n_correct"]), tested + sum(run["n_test"])
        above = [a - b for a, b in zip(ours, mine, strict=True)]
        cells = [str(len(runs[name])), with_error(mine), f"{100 * right / tested:.1f}"]
        cells += [f"{fmean(run['p10'] for run in runs[name]):.1f}", number(fmean(map(sent_kb, runs[name])), 1)]
        yield [NATURAL.get(name) or link(name), *cells, with_error(above) if name != "clausepool" else NOTHING]


def share_right(runs: list[Any]) -> list[float]:
    """[client] percent, mean of the runs."""
    return [fmean(shares) for shares in zip(*map(list_shares, runs), strict=True)]


def with_error(values: list[float]) -> str:
    return f"{fmean(values):.1f} ± {stdev(values) / len(values) ** 0.5:.1f}".replace("-", "−")
