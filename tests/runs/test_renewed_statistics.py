"""`renew_statistics`: before a test, batch normalisation looks at a client's own training examples."""

import json
from pathlib import Path

import numpy as np
import pytest

from laconic.runs.client_models import read_client
from laconic.runs.config import read_config
from laconic.runs.prepare import prepare
from laconic.runs.run import run
from laconic.runs.typed_toml import ConfigError

SMALL = [
    "method.name=fedavg",
    "method.training.model=resnet-small",
    "method.training.statistics=local",
    "data.clients=3",
    "rounds=2",
    "fleet.workers=1",
]


def records(folder: Path, name: str) -> list[str]:
    return (folder / name).read_text().splitlines()


def test_renewing_changes_what_is_tested_and_neither_bytes_nor_training(tmp_path: Path) -> None:
    for name, renews in (("plain", "false"), ("renewed", "true")):
        run(read_config(None, [*SMALL, f"renew_statistics={renews}"]), tmp_path / name)
    plain, renewed = (records(tmp_path / name, "traffic.jsonl") for name in ("plain", "renewed"))
    assert plain == renewed
    scores = [[json.loads(line)["n_correct"] for line in records(tmp_path / name, "clients.jsonl")]
              for name in ("plain", "renewed")]  # fmt: skip
    assert scores[0] != scores[1]


def test_a_model_that_leaves_the_run_is_the_one_that_was_tested(tmp_path: Path) -> None:
    run(read_config(None, [*SMALL, "renew_statistics=true"]), tmp_path / "run")
    last = [json.loads(line) for line in records(tmp_path / "run", "clients.jsonl")][-3:]
    prepared = prepare(read_config(tmp_path / "run" / "config.toml"))
    for score in last:
        model, test = read_client(tmp_path / "run", score["client"]), prepared.source.at(score["client"], 2)[2]
        predicted = model.model.classify(test.x)
        assert int(np.count_nonzero(predicted == test.y)) == score["n_correct"]


def test_machines_have_no_statistics_to_renew() -> None:
    with pytest.raises(ConfigError, match="renew_statistics = true is for networks"):
        read_config(None, ["renew_statistics=true"])
