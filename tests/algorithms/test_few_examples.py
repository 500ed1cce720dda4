"""Methods on Tsetlin Machines where clients have next to nothing."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from laconic import tsetlin as tm
from laconic.algorithm import Examples, Task
from laconic.algorithms import METHODS, load_method
from laconic.fleets.source import ClientData
from laconic.runs.config import read_config
from laconic.runs.run import run
from laconic.simulation import federate

SMALL = {"n_clauses": 8, "epochs": 2, "threshold": 20, "min_examples": 2}
SHAPES = [(12,), (8, 8), (24, 24)]  # bits, whole images, patches
ON_MACHINES = [name for name, method in METHODS.items() if method.family == "tsetlin"]


def play(name: str, shape: tuple[int, ...], sizes: list[tuple[int, int, int]]) -> list[int]:
    """Three rounds of clients with so many training, validation and test examples; how many each was tested on."""
    rng, method_type = np.random.default_rng(0), load_method(name)
    small = {key: value for key, value in SMALL.items() if key in {f.name for f in fields(method_type)}}
    method, task = method_type(**small), Task(shape, 3, len(sizes))

    def make(client: int, size: int) -> Examples:
        y = np.resize([client % 3, (client + 1) % 3], size).astype(np.int64)
        return Examples((rng.random((size, *shape)) < 0.4).astype(np.uint8), y)

    parts = [tuple(make(client, size) for size in mine) for client, mine in enumerate(sizes)]
    source = ClientData.of(parts)  # type: ignore[arg-type]  # tuples of three
    with federate(method, task, source, seed=0, workers=1) as federation:
        played = [federation.play(number, is_evaluated=number == 3) for number in range(4)]
    assert all(done.trouble is None for done in played)
    return [score.n_test for score in played[-1].scores or ()]


@pytest.mark.parametrize("name", ON_MACHINES)
def test_a_run_without_validation_examples_ends_with_a_score(name: str, tmp_path: Path) -> None:
    settings = ["data.validation=0", "data.clients=4", "rounds=2", "method.n_clauses=8", "method.epochs=1"]
    summary = run(read_config(None, [f"method.name={name}", *settings]), tmp_path / "run")
    assert summary.accuracy_mean is not None


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ON_MACHINES)
def test_a_client_of_a_single_row_takes_part_beside_larger_ones(name: str, shape: tuple[int, ...]) -> None:
    assert play(name, shape, [(12, 3, 6), (12, 3, 6), (1, 0, 1)]) == [6, 6, 1]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ON_MACHINES)
def test_a_client_may_lack_validation_examples_where_others_have_some(name: str, shape: tuple[int, ...]) -> None:
    assert play(name, shape, [(12, 3, 6), (12, 3, 6), (12, 0, 6)]) == [6, 6, 6]


@pytest.mark.parametrize("name", ON_MACHINES)
def test_a_federation_of_one_client_with_one_row_runs(name: str) -> None:
    assert play(name, (8, 8), [(1, 0, 1)]) == [1]


@pytest.mark.parametrize("shape", [tm.Shape.flat(12), tm.Shape.image(8, 8, patch=(3, 3))])
def test_clauses_say_nothing_of_no_samples(shape: tm.Shape) -> None:
    machine, x = tm.build(shape, 3, 4), np.zeros((0, 12) if shape.is_flat else (0, 8, 8), np.uint8)
    assert tm.read_machine(machine, np.zeros((12, 2), np.int8), x).shape == (0, 12)
