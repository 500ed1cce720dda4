"""What a node learned is used on the node, offline."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import laconic
from laconic.deploy.broker import broker_command

pytestmark = pytest.mark.deployment


def call(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "laconic", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_node_predicts_and_exports_what_it_learned_when_nobody_else_is_there(tmp_path: Path) -> None:
    broker_command()
    run = tmp_path / "run"
    small = ("--set", "rounds=2", "--set", "method.n_clauses=20", "--set", "method.epochs=3")
    tried = call("deploy", "try", "--nodes", "2", "--set", "method.name=clausepool", *small, "--out", run, "--json")
    assert tried.returncode == 0, tried.stderr
    node = run / "deployment" / "node-000"
    with np.load(node / "data.npz") as own:
        rows, labels = own["x_test"], own["y_test"]
    np.savez(tmp_path / "rows.npz", rows=rows)
    told = json.loads(call("deploy", "predict", node, tmp_path / "rows.npz", "--json").stdout)
    n_right = sum(name == str(label) for name, label in zip(told["labels"], labels.tolist(), strict=True))
    tested = [json.loads(line) for line in (run / "clients.jsonl").read_text().splitlines()]
    assert n_right == next(row["n_correct"] for row in tested if row["round"] == 2 and row["client"] == 0)
    assert call("export", node, "-o", tmp_path / "m.safetensors").returncode == 0
    assert laconic.load(tmp_path / "m.safetensors").predict(rows).tolist() == told["labels"]
