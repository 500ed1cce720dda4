"""The kernels and the slow twin agree bit for bit."""

import copy
import hashlib
import os
import subprocess
import sys
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_tm
from laconic.tsetlin import (
    Fuzzy,
    Shape,
    balance,
    build,
    build_coalesced,
    class_sums,
    clause_counts,
    clause_outputs,
    clause_votes,
    fit,
    literal_states,
)


@st.composite
def shapes(draw):
    kind = draw(st.sampled_from(["flat", "image", "layers", "wide", "wide layers"]))
    if kind == "flat":
        return Shape.flat(draw(st.integers(1, 150)))
    levels = draw(st.sampled_from([1, 2, 3, 8])) if kind == "layers" else 2 if kind == "wide layers" else 1
    is_wide = kind in ("wide", "wide layers")
    height = draw(st.integers(1, 6 if is_wide else 20))
    width = draw(st.integers(60, 140) if is_wide else st.integers(1, 40))
    layers = levels * draw(st.integers(1, 3)) if kind == "layers" else levels
    patch = draw(st.integers(1, min(height, 6))), draw(st.integers(1, min(width, 70 if kind == "wide" else 6)))
    return Shape.image(height, width, layers, patch=patch, levels=levels)


def random_images(shape, n_samples, rng):
    x = rng.random((n_samples, shape.height, shape.width, shape.layers)) < rng.choice([0.2, 0.5, 0.8])
    nested = np.sort(x.reshape(*x.shape[:3], -1, shape.levels), axis=-1)[..., ::-1]
    return nested.reshape(x.shape)


def assert_equal_to_twin(machine, seed, n_samples=10, epochs=3, events_per_look=4096):
    with mock.patch.object(balance, "EVENTS_PER_LOOK", events_per_look):
        train_both(machine, seed, n_samples, epochs)


def train_both(machine, seed, n_samples, epochs):
    rng = np.random.default_rng(seed)
    x = random_images(machine.shape, n_samples, rng)
    y = rng.integers(0, machine.n_classes, n_samples)
    twin = copy.deepcopy(machine)
    fit(machine, x, y, np.random.default_rng(seed), epochs=epochs)
    naive_tm.fit(twin, x, y, np.random.default_rng(seed), epochs=epochs)
    np.testing.assert_array_equal(machine.states, twin.states)
    np.testing.assert_array_equal(machine.weights, twin.weights)
    if machine.rivalry is not None:
        np.testing.assert_array_equal(machine.rivalry, twin.rivalry)
    np.testing.assert_array_equal(class_sums(machine, x), naive_tm.class_sums(machine, x))
    np.testing.assert_array_equal(clause_outputs(machine, x), naive_tm.clause_outputs(machine, x))
    np.testing.assert_array_equal(clause_votes(machine, x), naive_tm.clause_votes(machine, x))
    np.testing.assert_array_equal(clause_counts(machine, x), naive_tm.clause_counts(machine, x))


@settings(max_examples=300)
@given(
    shape=shapes(),
    n_classes=st.integers(1, 4),
    n_clauses=st.integers(1, 70),
    threshold=st.integers(1, 60),
    specificity=st.sampled_from([1.0, 1.3, 2.0, 5.0, 20.0, 700.0]),
    boost=st.booleans(),
    coalesced=st.booleans(),
    balanced=st.booleans(),
    fuzzy=st.none() | st.builds(Fuzzy, failures=st.integers(1, 30) | st.just(300), literals=st.integers(1, 40)),
    events_per_look=st.sampled_from([1, 40, 4096]),  # rivals are drawn anew after one epoch, two, never
    seed=st.integers(0, 2**32 - 1),
)
def test_kernels_equal_the_twin(
    shape, n_classes, n_clauses, threshold, specificity, boost, coalesced, balanced, fuzzy, events_per_look, seed
):
    options = {"boost": boost, "balanced": balanced, "fuzzy": fuzzy}
    settings = {"threshold": threshold, "specificity": specificity} | options
    if coalesced:
        machine = build_coalesced(shape, n_classes, n_clauses, np.random.default_rng(seed), **settings)
    else:
        machine = build(shape, n_classes, n_clauses, **settings)
    assert_equal_to_twin(machine, seed, events_per_look=events_per_look)


