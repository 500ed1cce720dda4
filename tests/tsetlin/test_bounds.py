"""Kernels work on bare pointers: nothing but these tests would notice a read past an array."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from laconic.tsetlin import Shape, inference, pack
from laconic.tsetlin.geometry import geometry


@pytest.mark.parametrize("side", ["start", "end"])
def test_kernels_touch_nothing_outside_their_arrays_nor_what_is_not_initialised(side):
    program = [sys.executable, str(Path(__file__).with_name("guarded.py")), side]
    ended = subprocess.run(program, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"after {ended.stdout.splitlines()[-1:]}: {ended.stderr[-2000:]}"


@pytest.mark.parametrize("width", [9, 17, 28, 33, 80])
@pytest.mark.parametrize("n_samples", [3, 20])
def test_literals_are_sorted_by_how_often_they_hold_in_the_images_alone(width, n_samples):
    """Neither by padding nor by the next row, which the last word of a row runs into."""
    shape = Shape.image(width, width, patch=(5, 5))
    x = np.random.default_rng(0).random((n_samples, width, width)) < 0.35
    counts = inference.count_places(shape, pack(shape, x).samples, n_samples)
    offsets, few = geometry(shape).tables.offsets, x[:8]
    assert counts[offsets[shape.literal_slots[0]]] == few.sum()
    assert counts[offsets[shape.literal_slots[shape.n_features]]] == (~few).sum()
