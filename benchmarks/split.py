"""Redraws CS-pFedTM's Figures 1 and 2: does similarity of machines tell likeness of data, and does the split matter?

    python benchmarks/split.py likeness [SETTING=VALUE ...]     Figure 2, trained here: a minute
    python benchmarks/split.py curve RUN...                     Figure 1, from runs that differ in method.n_shared

Both write docs/results/NAME.svg and NAME.json. The runs of Figure 1, for each ALPHA of 0.05, 0.1, 1 and n of 0, 10, 25,
50, 75, 100; and once without n_shared, which is the split that the rule picks:

    laconic run experiments/cs-pfedtm-split.toml --set data.alpha=ALPHA --set method.n_shared=n
"""

import json
import sys
import tomllib
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from laconic.algorithm import Site
from laconic.algorithms.tsetlin.cs_pfedtm import CSpFedTM
from laconic.runs.config import read_config
from laconic.runs.prepare import prepare
from laconic.wire import EMPTY

ROOT = Path(__file__).parent.parent
ALPHAS = (0.05, 0.1, 0.3, 1.0, 10.0)
KINDS = ("clause", "clause-unmasked", "bit")  # of similarity; the first is the method's default
COLOURS = ("#0b6e99", "#c2571a", "#4f7d2c", "#7d4fa0", "#8a6d1d")
WIDTH, HEIGHT, MARGIN = 380, 300, 52  # of a panel, in pixels


# ---------------------------------------------------------------- drawing
class Series(NamedTuple):
    label: str
    points: Sequence[tuple[float, float]]
    is_line: bool = False
    mark: tuple[float, float] | None = None  # a point to be seen first


class Panel(NamedTuple):
    x_label: str
    y_label: str
    series: Sequence[Series]


def draw(panels: Sequence[Panel], path: Path) -> None:
    """Panels side by side, series in the same colours, one legend below."""
    parts = [piece for place, panel in enumerate(panels) for piece in draw_panel(panel, place * WIDTH)]
    for place, series in enumerate(panels[0].series):
        x = MARGIN + place * 120
        parts.append(f'<circle cx="{x}" cy="{HEIGHT + 14}" r="5" fill="{COLOURS[place]}"/>')
        parts.append(f'<text x="{x + 10}" y="{HEIGHT + 18}">{series.label}</text>')
    width, height = WIDTH * len(panels), HEIGHT + 30
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    style = 'font-family="sans-serif" font-size="12" fill="#222">'
    path.write_text(
        "\n".join([f"{head} {style}", '<rect width="100%" height="100%" fill="#fff"/>', *parts, "</svg>\n"])
    )


