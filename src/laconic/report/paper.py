"""Figures for a paper's column, as PNG, PDF or SVG: equal runs give equal bytes."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from laconic.files import make_folder, write_atomically
from laconic.pages import list_colours
from laconic.report.clients import plot_fairness
from laconic.report.figure import View
from laconic.report.plots import plot_accuracy
from laconic.report.run import Run
from laconic.report.tables import format_bytes, group_runs

COLUMN_INCHES = 3.4  # of two on a page
DOTS_PER_INCH = 300
MARKS, DASHES = "os^DvP", ("-", "--", ":")
LOOK = {
    "font.size": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "pdf.fonttype": 42,  # text stays text, as publishers ask
    "svg.fonttype": "none",
    "svg.hashsalt": "laconic",
}
# nothing of when or by what a file was made
NO_DATE: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    "svg": {"Date": None, "Creator": None},
}


def check_installed(kinds: Sequence[str]) -> None:
    """ValueError if what draws figures of any kind is not."""
    if not kinds:
        return
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        words = f'figures need {error.name or "matplotlib"}, which is not installed.  pip install "laconic-fl[plots]"'
        raise ValueError(words) from error


def write_figures(runs: Sequence[Run], out: str | Path, kinds: Sequence[str]) -> list[Path]:
    """Accuracy by bytes, accuracy by round and fairness, a file of each kind: png, pdf or svg."""
    if not kinds:
        return []
    if strange := [kind for kind in kinds if kind not in NO_DATE]:
        raise ValueError(f"{strange[0]!r} is no kind of figure; there are {', '.join(NO_DATE)}")
    check_installed(kinds)
    written = []
    for name, view in find_views(runs):
        for kind in kinds:
            path = Path(out) / f"{name}.{kind}"
            make_folder(path.parent)
            write_atomically(path, draw(view, kind))
            written.append(path)
    return written


def find_views(runs: Sequence[Run]) -> Iterator[tuple[str, View]]:
    """As the page has them."""
    groups = group_runs(runs)
    views = {view["label"]: view for view in plot_accuracy(groups).views}
    yield "accuracy-by-bytes", views["both"]
    yield "accuracy-by-round", views["rounds"]
    if fairness := plot_fairness(groups):
        yield "fairness", fairness.views[0]


def draw(view: View, kind: str) -> bytes:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(LOOK):
        figure = Figure(figsize=(COLUMN_INCHES, 0.72 * COLUMN_INCHES), layout="constrained")
        axes = figure.subplots()
        for one in view["series"]:
            draw_series(axes, view, one)
        set_axes(axes, view)
        if len(view["series"]) > 1:
            axes.legend(frameon=False)
        file = io.BytesIO()
        figure.savefig(file, format=kind, dpi=DOTS_PER_INCH, metadata=NO_DATE[kind])
    return file.getvalue()


def draw_series(axes: Any, view: View, one: View) -> None:
    """Who sends nothing has no place among bytes: a level line shows what it reaches for free."""
    colours, k = list_colours(), one["colour"]
    style = {"color": colours[k % len(colours)], "label": one["label"].replace("$", r"\$")}  # no formula
    dash = DASHES[k // len(colours) % len(DASHES)]
    points = [point for point in one["points"] if point[1] > 0 or not view["x"].get("log")]
    if one["points"] and not points:
        axes.axhline(100 * one["points"][-1][2], linestyle="--", **style)
        return
    across = [place(point[1], view) for point in points]
    axes.plot(across, [100 * point[2] for point in points], dash, marker=MARKS[k % len(MARKS)], **style)
    if one["has_band"]:
        low, high = ([100 * point[at] for point in points] for at in (3, 4))
        axes.fill_between(across, low, high, color=style["color"], alpha=0.18, linewidth=0)


def place(x: float, view: View) -> float:
    return 100 * x if view["x"]["unit"] == "percent" else x


def set_axes(axes: Any, view: View) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    x = view["x"]
    names = {"bytes": "bytes so far, all clients", "count": "round", "percent": "clients, from the worst (%)"}
    axes.set_xlabel(names[x["unit"]])
    axes.set_ylabel("accuracy (%)")
    if x["unit"] == "count":
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    sent = [point[1] for one in view["series"] for point in one["points"] if point[1] > 0]
    if x["unit"] == "bytes" and sent:
        axes.set_xscale("log")
        if max(sent) < 100 * min(sent):  # powers of ten alone would be too few
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format_bytes(round(value)).replace(".00", "")))
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="y", linewidth=0.4, alpha=0.4)
