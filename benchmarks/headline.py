"""The README's first sentence and its picture, accuracy against bytes: CIFAR-10, 100 clients, Dirichlet 0.1.

Ours come from clausepool.json: the newest of its lists, runs by the names that tables.py knows too. Networks, tuned on
the same partitions, come from ruler.json. pages.py writes both.
"""

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from tables import tell_precision

RESULTS = Path(__file__).parent.parent / "docs" / "results"
OWN = {  # by the part of a run's name that says which it is
    "pool": "ClausePool",
    "few": "ClausePool, few bytes",
    "seed": "seed head",
    "once": "seed head, one shot",
}


class Point(NamedTuple):
    rounds: int
    kilobytes: float  # of one client, both ways, over all rounds until then; the most of all seeds
    accuracy: float  # percent, each client on its own test examples; mean over seeds


class Series(NamedTuple):
    """A method, after fewer and more rounds."""

    label: str
    points: list[Point]
    is_ours: bool

    @property
    def last(self) -> Point:
        return self.points[-1]


def read(name: str) -> Any:
    return json.loads((RESULTS / name).read_text("utf-8"))


def sum_up(label: str, found: Mapping[int, Sequence[tuple[float, float]]], is_ours: bool) -> Series:
    """From kB and percent of each seed, by rounds."""
    points = []
    for rounds, seeds in sorted(found.items()):
        kilobytes, accuracy = zip(*seeds, strict=True)
        points.append(Point(rounds, max(kilobytes), fmean(accuracy)))
    return Series(label, points, is_ours)


def list_runs(file: Any) -> Iterator[tuple[str, str, str, Any]]:
    """Of clausepool.json's newest list, those on test examples: data, α, which it is, and the run."""
    for run in file.get("mirrored", file["with_seeds"]):
        found = re.fullmatch(r"[CM]-(ci|fm)([\d.]*)-(\w+)-\d+", run["run"])
        if found:
            yield found[1], found[2] or "0.1", found[3], run


