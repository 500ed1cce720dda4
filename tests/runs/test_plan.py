"""Plans: which runs in which folders, and which settings for which method."""

from dataclasses import replace
from pathlib import Path

import pytest

from laconic.fleets.base import OverBudget
from laconic.runs.config import ConfigError, find_method, read_config, write_config
from laconic.runs.plan import check_all, check_free, go_on, plan_comparison, plan_seeds, turn_down

OUT = Path("out")


def test_one_seed_runs_in_the_folder_itself_and_several_beside_each_other() -> None:
    config = read_config(None, ["seed=7"])
    assert plan_seeds(config, [], OUT) == {OUT: config}
    assert plan_seeds(config, [3], OUT) == {OUT: replace(config, seed=3)}
    assert list(plan_seeds(config, [3, 4], OUT)) == [OUT / "seed-3", OUT / "seed-4"]


def test_new_folders_are_named_after_time_method_data_and_settings() -> None:
    (folder,) = plan_seeds(read_config(None, ["data.name=/tmp/mine.npz"]), [], None)
    time, method, data, digest = folder.name.rsplit("_", 3)
    assert (str(folder.parent), method, data, len(time), len(digest)) == ("runs", "fedtm", "mine", 17, 4)
    (other,) = plan_seeds(read_config(None, ["data.name=/tmp/mine.npz", "rounds=3"]), [], None)
    assert other.name.rsplit("_", 1)[1] != digest


def test_settings_reach_the_methods_they_are_for() -> None:
    settings = ["fedtm.epochs=7", "method.epochs=3", "method.blend=0.5", "rounds=4"]
    plan = plan_comparison(["local-tm", "fedtm", "local-tm"], None, settings, [], OUT)
    assert list(plan) == [OUT / "local-tm", OUT / "fedtm"]
    alone, together = plan.values()
    assert alone.method == find_method("local-tm")(epochs=3)
    assert together.method == find_method("fedtm")(epochs=7, blend=0.5)  # what names the method counts more
    assert (alone.rounds, alone.data) == (together.rounds, together.data) == (4, alone.data)


def test_a_file_speaks_of_the_method_it_names_and_of_the_data_of_all(tmp_path: Path) -> None:
    (tmp_path / "exp.toml").write_text('[method]\nname = "fedtm"\nblend = 0.7\n[data]\nclients = 5\n')
    alone, together = plan_comparison(["local-tm", "fedtm"], tmp_path / "exp.toml", [], [], OUT).values()
    assert alone.method == find_method("local-tm")()
    assert together.method == find_method("fedtm")(blend=0.7)
    assert alone.data.clients == together.data.clients == 5


def test_a_run_that_a_budget_turned_down_is_still_the_same_run() -> None:
    asked = read_config(None, ["budget=5kB", "method.n_clauses=100"])
    assert turn_down(asked, read_config(None, ["budget=5kB", "method.n_clauses=42"])).method == find_method("fedtm")(
        n_clauses=42
    )
    assert turn_down(asked, read_config(None, ["budget=5kB", "method.n_clauses=200"])) == asked
    free = read_config(None, ["method.n_clauses=100"])
    assert turn_down(free, read_config(None, ["method.n_clauses=42"])) == free


def test_folders_in_use_are_refused(tmp_path: Path) -> None:
    check_free(tmp_path / "new")
    check_free(tmp_path)
    (tmp_path / "config.toml").write_text(write_config(read_config(None, ["rounds=3"])))
    with pytest.raises(ConfigError, match="laconic run --resume"):
        check_free(tmp_path)
    with pytest.raises(ConfigError, match="other settings"):
        go_on(read_config(None, ["rounds=3", "seed=1"]), tmp_path, None)
    with pytest.raises(ConfigError, match="it can get more, not as few as 2"):
        go_on(read_config(None, ["rounds=2"]), tmp_path, None)


def test_a_comparison_is_refused_whole_before_anything_runs(tmp_path: Path) -> None:
    settings = ["data.clients=3", "rounds=1"]
    plan = plan_comparison(["local-tm", "fedtm"], None, [*settings, "budget=100B"], [], tmp_path / "both")
    with pytest.raises(OverBudget, match="below the least that fedtm can do with"):
        check_all(plan)
    (tmp_path / "full" / "fedtm").mkdir(parents=True)
    (tmp_path / "full" / "fedtm" / "thesis.tex").touch()
    with pytest.raises(ConfigError, match="is not empty"):
        check_all(plan_comparison(["local-tm", "fedtm"], None, settings, [], tmp_path / "full"))
    assert not (tmp_path / "both").exists()
