"""What `laconic check` foretells."""

import json
from pathlib import Path

import pytest

from laconic.algorithms import METHODS
from laconic.runs.check import check
from laconic.runs.config import read_config
from laconic.runs.run import run

NETWORKS = [name for name, method in METHODS.items() if method.family == "networks"]


@pytest.mark.parametrize("method", NETWORKS)
def test_a_network_is_not_trained_in_full_to_tell_how_long_that_takes(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laconic.runs.check.TRAIN_SECONDS", 0.0)
    small = ["method.training.model=resnet-small", "method.training.steps=0", "data.clients=3"]
    found = check(read_config(None, [f"method.name={method}", "method.training.epochs=1000000", *small]))
    assert found["seconds_per_round"] > 1_000


def test_something_is_trained_so_that_there_are_changes_to_send() -> None:
    assert check(read_config(None, ["method.name=fedavg"]))["upload_bytes"] > 50_000


def test_what_a_run_would_refuse_is_refused() -> None:
    with pytest.raises(ValueError, match="so fedbn would be fedavg"):
        check(read_config(None, ["method.name=fedbn", "method.training.model=mlp"]))


def test_what_is_done_once_is_counted_once() -> None:
    found = check(read_config(None, ["method.name=clausepool", "method.epochs=3000", "rounds=100"]))
    assert found["seconds_first_round"] > 10 * found["seconds_per_round"]
    assert found["seconds_total"] < found["seconds_first_round"] + 100 * found["seconds_per_round"]


@pytest.mark.parametrize("method", ["fedavg", "fedtm", "clausepool", "fedproto", "fedpurin"])
def test_bytes_of_a_round_are_those_of_a_real_one_where_there_is_time_to_train(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laconic.runs.check.TRAIN_SECONDS", 600.0)
    small = ["method.epochs=2"] if method in ("fedtm", "clausepool") else []
    config = read_config(None, [f"method.name={method}", "rounds=2", *small])
    found = check(config)
    run(config, tmp_path / "run")
    last = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    is_close = 1.5 if small else 1.0  # a machine that is trained in pieces ends a little different
    for key in ("upload_bytes", "download_bytes"):
        assert last[key] / is_close <= found[key] <= last[key] * is_close
