"""Thresholds fitted over nodes from sketches of a few bytes, and what becomes of numbers by rules that need no fit."""

import numpy as np
import pytest

from laconic import wire
from laconic.algorithm import Examples, Task
from laconic.deploy.thresholds import (
    choose_rule,
    expect_sketch,
    find_task,
    make_bits,
    make_sketch,
    merge,
    read_thresholds,
    write_thresholds,
)
from laconic.runs.config import read_config
from laconic.runs.typed_toml import ConfigError

RAW = Task((5,), 2, 3)


def make_values(seed: int, n_examples: int, shift: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.gamma(2, [1, 10, 0.1, 5, 1], (n_examples, 5)) * [1, 1, 1, 0, 1] + shift


def test_merged_sketches_cut_where_the_pooled_examples_would_be_cut() -> None:
    """Nodes of unlike sizes and places: each level has its share of all examples, within a twentieth."""
    nodes = [make_values(seed, n, shift) for seed, n, shift in ((0, 400, 0.0), (1, 60, 3.0), (2, 900, 0.5))]
    thresholds = merge([make_sketch(x) for x in nodes], RAW, "quantile:4").values
    assert thresholds.shape == (5, 4)
    assert (np.diff(thresholds, axis=1) >= 0).all()
    below = np.array([np.mean(np.vstack(nodes) <= thresholds[:, level], axis=0) for level in range(4)])
    varied = [0, 1, 2, 4]  # the fourth is a constant at each node
    assert np.abs(below[:, varied] - np.array([[0.2], [0.4], [0.6], [0.8]])).max() < 0.05


def test_a_sketch_takes_about_fourteen_bytes_a_value_and_tells_no_extreme() -> None:
    x = make_values(0, 400, 0.0)
    sketch = make_sketch(x)
    assert wire.size(sketch) <= 15 * 5 + 20
    assert (sketch.low > x.min(axis=0))[[0, 1, 2, 4]].all()
    assert (sketch.high < x.max(axis=0))[[0, 1, 2, 4]].all()
    data = wire.encode(sketch)
    assert wire.decode(type(sketch), data, expected=expect_sketch(RAW)).n_examples == 400
    with pytest.raises(ValueError, match="low"):
        wire.decode(type(sketch), data, expected=expect_sketch(Task((6,), 2, 3)))


def test_a_node_without_examples_changes_nothing() -> None:
    x = make_values(0, 50, 0.0)
    alone, beside = (merge([make_sketch(x), *more], RAW, "quantile:2") for more in ([], [make_sketch(x[:0])]))
    assert np.array_equal(alone.values, beside.values)
    with pytest.raises(ValueError, match="no node has examples"):
        merge([make_sketch(x[:0])], RAW, "quantile:2")


@pytest.mark.parametrize(
    ("raw", "rule", "shape", "levels"),
    [
        ((5,), "none", (5,), 1),
        ((5,), "quantile:3", (15,), 1),
        ((5,), "threshold:2", (5,), 1),
        ((4, 4), "quantile:3", (4, 4, 3), 3),
        ((4, 4, 2), "thermometer:8", (4, 4, 16), 8),
    ],
)
def test_both_ends_work_out_what_the_method_sees(
    raw: tuple[int, ...], rule: str, shape: tuple[int, ...], levels: int
) -> None:
    task = find_task(Task(raw, 2, 3), rule)
    assert (task.input_shape, task.levels) == (shape, levels)
    x = np.arange(7 * np.prod(raw)).reshape(7, *raw).astype(np.uint8)
    parts = (Examples(x, np.zeros(7, np.int64)),) * 3
    thresholds = merge([make_sketch(x)], Task(raw, 2, 3), rule).values if rule.startswith("quantile") else None
    for part in make_bits(parts, rule, thresholds):
        assert part.x.shape == (7, *shape)
    nothing = (Examples(x[:0], np.zeros(0, np.int64)),) * 3
    assert make_bits(nothing, rule, thresholds)[0].x.shape == (0, *shape)


def test_values_are_cut_one_after_the_other_levels_ascending() -> None:
    thresholds = np.array([[0.0, 2.0], [10.0, 30.0]], np.float32)
    parts = (Examples(np.array([[1.0, 20.0]]), np.zeros(1, np.int64)),) * 3
    assert make_bits(parts, "quantile:2", thresholds)[0].x.tolist() == [[1, 0, 1, 0]]


def test_a_rule_that_is_none_is_refused_in_words() -> None:
    with pytest.raises(ConfigError, match=r'data.booleanize = "quintile:3" is unknown'):
        find_task(RAW, "quintile:3")
    with pytest.raises(ValueError, match="quantile:1 to quantile:32 was expected"):
        find_task(RAW, "quantile:0")


def test_examples_that_were_dealt_out_are_bits_already() -> None:
    config = read_config(None, ["data.booleanize=quantile:3"])
    assert choose_rule(config, is_nodes_own=True).data.booleanize == "quantile:3"
    assert choose_rule(config, is_nodes_own=False).data.booleanize == "none"
    assert choose_rule(read_config(None), is_nodes_own=True).data.booleanize == "none"


def test_thresholds_are_kept_in_the_runs_folder(tmp_path) -> None:
    values = np.arange(6, dtype=np.float32).reshape(3, 2)
    assert read_thresholds(tmp_path) is None
    write_thresholds(tmp_path, values)
    assert np.array_equal(read_thresholds(tmp_path), values)
