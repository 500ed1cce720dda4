"""What a budget allowed, and what came of it."""

import statistics
from collections.abc import Sequence

from laconic.report.figure import GREY, ROUNDS, Cells, Figure, Line, Spread, View, is_wide, make_series
from laconic.report.plots import leave_out_set_up
from laconic.report.tables import NONE, Group, format_bytes, format_percent


def plot_budget(groups: Sequence[Group]) -> Figure | None:
    """Of the seed that came nearest to it; None where nobody had one."""
    series: list[View] = []
    lines: list[Line] = []
    rows: list[list[str]] = []
    limits: dict[int, set[int]] = {}  # budget -> rounds under it
    bought = list_bought(groups)
    for colour, group in enumerate(groups):
        spent, limit = find_spent(group)
        if limit is None:
            continue
        (line,) = leave_out_set_up([{r: Spread(n, n, n) for r, n in spent.items()}])
        series.append(make_series(group.label, colour, line, has_band=False))
        lines.append(line)
        limits.setdefault(limit, set()).update(line)
        most = max(spent.values())
        counts = [average_last(group, name) for name in bought]
        if bought:
            counts.append(counts[0] * limit / most // 1 if counts[0] and most else None)
        rows.append(
            [
                group.label,
                format_bytes(limit),
                format_bytes(most),
                f"{format_percent(most / limit)} %",
                format_bytes(statistics.median(spent.values())),
                *(NONE if count is None else f"{count:.4g}" for count in counts),
            ]
        )
    if not series:
        return None
    for limit, rounds in limits.items():
        level: Line = {r: Spread(limit, limit, limit) for r in sorted(rounds)}
        series.append(make_series(f"budget of {format_bytes(limit)}", GREY, level, has_band=False) | {"is_limit": True})
        lines.append(level)
    y = {"label": "bytes of the busiest client, both ways", "unit": "bytes", "log": is_wide(lines), "zero": True}
    headings = ["Method", "Budget", "Busiest client, worst round", "of the budget", "Median round"]
    text = (
        "The most that one client sent and received in each round, in bytes really sent, and what it was allowed. "
        "A budget is kept whatever is learned, so most rounds stay below it. The set-up is in the table alone."
    )
    if bought:
        first, *others = bought.values()
        headings += [first, *others, "at the worst round’s bytes, about"]
        text += (
            f" {first}: what the budget buys; the last column is what it would if all took what the worst round took."
        )
    view = {"label": "", "x": ROUNDS, "y": y, "series": series}
    return Figure("budget", "Bytes against the budget", text, "lines", [view], [Cells(headings, rows)])


def find_spent(group: Group) -> tuple[dict[int, int], int | None]:
    """Round -> bytes of the busiest client of any seed; and its limit."""
    spent: dict[int, int] = {}
    limit = None
    for r in (r for run in group.runs for r in run.rounds):
        if r.budget_bytes is not None and r.busiest_bytes is not None:
            spent[r.round], limit = max(spent.get(r.round, 0), r.busiest_bytes), r.budget_bytes
    return spent, limit


def list_bought(groups: Sequence[Group]) -> dict[str, str]:
    """What methods say that a budget buys, as far as they noted it."""
    runs = [run for group in groups for run in group.runs]
    declared = [panel.notes for run in runs for panel in run.panels if panel.kind == "budget"]
    return {n: words for notes in declared for n, words in notes.items() if any(run.noted(n) for run in runs)}


def average_last(group: Group, name: str) -> float | None:
    """Over the seeds, of what the server noted last."""
    return group.mean(lambda run: next(reversed(run.noted(name).values()), None))