def draw_panel(panel: Panel, left: float) -> list[str]:
    points = np.array([point for series in panel.series for point in series.points])
    (x_ticks, y_ticks), right, bottom = (choose_ticks(points[:, axis]) for axis in (0, 1)), WIDTH - 12, HEIGHT - MARGIN

    def place(x: float, y: float) -> tuple[float, float]:
        across = (x - x_ticks[0]) / (x_ticks[-1] - x_ticks[0])
        up = (y - y_ticks[0]) / (y_ticks[-1] - y_ticks[0])
        return round(left + MARGIN + across * (right - MARGIN), 1), round(bottom - up * (bottom - 16), 1)

    parts = []
    for tick in y_ticks:
        x, y = place(x_ticks[0], tick)
        parts.append(f'<path d="M{x} {y}H{left + right}" stroke="#ddd"/>')
        parts.append(f'<text x="{x - 6}" y="{y + 4}" text-anchor="end">{tick:g}</text>')
    for tick in x_ticks:
        x, y = place(tick, y_ticks[0])
        parts.append(f'<text x="{x}" y="{y + 18}" text-anchor="middle">{tick:g}</text>')
    parts.append(
        f'<text x="{left + (MARGIN + right) / 2}" y="{bottom + 38}" text-anchor="middle">{panel.x_label}</text>'
    )
    middle = f"{left + 14} {(bottom + 16) / 2}"
    parts.append(f'<text transform="translate({middle}) rotate(-90)" text-anchor="middle">{panel.y_label}</text>')
    for series, colour in zip(panel.series, COLOURS, strict=False):
        placed = [place(*point) for point in series.points]
        if series.is_line:
            line = "L".join(f"{x} {y}" for x, y in placed)
            parts.append(f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        radius, opacity = (3, 1) if series.is_line else (2.2, 0.35)
        parts += [f'<circle cx="{x}" cy="{y}" r="{radius}" fill="{colour}" opacity="{opacity}"/>' for x, y in placed]
        if series.mark:
            x, y = place(*series.mark)
            parts.append(f'<circle cx="{x}" cy="{y}" r="7" fill="{colour}" stroke="#222" stroke-width="2"/>')
    return parts


def choose_ticks(values: "np.ndarray[Any, Any]") -> list[float]:
    """Round numbers from below the least value to above the largest, four to nine of them."""
    low, high = float(values.min()), float(values.max())
    exact = (high - low) / 5 or 1.0
    step = next(s for s in (m * 10.0**e for e in range(-4, 5) for m in (1, 2, 5)) if s >= exact)
    first, last = int(np.floor(low / step + 1e-9)), int(np.ceil(high / step - 1e-9))
    return [round(k * step, 6) for k in range(first, last + 1)]


# ---------------------------------------------------------------- Figure 2
def measure_likeness(settings: Sequence[str]) -> dict[str, Any]:
    """[pair] of clients, for each alpha: how alike their labels are, and how alike their reference machines."""
    result: dict[str, Any] = {"settings": list(settings), "alphas": {}}
    for alpha in ALPHAS:
        more = [f"data.alpha={alpha}", "method.n_shared=none", *settings]
        config = read_config(ROOT / "experiments" / "cs-pfedtm-fashion-mnist.toml", more)
        prepared = prepare(config)
        pairs: dict[str, list[float]] = {}
        labels = [prepared.source.at(client, 0)[0].y for client in range(prepared.task.n_clients)]
        counts = [np.bincount(y, minlength=prepared.task.n_classes) for y in labels]
        pairs["label_jaccard"] = [share_common(a > 0, b > 0) for a, b in combinations(counts, 2)]
        # labels have no order: to carry an example to any other class costs 1, and Wasserstein is total variation
        pairs["wasserstein"] = [float(abs(a / a.sum() - b / b.sum()).sum() / 2) for a, b in combinations(counts, 2)]
        for kind in KINDS:
            method = CSpFedTM(**{**vars(config.method), "similarity": kind})
            used = []
            for client in range(prepared.task.n_clients):
                train, val, _ = prepared.source.at(client, 0)
                site = Site(client, 0, train, val, np.random.default_rng([config.seed, client]))
                used.append(method.train_reference(method.start_client(prepared.task, site), EMPTY, site).used)
            pairs[kind] = [share_common(a, b) for a, b in combinations(used, 2)]
        result["alphas"][alpha] = pairs
    return result


def share_common(a: Any, b: Any) -> float:
    either = np.count_nonzero(a | b)
    return float(np.count_nonzero(a & b) / either) if either else 0.0


def draw_likeness(settings: Sequence[str]) -> None:
    measured = measure_likeness(settings)
    rng = np.random.default_rng(0)
    panels = []
    for x, label in (
        ("label_jaccard", "Jaccard similarity of label sets"),
        ("wasserstein", "Wasserstein, label shares"),
    ):
        series = []
        for alpha, pairs in measured["alphas"].items():
            some = rng.choice(len(pairs[x]), 150, replace=False)
            series.append(Series(f"α = {alpha:g}", [(pairs[x][k], pairs["clause"][k]) for k in some]))
        panels.append(Panel(label, "similarity of machines", series))
    draw(panels, ROOT / "docs" / "results" / "likeness.svg")
    everything = {
        key: np.concatenate([p[key] for p in measured["alphas"].values()])
        for key in ("label_jaccard", "wasserstein", *KINDS)
    }
    summary = {
        "settings": measured["settings"],
        "means": {
            f"{alpha:g}": {key: round(float(np.mean(values)), 4) for key, values in pairs.items()}
            for alpha, pairs in measured["alphas"].items()
        },
        "correlation_over_pairs": {
            kind: {
                x: round(float(np.corrcoef(everything[x], everything[kind])[0, 1]), 3)
                for x in ("label_jaccard", "wasserstein")
            }
            for kind in KINDS
        },
        "n_pairs_per_alpha": len(measured["alphas"][ALPHAS[0]]["clause"]),
    }
    write_json("likeness", summary)


# ---------------------------------------------------------------- Figure 1
def draw_curve(folders: Sequence[str]) -> None:
    rows = [read_run(Path(folder)) for folder in folders]
    series = []
    for alpha in sorted({row["alpha"] for row in rows}):
        mine = sorted((row for row in rows if row["alpha"] == alpha), key=lambda row: row["n_shared"])
        points = [(1 - row["n_shared"] / row["n_clauses"], 100 * row["accuracy_best"]) for row in mine]
        picked = [point for point, row in zip(points, mine, strict=True) if row["is_picked"]]
        series.append(Series(f"α = {alpha:g}", points, is_line=True, mark=picked[0] if picked else None))
    draw([Panel("share of private clauses", "accuracy %, best round", series)], ROOT / "docs" / "results" / "split.svg")
    write_json("split", {"runs": rows})


def read_run(folder: Path) -> dict[str, Any]:
    config = tomllib.loads((folder / "config.toml").read_text())
    done = json.loads((folder / "DONE.json").read_text())
    last = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
    return {
        "alpha": config["data"]["alpha"],
        "seed": config["seed"],
        "n_clauses": config["method"]["n_clauses"],
        "n_shared": int(last["notes"]["n_shared"]),
        "is_picked": config["method"]["n_shared"] == "none",
        "similarity": last["notes"].get("similarity"),
        **{key: done[key] for key in ("accuracy_mean", "accuracy_best", "upload_bytes", "download_bytes", "seconds")},
    }


def write_json(name: str, content: dict[str, Any]) -> None:
    (ROOT / "docs" / "results" / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")
    print(json.dumps(content, indent=1))


if __name__ == "__main__":
    {"likeness": draw_likeness, "curve": draw_curve}[sys.argv[1]](sys.argv[2:])