def list_own() -> list[Series]:
    found: dict[str, dict[int, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for data, alpha, kind, run in list_runs(read("clausepool.json")):
        if (data, alpha) == ("ci", "0.1"):
            total = {str(run["last_round"]): run["upload_bytes"] + run["download_bytes"]}
            for rounds, sent in run.get("bytes_by_round", total).items():
                found[kind][int(rounds)].append((sent / 100 / 1000, run["by_round"][rounds]))
    return [sum_up(label, found[kind], is_ours=True) for kind, label in OWN.items() if kind in found]


def list_networks() -> list[Series]:
    found: dict[str, dict[int, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for row in read("ruler.json")["rows"]:
        if (row["data"], row["alpha"]) == ("cifar10", 0.1):
            found[row["method"] + tell_precision(row)][row["rounds"]].append((row["kilobytes"], row["accuracy"]))
    return [sum_up(method, rows, is_ours=False) for method, rows in found.items()]


def measure_alone() -> float:
    """local-tm on the same partitions: nothing is sent."""
    runs = list_runs(read("clausepool.json"))
    return fmean(run["last"] for data, alpha, kind, run in runs if (data, alpha, kind) == ("ci", "0.1", "alone"))


# ---------------------------------------------------------------- words
def tell_size(kilobytes: float) -> str:
    return f"{kilobytes:.0f} kB" if kilobytes < 1000 else f"{kilobytes / 1000:.1f} MB"


def tell_last(series: Series) -> str:
    return f"{series.last.accuracy:.1f} % in {tell_size(series.last.kilobytes)}"


def write_sentence() -> str:
    own, best = list_own(), max(list_networks(), key=lambda series: series.last.accuracy)
    most, least = (tell_last(series) for series in (own[0], min(own, key=lambda series: series.last.kilobytes)))
    return f"""\
On CIFAR-10, shared out among 100 clients with few classes each (Dirichlet 0.1),
[ClausePool](docs/methods/clausepool.md) reaches **{most} a client** and **{least}**, both ways, over the whole run.
Learning alone has {measure_alone():.1f} %; the best network beside it ({best.label}, {best.last.rounds} rounds) \
{tell_last(best)}.
"""


# ---------------------------------------------------------------- picture
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 820, 430, 44, 32, 46, 56
LETTER, LINE, GAP = 7.2, 17, 11  # width and height of what is written, and its distance from a point
DECADES = (1, 10, 100, 1_000, 10_000, 100_000)  # kB
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f } .small { font-size: 12px; fill: #57606a }
  .paper { fill: #fff } .grid { stroke: #d8dee4 } .alone { stroke: #57606a; stroke-dasharray: 5 4 }
  .ours { fill: #00796b } .other { fill: #bc4c00 } .ours-way { stroke: #00796b } .other-way { stroke: #bc4c00 }
  .title { font-weight: 600; font-size: 14px } .label { paint-order: stroke; stroke: #fff; stroke-width: 5px }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .small { fill: #9198a1 } .paper { fill: #0d1117 } .grid { stroke: #30363d }
    .alone { stroke: #9198a1 } .ours { fill: #2dd4bf } .other { fill: #f0883e }
    .ours-way { stroke: #2dd4bf } .other-way { stroke: #f0883e } .label { stroke: #0d1117 }
  }
"""


def across(kilobytes: float) -> float:
    share = (math.log10(kilobytes) - math.log10(DECADES[0])) / (math.log10(DECADES[-1]) - math.log10(DECADES[0]))
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def draw() -> str:
    """The picture as SVG, with colours for light and dark pages of its own."""
    alone, drawn = measure_alone(), sorted([*list_own(), *list_networks()], key=lambda series: -series.last.accuracy)
    shares = [alone, *(point.accuracy for series in drawn for point in series.points)]
    low, high = 5 * math.floor(min(shares) / 5), 5 * math.ceil(max(shares) / 5)

    def upwards(accuracy: float) -> float:
        return HEIGHT - BOTTOM - (accuracy - low) / (high - low) * (HEIGHT - BOTTOM - TOP)

    parts = [f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="6"/>']
    parts.append(
        text(LEFT, 24, "CIFAR-10, 100 clients, Dirichlet 0.1: mean accuracy of clients' own models, %", "title")
    )
    for accuracy in range(low, high + 1, 5):
        parts.append(line(LEFT, upwards(accuracy), WIDTH - RIGHT, upwards(accuracy), "grid"))
        parts.append(text(LEFT - 8, upwards(accuracy) + 4, str(accuracy), "small", "end"))
    for decade in DECADES:
        parts.append(line(across(decade), TOP, across(decade), HEIGHT - BOTTOM, "grid"))
        words = f"{decade} kB" if decade < 1000 else f"{decade // 1000} MB"
        parts.append(text(across(decade), HEIGHT - BOTTOM + 18, words, "small", "middle"))
    parts.append(text(WIDTH / 2, HEIGHT - 14, "sent and received by one client over the whole run", "small", "middle"))
    parts.append(line(LEFT, upwards(alone), WIDTH - RIGHT, upwards(alone), "alone"))
    parts.append(text(LEFT + 8, upwards(alone) + 15, f"learning alone, nothing sent: {alone:.1f}", "small"))
    ends = [(across(point.kilobytes), upwards(point.accuracy)) for series in drawn for point in series.points]
    taken, labels = [Box(x - 4, y, 8) for x, y in ends], list[str]()
    for series in drawn:
        kind = "ours" if series.is_ours else "other"
        places = [(across(point.kilobytes), upwards(point.accuracy)) for point in series.points]
        for (x1, y1), (x2, y2) in pairwise(places):
            parts.append(line(x1, y1, x2, y2, f"{kind}-way"))
        for x, y in places:
            parts.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>')
        box = place(*places[-1], LETTER * len(tell(series)), taken)
        taken.append(box)
        labels.append(text(box.x, box.y + 4, tell(series), f"{kind} label"))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
    return "\n".join(
        [head, f"<title>{list_words(drawn, alone)}</title>", f"<style>{STYLE}</style>", *parts, *labels, "</svg>\n"]
    )


class Box(NamedTuple):
    """Where words stand: their left end, middle and width."""

    x: float
    y: float
    width: float


def place(x: float, y: float, width: float, taken: list[Box]) -> Box:
    """Beside the point if there is room, else above or below it; words stand on no point and on no other words."""
    side = x + GAP if x + GAP + width < WIDTH else x - GAP - width
    middle = min(max(x - width / 2, LEFT + GAP), WIDTH - GAP - width)
    beside = [Box(side, y + step * LINE / 4, width) for step in (0, 1, -1, 2, -2)]
    apart = [Box(middle, y + way * far, width) for far in range(LINE, HEIGHT, LINE) for way in (-1, 1)]
    return next(box for box in [*beside, *apart] if box.y > TOP and not any(meet(box, other) for other in taken))


def meet(one: Box, other: Box) -> bool:
    return abs(one.y - other.y) < LINE and other.x < one.x + one.width and one.x < other.x + other.width


def tell(series: Series) -> str:
    if series.is_ours:
        return f"{series.label}: {series.last.accuracy:.1f} in {tell_size(series.last.kilobytes)}"
    return f"{series.label}, {series.last.rounds} rounds: {series.last.accuracy:.1f}"


def list_words(drawn: list[Series], alone: float) -> str:
    """The picture for those who do not see it."""
    return f"Percent of clients' own test examples. Alone {alone:.1f}; " + "; ".join(map(tell, drawn))


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def text(x: float, y: float, words: str, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'
