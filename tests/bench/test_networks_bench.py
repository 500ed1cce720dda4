"""`laconic bench networks`, at a small scale."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from laconic.algorithms.networks import critical
from laconic.bench.loops import N_CLASSES, SHAPE, TRAINING, Trained, mix, write_network
from laconic.networks.models import make_module
from laconic.networks.selection import measure_overlap


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


def test_fedpurin_by_hand_mixes_as_ours_does() -> None:
    rng = np.random.default_rng(0)
    masks = [rng.random(40) < 0.5 for _ in range(4)]
    vectors = [np.where(mask, rng.random(40), 0).astype(np.float32) for mask in masks]
    by_hand = mix([Trained([vector], [mask]) for vector, mask in zip(vectors, masks, strict=True)], round=1)
    starts = critical.mix(masks, vectors, measure_overlap(masks), 1, 100, "fp32")
    for vector, mask, start, (due,) in zip(vectors, masks, starts, by_hand, strict=True):
        critical.put_start(vector, mask, start)
        assert np.allclose(vector, due, atol=1e-6)
