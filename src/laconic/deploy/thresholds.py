"""Numbers that nodes bring, as bits: by rules that everyone can work out, or by thresholds fitted over all nodes.

data.booleanize = "quantile:4" asks each node for a sketch, eight quantiles of each value in about fourteen bytes; the
server merges them, weighted by examples, and gives all nodes the same thresholds, which the run folder keeps.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.algorithm import Examples, Task
from laconic.files import write_atomically
from laconic.fleets.source import Parts
from laconic.runs.config import Config
from laconic.runs.prepare import booleanize_by
from laconic.wire import Count, Due, Expected, Floats, Ints, Message

FILE = "thresholds.npz"  # in a run's folder, at the server and at each node: thresholds [..., level]
N_POINTS, N_STEPS = 8, 255  # quantiles of a sketch; steps in which those between the outermost are told
FITTED = "quantile"


class Sketch(Message):
    low: Floats  # [value] the outermost quantiles, one sixteenth from each end: no example is told as it is
    high: Floats
    between: Ints  # [value, point] those between them, in steps from low to high
    n_examples: Count


class Thresholds(Message):
    values: Floats  # [..., level] ascending


def choose_rule(config: Config, *, is_nodes_own: bool) -> Config:
    """With data.booleanize as nodes have to do it: examples that were dealt out have been through it."""
    is_due = is_nodes_own and config.method.takes == "bits" and config.data.booleanize != "auto"
    return replace(config, data=replace(config.data, booleanize=config.data.booleanize if is_due else "none"))


def find_task(task: Task, rule: str) -> Task:
    """As the method sees it. ValueError for a rule that is none, or not for such examples."""
    if rule == "none":
        return task
    zeros = np.zeros((1, *task.input_shape), np.uint8)
    if is_fitted(rule):
        bits = apply(zeros, np.zeros((*task.input_shape, count_levels(rule))))
        levels = 1 if len(task.input_shape) == 1 else count_levels(rule)
    else:
        bits, levels = booleanize_by(rule, zeros)
    return replace(task, input_shape=bits.shape[1:], levels=levels)


def is_fitted(rule: str) -> bool:
    return rule.partition(":")[0] == FITTED


def count_levels(rule: str) -> int:
    levels = rule.partition(":")[2] or "4"
    if not levels.isdigit() or not 1 <= int(levels) <= 32:
        raise ValueError(f'data.booleanize = "{rule}"; quantile:1 to quantile:32 was expected')
    return int(levels)


def make_bits(parts: Parts, rule: str, thresholds: NDArray[np.float32] | None) -> Parts:
    """thresholds: for a rule that is fitted."""
    if rule == "none":
        return parts
    bits = [booleanize_by(rule, part.x)[0] if thresholds is None else apply(part.x, thresholds) for part in parts]
    train, val, test = (Examples(x, part.y) for x, part in zip(bits, parts, strict=True))
    return train, val, test


def apply(x: NDArray[Any], thresholds: NDArray[np.floating[Any]]) -> NDArray[np.uint8]:
    """[example, value * level], or [row, column, layer * level] of images: value by value, levels ascending."""
    above = (x[..., None].astype(np.float32) > thresholds).view(np.uint8)
    places = x.shape[1:3] if x.ndim > 2 else ()
    return above.reshape(len(x), *places, thresholds.size // int(np.prod(places)))


# ---------------------------------------------------------------- the fit
def make_sketch(x: NDArray[Any]) -> Sketch:
    n_values = int(np.prod(x.shape[1:]))
    if not len(x):
        nothing = np.zeros(n_values, np.float32)
        return Sketch(nothing, nothing, np.zeros((n_values, N_POINTS - 2), np.uint8), 0)
    points = np.quantile(x.reshape(len(x), -1).astype(np.float32), _shares(N_POINTS), axis=0).T
    low, high = points[:, :1], points[:, -1:]
    places = (points[:, 1:-1] - low) / np.where(high > low, high - low, 1)
    steps = np.rint(places * N_STEPS).astype(np.uint8)
    return Sketch(low[:, 0].astype(np.float32), high[:, 0].astype(np.float32), steps, len(x))


def expect_sketch(task: Task) -> Expected:
    n_values = int(np.prod(task.input_shape))
    between = Due((n_values, N_POINTS - 2), N_STEPS)
    return {"low": Due((n_values,)), "high": Due((n_values,)), "between": between, "n_examples": Due(())}


def merge(sketches: Sequence[Sketch], task: Task, rule: str) -> Thresholds:
    """Quantiles of all nodes' examples together, as far as the sketches tell."""
    sketches = [sketch for sketch in sketches if sketch.n_examples]
    if not sketches:
        raise ValueError("no node has examples to fit thresholds on")
    points = np.concatenate([_read_points(sketch) for sketch in sketches], axis=1)  # [value, point of any node]
    weights = np.repeat([sketch.n_examples for sketch in sketches], N_POINTS).astype(np.float64)
    order = np.argsort(points, axis=1, kind="stable")
    points, weights = np.take_along_axis(points, order, 1), weights[order]
    below = np.cumsum(weights, axis=1) - weights / 2
    n_levels = count_levels(rule)
    due = np.arange(1, n_levels + 1) / (n_levels + 1)
    rows = [np.interp(due * w.sum(), b, p) for p, w, b in zip(points, weights, below, strict=True)]
    return Thresholds(np.array(rows, np.float32).reshape(*task.input_shape, n_levels))


def _read_points(sketch: Sketch) -> NDArray[np.float64]:
    low, high = sketch.low[:, None].astype(np.float64), sketch.high[:, None].astype(np.float64)
    return np.hstack([low, low + sketch.between / N_STEPS * (high - low), high])


def _shares(n_points: int) -> NDArray[np.float64]:
    return (np.arange(n_points) + 0.5) / n_points


# ---------------------------------------------------------------- in a run's folder
def write_thresholds(folder: Path, thresholds: NDArray[np.floating[Any]]) -> None:
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, thresholds=thresholds)
    write_atomically(folder / FILE, file.getvalue())


def read_thresholds(folder: Path) -> NDArray[np.float32] | None:
    """None: none were fitted there."""
    if not (folder / FILE).exists():
        return None
    with np.load(folder / FILE, allow_pickle=False) as found:
        return np.asarray(found["thresholds"], np.float32)