# The sizes the papers use; few clauses and samples, since the twin is slow.
@pytest.mark.parametrize(
    "shape",
    [
        Shape.image(13, 29, patch=(5, 5)),
        Shape.image(28, 28, patch=(10, 10)),
        Shape.image(32, 32, 24, patch=(3, 3), levels=8),
        Shape.image(64, 64, 6, patch=(8, 8)),
        Shape.image(100, 300, patch=(10, 10)),
        Shape.image(28, 28, patch=(28, 28)),
        Shape.image(39, 16, 3, patch=(4, 3)),  # tall and narrow: the last stored row ends with its layer
        Shape.image(79, 8, 2, patch=(8, 2)),
        Shape.image(40, 40, 13, patch=(2, 9)),  # lists of 32-bit numbers, as 100x300
        Shape.flat(1568),
        Shape.flat(4095),
        Shape.flat(4096),  # and these for prediction
    ],
    ids=lambda shape: f"{shape.height}x{shape.width}x{shape.layers}",
)
@pytest.mark.parametrize("fuzzy", [None, Fuzzy(failures=260, literals=500)], ids=["classic", "fuzzy"])
def test_kernels_equal_the_twin_at_full_size(shape, fuzzy):
    assert_equal_to_twin(build(shape, 2, 3, threshold=10, fuzzy=fuzzy), seed=1, n_samples=2, epochs=1)


@pytest.mark.parametrize("negatives", [[0, 2, 3], [2, 3, 2], [0, 1, 2, 3, 4]])
@pytest.mark.parametrize("coalesced", [False, True])
@pytest.mark.parametrize("balanced", [False, True])
def test_kernels_equal_the_twin_with_negative_classes_from_a_set(negatives, coalesced, balanced):
    shape, rng = Shape.image(6, 6, patch=(3, 3)), np.random.default_rng(5)
    settings = {"threshold": 9, "balanced": balanced}
    machine = build_coalesced(shape, 5, 10, rng, **settings) if coalesced else build(shape, 5, 10, **settings)
    x, y, twin = random_images(shape, 12, rng), rng.choice([2, 3], 12), copy.deepcopy(machine)
    fit(machine, x, y, np.random.default_rng(1), epochs=2, negatives=negatives)
    naive_tm.fit(twin, x, y, np.random.default_rng(1), epochs=2, negatives=negatives)
    np.testing.assert_array_equal(machine.states, twin.states)
    np.testing.assert_array_equal(machine.weights, twin.weights)


def test_random_bytes_are_uniform_and_uncorrelated():
    """The twin's stream, which the kernels equal: at a rate of 1/5, no two automata are erased together too often."""
    stream = naive_tm.Stream(np.random.default_rng(0).integers(0, 1 << 64, 17, dtype=np.uint64))
    steps = [np.concatenate(stream.vectors()).view(np.uint8) for _ in range(20_000)]
    erased = np.concatenate([np.array(steps[:-1]), np.array(steps[1:])], axis=1) < 51.2  # two steps: four vectors
    assert abs(erased.mean() - 52 / 256) < 0.001
    correlation = np.corrcoef(erased.T.astype(float))
    assert np.abs(np.triu(correlation, 1)).max() < 6 / np.sqrt(len(erased))


def test_masked_weights_regrow_with_their_sign():
    machine = build(Shape.flat(12), 2, 9, threshold=8)
    machine.weights[:] = 0
    assert_equal_to_twin(machine, seed=3, n_samples=20)
    assert machine.weights.max() > 0


