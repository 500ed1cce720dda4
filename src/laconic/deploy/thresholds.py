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
from laconic.models.preprocessing import PlaceQuantiles, Preprocessing, Quantiles, fit_bits
from laconic.runs.config import Config
from laconic.runs.prepare import RULES
from laconic.runs.typed_toml import ConfigError
from laconic.wire import Count, Due, Expected, Floats, Ints, Message, most_bytes

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
    nothing = np.zeros((*task.input_shape, count_levels(rule)), np.float32) if is_fitted(rule) else None
    reading = find_preprocessing(rule, task.input_shape, nothing)
    bits = reading.transform(np.zeros((1, *task.input_shape), np.uint8))
    return replace(task, input_shape=bits.shape[1:], levels=reading.levels)


def find_preprocessing(rule: str, shape: tuple[int, ...], thresholds: NDArray[np.float32] | None) -> Preprocessing:
    """Of raw rows of this shape; thresholds: for a rule that is fitted."""
    if thresholds is not None:
        is_table = thresholds.ndim == 2
        return Quantiles(tuple(map(tuple, thresholds.tolist()))) if is_table else PlaceQuantiles(thresholds)
    try:
        return fit_bits(rule, np.zeros((1, *shape), np.uint8))
    except KeyError:
        raise ConfigError("E102", f'data.booleanize = "{rule}" is unknown; there are {RULES}') from None
    except (ValueError, TypeError) as error:
        raise ConfigError(
            "E150", f'data.booleanize = "{rule}" does not fit examples of shape {shape}: {error}'
        ) from error


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
    shape = parts[0].x.shape[1:]
    reading, one = find_preprocessing(rule, shape, thresholds), np.zeros((1, *shape), parts[0].x.dtype)
    # rules do not look at nothing
    bits = [reading.transform(part.x) if len(part.y) else reading.transform(one)[:0] for part in parts]
    train, val, test = (Examples(x, part.y) for x, part in zip(bits, parts, strict=True))
    return train, val, test


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


def bound_fit(task: Task, rule: str) -> list[float]:
    """Bytes of what the fit sends at most; nothing for a rule that is not fitted."""
    if not is_fitted(rule):
        return []
    values = Due((*task.input_shape, count_levels(rule)))
    return [most_bytes(Sketch, expect_sketch(task)), most_bytes(Thresholds, {"values": values})]


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
