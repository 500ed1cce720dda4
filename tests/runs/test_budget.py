import json
from pathlib import Path

import pytest

from laconic.algorithm import Task
from laconic.algorithms.networks.fed_proto import FedProto
from laconic.algorithms.tsetlin.fed_tm import FedTM
from laconic.fleets.base import OverBudget
from laconic.runs.budget import keep_budget, most_bytes
from laconic.runs.check import check
from laconic.runs.config import read_config
from laconic.runs.plan import go_on
from laconic.runs.run import run
from laconic.runs.typed_toml import ConfigError

SETTINGS = ["method.name=fedtm", "method.epochs=2", "data.clients=4", "rounds=3"]


def bytes_by_client_and_round(folder: Path) -> dict[tuple[int, int], int]:
    spent: dict[tuple[int, int], int] = {}
    for line in (folder / "traffic.jsonl").read_text().splitlines():
        row = json.loads(line)
        key = (row["client"], row["round"])
        spent[key] = spent.get(key, 0) + row["sent_bytes"]
    return spent


@pytest.mark.parametrize("budget", ["3kB", "20kB", "1MB"])
def test_no_client_ever_exceeds_the_budget(budget: str, tmp_path: Path) -> None:
    run(read_config(None, [*SETTINGS, f"budget={budget}"]), tmp_path / "run")
    limit = {"3kB": 3000, "20kB": 20_000, "1MB": 10**6}[budget]
    assert 0 < max(bytes_by_client_and_round(tmp_path / "run").values()) <= limit


def test_the_knob_is_turned_no_further_than_need_be_and_that_is_said() -> None:
    task, said = Task((8, 8, 4), 10, 4, levels=4), []
    config = keep_budget(read_config(None, [*SETTINGS, "budget=20kB"]), task, said.append)
    assert isinstance(config.method, FedTM)
    n_clauses = config.method.n_clauses
    bounds = [most_bytes(FedTM(n_clauses=n), task) or 0 for n in (n_clauses, n_clauses + 1)]
    assert bounds[0] <= 20_000 < bounds[1]
    assert f"n_clauses 100 -> {n_clauses}" in said[0]


def test_a_budget_that_cannot_be_kept_is_refused_with_the_least_that_can(tmp_path: Path) -> None:
    with pytest.raises(OverBudget, match=r"Raise the budget to (\d+)") as refusal:
        run(read_config(None, [*SETTINGS, "budget=100B"]), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    least = str(refusal.value).split("Raise the budget to ")[1].split()[0]
    run(read_config(None, [*SETTINGS, f"budget={least}B"]), tmp_path / "least")


def test_sharing_nothing_keeps_any_budget(tmp_path: Path) -> None:
    summary = run(
        read_config(None, ["method.name=local-tm", "data.clients=3", "rounds=1", "budget=1B"]), tmp_path / "a"
    )
    assert (summary.upload_bytes, summary.download_bytes) == (0, 0)


def test_check_foretells_the_papers_count_exactly_and_real_bytes_roughly(tmp_path: Path) -> None:
    config = read_config(None, [*SETTINGS, "rounds=3"])
    foretold = check(config)
    run(config, tmp_path / "run")
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    for key in ("paper_upload_bytes", "paper_download_bytes"):
        assert foretold[key] == rows[2][key]
    for key in ("upload_bytes", "download_bytes"):
        assert rows[2][key] / 3 < foretold[key] < rows[2][key] * 3
    assert foretold["most_bytes_per_client"] > max(bytes_by_client_and_round(tmp_path / "run").values())


def test_a_method_that_keeps_budgets_itself_is_told_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    settings = ["method.name=cs-pfedtm", "method.n_clauses=20", "data.clients=3", "rounds=1", "budget=4kB"]
    config = read_config(None, settings)
    first = go_on(config, tmp_path / "run", None)
    assert "budget_bytes = 4000" in (tmp_path / "run" / "config.toml").read_text()
    assert go_on(config, tmp_path / "run", None) == first
    with pytest.raises(ConfigError, match="other settings"):
        go_on(read_config(None, [*settings, "budget=5kB"]), tmp_path / "run", None)


def test_several_knobs_are_turned_in_turn_the_next_only_when_one_is_at_its_least() -> None:
    task = Task((8, 8), 10, 4)
    settings = ["method.name=fedproto", "method.n_features=100", "method.cps_dims=100"]
    full, half, eighth = (most_bytes(FedProto(n_features=100, kept=kept), task) for kept in ("fp32", "fp16", "int8"))
    turned = {}
    for budget in (full, full - 1, half - 1, eighth - 1):
        said: list[str] = []
        config = keep_budget(read_config(None, [*settings, f"budget={budget}B"]), task, said.append)
        turned[budget] = config.method.kept, config.method.cps_dims
        assert (most_bytes(config.method, task) or 0) <= budget
    assert turned[full] == ("fp32", 100)
    assert turned[full - 1] == ("fp16", 100)
    assert turned[half - 1] == ("int8", 100)
    assert turned[eighth - 1] == ("int8", 99)
    assert "kept fp32 -> int8, cps_dims 100 -> 99" in said[0]
    with pytest.raises(OverBudget, match=r"\(kept = int8, cps_dims = 1\)"):
        keep_budget(read_config(None, [*settings, "budget=30B"]), task, said.append)


def test_a_run_under_a_budget_goes_on_though_its_knobs_were_turned(tmp_path: Path) -> None:
    settings = [
        "method.name=fedproto",
        "method.training.model=mlp",
        "method.n_features=50",
        "data.clients=2",
        "rounds=1",
    ]
    config = read_config(None, [*settings, "budget=1.5kB"])
    first = go_on(config, tmp_path / "run", None)
    assert 'kept = "int8"' in (tmp_path / "run" / "config.toml").read_text()
    assert go_on(config, tmp_path / "run", None) == first
    with pytest.raises(ConfigError, match="other settings"):
        go_on(read_config(None, [*settings, "budget=1.5kB", "method.pull=2"]), tmp_path / "run", None)
