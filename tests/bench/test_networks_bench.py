"""`laconic bench networks`, at a small scale."""

import json
import subprocess
import sys

import pytest
import torch

from laconic.bench.networks import N_CLASSES, SHAPE, TRAINING, write_network
from laconic.networks.models import make_module


def test_a_row_has_the_speeds_and_their_ratios() -> None:
    command = [sys.executable, "-c", "from laconic.cli import main; main()", "bench", "networks"]
    done = subprocess.run(
        [*command, "--rounds", "1", "--examples", "8", "--against", "loop,serial", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = json.loads(done.stdout)
    assert [row["job"] for row in rows] == ["fedavg", "fedpurin"]
    for row in rows:
        for other in ("loop", "serial"):
            assert row[f"{other}_ratio"] * row[f"{other}_samples_per_s"] == pytest.approx(row["ours_samples_per_s"])


def test_others_train_the_same_network() -> None:
    theirs, ours = write_network(), make_module(TRAINING.model, SHAPE, N_CLASSES)
    ours.load_state_dict(dict(zip(ours.state_dict(), theirs.state_dict().values(), strict=True)))
    x = torch.rand(2, 1, *SHAPE)
    assert torch.allclose(theirs(x), ours(x), atol=1e-6)
