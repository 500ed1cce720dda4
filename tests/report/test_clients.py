import statistics

import pytest
from made_runs import write_run

from laconic.report import describe, read_run
from laconic.report.clients import (
    BIN,
    MOST_COLUMNS,
    MOST_DOTS,
    find_quantile,
    plot_clients,
    plot_fairness,
    plot_gain,
    plot_labels,
)
from laconic.report.matrices import plot_pairs
from laconic.report.tables import group_runs

WARDS = ("north", "south", "east", "west", "centre", "harbour")


def read_groups(*folders):
    return group_runs([read_run(folder) for folder in folders])


def write_seeds(tmp_path, methods=("fedtm", "local-tm"), seeds=(0, 1, 2), **more):
    return [
        write_run(tmp_path / f"{m}{s}", method=m, seed=s, level=0.95 - 0.1 * k, **more)
        for k, m in enumerate(methods)
        for s in seeds
    ]


def test_gains_are_paired_by_client_and_counted(tmp_path):
    alone = write_run(tmp_path / "alone", method="local-tm", level=0.85)
    helped = write_run(tmp_path / "helped", method="fedtm", level=0.95)
    figure = plot_gain(read_groups(helped, alone))
    scores = {folder.name: read_run(folder).scores for folder in (alone, helped)}
    (series,) = figure.views[0]["series"]
    assert series["dots"] == [
        [before.client, pytest.approx(before.accuracy, rel=1e-5), pytest.approx(after.accuracy, rel=1e-5)]
        for before, after in zip(scores["alone"], scores["helped"], strict=True)
    ]
    gains = [after.accuracy - before.accuracy for before, after in zip(*scores.values(), strict=True)]
    n_better, n_worse = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    assert f"of 6 clients {n_better} gain, {n_worse} lose" in series["label"]
    assert figure.tables[0].rows[0][1:4] == (str(n_better), str(n_worse), str(6 - n_better - n_worse))


def test_a_method_is_one_entry_however_many_seeds_it_has(tmp_path):
    groups = read_groups(*write_seeds(tmp_path))
    assert [one["label"] for one in plot_clients(groups).views[0]["rows"]] == ["fedtm", "local-tm"]
    assert len(plot_gain(groups).views[0]["series"]) == 1
    assert [dot[4] for dot in plot_clients(groups).views[0]["rows"][0]["dots"]] == [0] * 6 + [1] * 6 + [2] * 6


def test_the_fairness_curve_is_of_sorted_clients_with_a_band_over_seeds(tmp_path):
    groups = read_groups(*write_seeds(tmp_path))
    series = plot_fairness(groups).views[0]["series"]
    assert [(one["label"], one["has_band"]) for one in series] == [("fedtm", True), ("local-tm", True)]
    ordered = [sorted(s.accuracy for s in run.scores) for run in groups[0].runs]
    for place, point in enumerate(series[0]["points"]):
        values = [values[place] for values in ordered]
        assert point[1] == pytest.approx(place / 5)
        assert point[2:] == pytest.approx([statistics.fmean(values), min(values), max(values)], rel=1e-5)
    lowest = statistics.fmean(values[0] for values in ordered)
    assert plot_fairness(groups).tables[0].rows[0][1] == f"{100 * lowest:.1f}"


def test_one_client_has_no_fairness(tmp_path):
    assert plot_fairness(read_groups(write_run(tmp_path / "run", clients=1))) is None


def test_a_quantile_lies_between_its_neighbours():
    assert [find_quantile([0.0, 1.0, 3.0], share) for share in (0, 0.25, 0.5, 1)] == [0, 0.5, 1, 3]


def test_many_clients_are_counted_in_bins_that_hold_them_all(tmp_path):
    groups = read_groups(write_run(tmp_path / "run", clients=500, rounds=1))
    (row,) = plot_clients(groups).views[0]["rows"]
    shares = [score.accuracy for score in groups[0].runs[0].scores]
    assert len(shares) > MOST_DOTS
    assert sum(n for _, _, n in row["bins"]) == 500
    low, high, n = row["bins"][3]
    assert high - low == pytest.approx(BIN)
    assert n == sum(low - 1e-9 <= share < high - 1e-9 for share in shares)
    assert row["median"] == pytest.approx(statistics.median(shares))
    assert len(plot_labels(groups).views[0]["across"]) == 167


def test_tables_of_clients_are_no_wider_than_a_page(tmp_path):
    folders = write_seeds(tmp_path, [*(f"m{k}" for k in range(9)), "local-tm"], (0,))
    tables = plot_clients(read_groups(*folders)).tables
    assert all(len(cells.headings) <= MOST_COLUMNS + 1 for cells in tables)
    shown = [heading for cells in tables for heading in cells.headings if "\n" in heading]
    assert len(shown) == len(set(shown)) == 10 + 9 + 2 * 9  # accuracies, gains, bytes both ways


def test_clients_go_by_their_names(tmp_path):
    folders = [write_run(tmp_path / method, method=method, names=WARDS) for method in ("fedtm", "local-tm")]
    folders[:1] = [write_run(tmp_path / "split", method="split", names=WARDS, splits=True)]
    groups = read_groups(*folders)
    clients = plot_clients(groups)
    assert [dot[0] for dot in clients.views[0]["rows"][0]["dots"]] == list(WARDS)
    assert [row[0] for row in clients.tables[0].rows] == [(name, k) for k, name in enumerate(WARDS)]
    assert [dot[0] for dot in plot_gain(groups).views[0]["series"][0]["dots"]] == list(WARDS)
    assert plot_labels(groups).views[0]["across"] == list(WARDS)
    assert set(plot_pairs(groups).views[0]["across"]) == set(WARDS)
    described = describe(groups[0].runs[0])["clients"]
    assert [client["name"] for client in described] == list(WARDS)
    assert described[2]["accuracy"] == groups[0].runs[0].scores[2].accuracy
