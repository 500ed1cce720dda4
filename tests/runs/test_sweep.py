import json
import subprocess
import sys
from pathlib import Path

import pytest

from laconic.runs.sweep import plan_sweep
from laconic.runs.typed_toml import ConfigError

SMALL = ["method.name=local-tm", "rounds=1", "method.epochs=1", "method.n_clauses=10", "data.clients=2"]


def test_every_choice_has_a_folder_named_by_it(tmp_path: Path) -> None:
    plan = plan_sweep(None, SMALL, ["data.alpha=0.1,1", "method.epochs=1,2"], [0, 1], tmp_path)
    names = ["alpha-0.1_epochs-1", "alpha-0.1_epochs-2", "alpha-1_epochs-1", "alpha-1_epochs-2"]
    assert [folder.relative_to(tmp_path).as_posix() for folder in plan] == [
        f"{name}/seed-{seed}" for name in names for seed in (0, 1)
    ]
    assert {(config.data.alpha, config.method.epochs) for config in plan.values()} == {
        (0.1, 1),
        (0.1, 2),
        (1, 1),
        (1, 2),
    }


def test_commas_in_brackets_are_part_of_a_value(tmp_path: Path) -> None:
    plan = plan_sweep(None, SMALL, ["data.features=[],['a','b']"], [], tmp_path)
    assert [config.data.features for config in plan.values()] == [(), ("a", "b")]


@pytest.mark.parametrize(
    ("over", "words"),
    [([], "needs something to go over"), (["data.alpha"], "must be key=value,value"), (["a.b=1"], "unknown section a")],
)
def test_what_cannot_be_gone_over_is_refused(over: list[str], words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        plan_sweep(None, SMALL, over, [], tmp_path)


def test_the_command_runs_all_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    given = [word for setting in SMALL for word in ("--set", setting)]
    command = [sys.executable, "-m", "laconic", "sweep", "--over", "data.alpha=0.1,1", "seed=0", *given, "--json"]
    once = subprocess.run([*command, "--out", "all"], cwd=tmp_path, capture_output=True, check=True)
    again = subprocess.run([*command, "--out", "all"], cwd=tmp_path, capture_output=True, check=True)
    assert len(json.loads(once.stdout)) == 2
    assert [run["accuracy_mean"] for run in json.loads(again.stdout)] == (
        [run["accuracy_mean"] for run in json.loads(once.stdout)]
    )
    assert (tmp_path / "all" / "report.html").exists()
