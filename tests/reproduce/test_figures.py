"""Every published figure has a row, and every row a command or a reason why there is none."""

from collections import Counter

import pytest

from laconic.networks import Spec, layout
from laconic.reproduce.papers.cs_pfedtm import N_WEIGHTS
from laconic.reproduce.published import Figure, read_figures, select
from laconic.reproduce.recipe import SCALES, Impossible, Recipe
from laconic.reproduce.scoreboard import NO_DATA, find_file, list_rows, read_measured
from laconic.reproduce.verdicts import REFUTED, VERDICTS, compare
from laconic.reproduce.ways import PAPERS, find_way
from laconic.runs.config import read_config

RECIPES = [(figure, way) for figure in read_figures() if isinstance(way := find_way(figure), Recipe)]


def test_no_two_figures_have_one_name() -> None:
    assert Counter(figure.name for figure in read_figures()).most_common(1)[0][1] == 1
    assert {figure.paper for figure in read_figures()} == {*PAPERS}


def test_every_row_has_a_command_or_says_why_it_cannot_be_run() -> None:
    for row in list_rows(read_figures(), {}):
        assert row.verdict in VERDICTS
        assert (row.command == "") == (row.verdict == "impossible") or f"{row.paper}:{row.table}:{row.row}" in REFUTED
        assert row.why or row.ours is not None


def test_a_row_that_was_not_run_for_want_of_data_says_so() -> None:
    rows = {f"{row.paper}:{row.table}:{row.row}": row for row in list_rows(read_figures(), {})}
    assert rows["pbfl:1:fedproto/cifar100/0.1"].why.startswith("CIFAR-100 could not be had")
    assert NO_DATA not in rows["pbfl:1:fedproto/cifar10/0.1"].why


def test_a_command_names_its_row_and_no_other() -> None:
    for figure in read_figures():
        if not isinstance(find_way(figure), Impossible):
            assert select(figure.name) == [figure]


def test_rows_that_share_runs_share_their_settings() -> None:
    begun: dict[str, Recipe] = {}
    for figure, recipe in RECIPES:
        first = begun.setdefault(recipe.run, recipe)
        assert all(first.settings_at(scale) == recipe.settings_at(scale) for scale in SCALES), figure.name


def test_settings_of_all_scales_are_settings_that_there_are() -> None:
    """One of each kind: reading them all would take a while."""
    kinds = {(recipe.settings[0], *(each.split("=")[0] for each in recipe.settings)): recipe for _, recipe in RECIPES}
    for recipe in kinds.values():
        rounds = {scale: read_config(None, recipe.settings_at(scale)).rounds for scale in SCALES}
        assert rounds["small"] <= rounds["paper"] == recipe.rounds


def test_sizes_of_networks_that_storage_is_computed_from_are_right() -> None:
    shapes = {"emnist": ((28, 28), 62), "cifar100": ((32, 32, 3), 100), "tiny_imagenet": ((32, 32, 3), 200)}
    for data, n_weights in N_WEIGHTS.items():
        assert layout(Spec("cnn-fedpac", *shapes.get(data, ((32, 32, 3), 10)))).n_trained == n_weights


# ---------------------------------------------------------------- choosing
def test_rows_are_chosen_by_paper_table_and_how_they_begin() -> None:
    assert len(select("")) == len(read_figures())
    assert {figure.paper for figure in select("fedtm")} == {"fedtm"}
    assert {figure.table for figure in select("fedtm:III")} == {"III"}
    assert {figure.parts[:2][1] for figure in select("fedpurin:1:fedavg/cifar10")} == {"cifar10"}


@pytest.mark.parametrize(
    ("wanted", "told"),
    [("fedpurine", "fedpurin"), ("fedtm:IX", "there is no table"), ("fedpurin:1:fedavgg", "there is no row")],
)
def test_what_is_not_there_is_told_with_what_is(wanted: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        select(wanted)


# ---------------------------------------------------------------- verdicts
@pytest.mark.parametrize(
    ("unit", "published", "ours", "verdict"),
    [
        ("%", 77.15, 77.15, "reached"),
        ("%", 96.88, 96.875, "reached"),  # printed with two digits
        ("%", 77.15, 75.66, "near"),
        ("%", 77.15, 75.6, "missed"),
        ("MiB", 2.44, 2.3, "reached"),
        ("MiB", 0.13, 0.1349, "reached"),  # which would be printed as 0.13
        ("MiB", 0.13, 0.1351, "near"),
        ("MB", 101.0, 101.6, "near"),
        ("MiB", 2.44, 2.5, "near"),
        ("MiB", 2.44, 2.6, "missed"),
        ("clauses", 13.0, 13.0, "reached"),
        ("clauses", 13.0, 11.0, "near"),
        ("clauses", 13.0, 10.0, "missed"),
        ("variance", 0.004, 0.003, "reached"),
    ],
)
def test_verdicts_go_by_the_gap(unit: str, published: float, ours: float, verdict: str) -> None:
    assert compare(Figure("p", "1", "r", published, unit, None, ""), ours)[0] == verdict


def test_every_result_on_the_board_is_of_a_figure_that_can_be_run_and_names_rounds_and_commit() -> None:
    runnable = {figure.name for figure, _ in RECIPES}
    for name, found in read_measured(find_file()).items():
        assert name in runnable
        assert found.commit
        assert found.rounds
        assert len(found.values) == len(found.seeds)
