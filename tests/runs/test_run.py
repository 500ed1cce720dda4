"""The loop: what a run records of whom, and of which examples."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laconic.records import ClientScore, Summary, read_lines
from laconic.runs.config import ConfigError, read_config
from laconic.runs.prepare import prepare
from laconic.runs.run import run

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
        tested: [line.n_test for line in read_lines(folder, ClientScore) if line.round == 2]
        for tested, folder in folders.items()
    }
    assert n_tested["test"] == count_examples(folders["test"], "test")
    assert n_tested["validation"] == count_examples(folders["validation"], "val") != n_tested["test"]
    sent, sent_too = ((folder / "traffic.jsonl").read_bytes() for folder in folders.values())
    assert sent == sent_too


def test_a_clients_images_are_turned_alike_in_all_its_parts_and_the_records_say_by_how_much(tmp_path: Path) -> None:
    play(tmp_path / "run", "data.shift=turned", "data.clients=6")
    clients = json.loads((tmp_path / "run" / "partition.json").read_text())["clients"]
    assert [client["quarter_turns"] for client in clients] == [0, 1, 2, 3, 0, 1]
    for method in ("fedtm", "separate"):  # bits and values
        upright, turned = (
            prepare(read_config(None, [f"method.name={method}", "data.clients=6", f"data.shift={shift}"]))
            for shift in ("none", "turned")
        )
        assert turned.partition.sha256 == upright.partition.sha256
        for client in range(6):
            for seen, turned_too in zip(upright.source.at(client, 1), turned.source.at(client, 1), strict=True):
                np.testing.assert_array_equal(turned_too.x, [np.rot90(image, client % 4) for image in seen.x])
                np.testing.assert_array_equal(turned_too.y, seen.y)


def test_what_has_no_square_cannot_be_turned(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for shape in ((4,), (4, 6)):
        x, y = rng.integers(0, 2, (80, *shape)).astype(np.uint8), np.arange(80) % 2
        np.savez(tmp_path / "made.npz", x_train=x, y_train=y, x_test=x, y_test=y)
        with pytest.raises(ConfigError, match="needs square images"):
            prepare(read_config(None, [f"data.name={tmp_path / 'made.npz'}", "data.shift=turned", "data.clients=2"]))
