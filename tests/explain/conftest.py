"""Runs whose models are explained: one of each kind, so small that they take a second."""

import sys
from pathlib import Path

import numpy as np
import pytest
from explained import CASES, MACHINES

from laconic.conformance.small_runs import TWO_EACH, configure, make_data
from laconic.runs.run import run

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))  # the browser


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    home = tmp_path_factory.mktemp("explained")
    data = make_data(home, TWO_EACH)
    for name, (method, *settings) in CASES.items():
        larger = [] if name not in MACHINES else ["method.n_clauses=20", "method.epochs=5"]  # clauses that fire
        run(configure(method, "local", data, *larger, *settings), home / name)
    return {name: home / name for name in CASES}


@pytest.fixture(scope="session")
def cellar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on a table with names: wines of three cellars."""
    from sklearn.datasets import load_wine

    home, wine = tmp_path_factory.mktemp("wine"), load_wine()
    owners = np.array([f"cellar {k % 3}" for k in range(len(wine.target))])
    arrays = {"x": wine.data, "y": wine.target, "cellar": owners}
    halves = {"train": np.arange(len(owners)) % 4 > 0, "test": np.arange(len(owners)) % 4 == 0}
    parts = {f"{key}_{half}": array[rows] for key, array in arrays.items() for half, rows in halves.items()}
    names = {"classes": np.array(["Barolo", "Grignolino", "<b>Barbera</b>"]), "features": np.array(wine.feature_names)}
    np.savez(home / "wine.npz", allow_pickle=False, **parts, **names)
    settings = ["method.epochs=10", "method.n_clauses=20", "data.group=cellar"]
    run(configure("fedtm", "local", home / "wine.npz", *settings), home / "run")
    return home / "run"