@pytest.mark.parametrize(
    ("shape", "n_clauses", "epochs"),
    [
        (Shape.image(7, 9, patch=(3, 3)), 40, 60),
        (Shape.image(40, 33, patch=(3, 3)), 12, 10),  # windows of up to five vectors
        (Shape.image(12, 70, patch=(3, 3)), 12, 10),  # two lanes a row
    ],
    ids=["7x9", "40x33", "12x70"],
)
@pytest.mark.parametrize("fuzzy", [None, Fuzzy(failures=4, literals=9)], ids=["classic", "fuzzy"])
def test_long_training_keeps_windows_and_lists_exact(shape, n_clauses, epochs, fuzzy):
    machine = build(shape, 2, n_clauses, threshold=15, specificity=3.0, fuzzy=fuzzy)
    assert_equal_to_twin(machine, seed=5, epochs=epochs)


def test_a_machine_of_more_clauses_than_a_program_holds_equals_the_twin():
    machine = build(Shape.flat(9), 3, 1500, threshold=15, fuzzy=Fuzzy(failures=3, literals=4))
    assert_equal_to_twin(machine, seed=5, n_samples=3, epochs=2)


def test_long_epochs_of_a_balanced_machine_equal_the_twin():
    """More than the turns at the end of an epoch."""
    machine = build(Shape.flat(20), 3, 12, threshold=15, balanced=True)
    assert_equal_to_twin(machine, seed=6, n_samples=150, epochs=3, events_per_look=600)


DIGEST = """
import hashlib, numpy as np
from laconic.tsetlin import *
digest, rng = hashlib.sha256(), np.random.default_rng(0)
for shape in (Shape.flat(90), Shape.image(20, 24, 2, patch=(4, 3), levels=2), Shape.image(40, 40, 13, patch=(2, 9))):
    for machine in (
        build(shape, 3, 41, threshold=30),
        build(shape, 3, 41, threshold=30, balanced=True),
        build_coalesced(shape, 3, 41, rng, threshold=30, boost=False),
        build(shape, 3, 41, threshold=30, fuzzy=Fuzzy(failures=6, literals=12)),
    ):
        x = rng.random((30, shape.height, shape.width, shape.layers)) < 0.5
        x = np.sort(x.reshape(*x.shape[:3], -1, shape.levels), axis=-1)[..., ::-1].reshape(x.shape)
        fit(machine, x, rng.integers(0, 3, 30), np.random.default_rng(1), epochs=5)
        for array in (machine.states, machine.weights, class_sums(machine, x), clause_votes(machine, x)):
            digest.update(np.ascontiguousarray(array).tobytes())
print(digest.hexdigest())
"""


def test_older_cpu_and_a_cache_give_the_same_bits(tmp_path):
    """x86-64 without AVX: vectors of 16 bytes, no popcount or trailing-zero instructions."""

    def run(**environment):
        return subprocess.run(
            [sys.executable, "-c", DIGEST], env=os.environ | environment, capture_output=True, text=True, check=True
        )

    older = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(tmp_path)}
    compiled = run(**older)
    assert compiled.stdout == run().stdout
    assert "compiling the Tsetlin kernels" in compiled.stderr  # nobody should wonder why the first fit takes so long
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("**/*")}
    cached = run(**older)
    assert cached.stdout == compiled.stdout
    assert "compiling" not in cached.stderr
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("**/*")} == kept  # nothing was compiled again


def test_result_is_the_same_on_every_machine():
    """Guards the random streams and their order: a change here breaks the repeatability of published runs."""
    rng = np.random.default_rng(7)
    machine = build(Shape.image(16, 16, patch=(5, 5)), 3, 20, threshold=20)
    fit(machine, rng.random((50, 16, 16)) < 0.4, rng.integers(0, 3, 50), rng, epochs=4)
    digest = hashlib.sha256(literal_states(machine).tobytes() + machine.weights.tobytes()).hexdigest()
    assert digest[:16] == "f50b8eb90aae1a3d"
