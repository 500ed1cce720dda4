"""The loop: what a run records of whom, and of which examples."""

import json
from pathlib import Path
from typing import Any

import pytest

from laconic.runs.config import read_config
from laconic.runs.record import read_lines
from laconic.runs.run import Summary, run

SETTINGS = ["method.name=fedtm", "method.n_clauses=10", "data.clients=3", "rounds=2"]


def play(folder: Path, *settings: str) -> Summary:
    return run(read_config(None, [*SETTINGS, *settings]), folder)


def count_examples(folder: Path, part: str) -> list[int]:
    clients: list[dict[str, Any]] = json.loads((folder / "partition.json").read_text())["clients"]
    return [sum(client[part]) for client in clients]


@pytest.mark.parametrize("fleet", ["local", "process"])
def test_a_run_is_tested_on_validation_examples_where_it_says_so_and_learns_the_same(
    fleet: str, tmp_path: Path
) -> None:
    folders = {tested: tmp_path / tested for tested in ("test", "validation")}
    for tested, folder in folders.items():
        done = play(folder, f"data.tested={tested}", f"fleet.name={fleet}")
        assert done.tested == tested == json.loads((folder / "DONE.json").read_text())["tested"]
    n_tested = {
        tested: [line["n_test"] for line in read_lines(folder / "clients.jsonl") if line["round"] == 2]
        for tested, folder in folders.items()
    }
    assert n_tested["test"] == count_examples(folders["test"], "test")
    assert n_tested["validation"] == count_examples(folders["validation"], "val") != n_tested["test"]
    sent, sent_too = ((folder / "traffic.jsonl").read_bytes() for folder in folders.values())
    assert sent == sent_too
