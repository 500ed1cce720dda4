from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import linalg

from laconic.networks.sketch import Sketch, _rows, _signs, padded, rotate, signs, unrotate


def normal(n: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=n).astype(np.float32)


def matrix_of(sketch: Sketch) -> NDArray[np.float32]:
    """Phi [row, weight], a weight at a time."""
    return np.stack([sketch.forward(one) for one in np.eye(sketch.n_weights, dtype=np.float32)], axis=1)


@pytest.mark.parametrize(("n_weights", "n_rows"), [(1, 1), (10, 1), (16, 16), (50, 5), (50, 50), (50, 64), (130, 129)])
def test_phi_is_rows_of_hadamard_with_signed_columns(n_weights: int, n_rows: int) -> None:
    phi = matrix_of(Sketch(n_weights, n_rows, seed=3)) * n_rows**0.5
    dense = linalg.hadamard(padded(n_weights), dtype=np.int32)
    chosen = dense[_rows(len(dense), n_rows, 3), :n_weights] * _signs(n_weights, 3)
    np.testing.assert_allclose(phi, chosen, atol=1e-6)


@given(n_weights=st.integers(1, 300), share=st.floats(0, 1), seed=st.integers(0, 2**64))
def test_adjoint_is_the_transpose(n_weights: int, share: float, seed: int) -> None:
    n_rows = max(1, round(share * padded(n_weights)))
    sketch, x, y = Sketch(n_weights, n_rows, seed), normal(n_weights, 1), normal(n_rows, 2)
    left, right = sketch.forward(x).astype(float) @ y, x.astype(float) @ sketch.adjoint(y)
    assert left == pytest.approx(right, abs=1e-5 * float(np.linalg.norm(x) * np.linalg.norm(y)) * n_weights**0.5)


def test_adjoint_holds_at_the_size_of_a_network() -> None:
    sketch, x, y = Sketch(203_530, 20_353, seed=0), normal(203_530, 1), normal(20_353, 2)
    left, right = sketch.forward(x).astype(float) @ y, x.astype(float) @ sketch.adjoint(y)
    assert left == pytest.approx(right, rel=1e-4)


def test_squared_length_is_kept_on_average_over_seeds() -> None:
    for x in (normal(100), np.eye(100, dtype=np.float32)[7], np.ones(100, np.float32)):
        ratios = [np.sum(Sketch(100, 13, seed).forward(x) ** 2) / np.sum(x**2) for seed in range(1000)]
        error = np.std(ratios, ddof=1) / len(ratios) ** 0.5
        assert abs(np.mean(ratios) - 1) < 4 * error + 1e-5


def test_products_are_kept_on_average_over_seeds() -> None:
    x, y = normal(100, 1), normal(100, 2)
    found = [Sketch(100, 13, seed).forward(x) @ Sketch(100, 13, seed).forward(y) for seed in range(1000)]
    assert abs(np.mean(found) - x @ y) < 4 * np.std(found, ddof=1) / len(found) ** 0.5


def test_all_rows_together_keep_every_length() -> None:
    x, sketch = normal(100), Sketch(100, 128, seed=0)
    np.testing.assert_allclose(np.linalg.norm(sketch.forward(x)), np.linalg.norm(x), rtol=1e-5)
    np.testing.assert_allclose(sketch.adjoint(sketch.forward(x)), x, atol=1e-5)


@pytest.mark.parametrize("n_rows", [1, 2, 100, 255, 256])
def test_rows_are_all_different(n_rows: int) -> None:
    rows = _rows(256, n_rows, seed=5)
    assert len(rows) == n_rows
    assert (np.diff(rows) > 0).all()


def test_every_row_and_both_signs_come_up_equally_often() -> None:
    n_seeds = 1000
    rows = sum(np.bincount(_rows(32, 8, seed), minlength=32) for seed in range(n_seeds))
    positive = sum(_signs(70, seed) > 0 for seed in range(n_seeds))
    for counts, chance in ((rows, 8 / 32), (positive, 0.5)):
        spread = (n_seeds * chance * (1 - chance)) ** 0.5
        np.testing.assert_allclose(counts, n_seeds * chance, atol=4.5 * spread)


def test_signs_and_rows_of_a_seed_never_change() -> None:
    """Both ends draw them, maybe with different versions of everything; a change here parts old clients from new."""
    assert "".join("+" if sign > 0 else "-" for sign in _signs(70, 7)) == (
        "---+-+-+--+-+--+--++----+-----+++----+----+--+-++-+------++--+---++++-"
    )
    assert _rows(128, 9, 7).tolist() == [4, 6, 19, 32, 52, 56, 91, 101, 113]


def test_drawn_rows_and_signs_cannot_be_spoilt() -> None:
    drawn: tuple[NDArray[Any], ...] = (_signs(10, 0), _rows(16, 3, 0))
    for array in drawn:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_threads_give_the_same_sketch() -> None:
    def work(seed: int) -> tuple[bytes, bytes]:
        sketch = Sketch(5000, 500, seed % 6)  # more than are kept, so that they are drawn again in between
        made = sketch.forward(normal(5000))
        return made.tobytes(), sketch.adjoint(made).tobytes()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(24))) == [work(seed) for seed in range(24)]


def test_zero_counts_as_positive() -> None:
    bits = signs(np.array([-1.5, -0.0, 0.0, 2.0], np.float32))
    assert bits.dtype == bool
    assert bits.tolist() == [False, True, True, True]


@given(n=st.integers(1, 300), seed=st.integers(0, 2**64))
def test_rotation_keeps_lengths_and_is_undone(n: int, seed: int) -> None:
    x = normal(n)
    rotated = rotate(x, seed)
    assert rotated.shape == (padded(n),)
    assert np.linalg.norm(rotated) == pytest.approx(np.linalg.norm(x), rel=1e-5)
    np.testing.assert_allclose(unrotate(rotated, n, seed), x, atol=1e-5)


def test_unrotate_leaves_its_argument_alone() -> None:
    rotated = rotate(normal(100), 0)
    before = rotated.copy()
    unrotate(rotated, 100, 0)
    np.testing.assert_array_equal(rotated, before)


def test_rotation_spreads_a_single_number_evenly() -> None:
    np.testing.assert_allclose(np.abs(rotate(np.eye(60, dtype=np.float32)[5], 1)), 1 / 8)


def test_other_seeds_give_other_sketches() -> None:
    made = {Sketch(100, 10, seed).forward(normal(100)).tobytes() for seed in range(100)}
    assert len(made) == 100


def test_doubles_are_rounded_once() -> None:
    x = normal(100)
    np.testing.assert_array_equal(Sketch(100, 10, 0).forward(x.astype(np.float64)), Sketch(100, 10, 0).forward(x))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="n_rows = 129 must be from 1 to 128"):
        Sketch(100, 129, 0)
    for wrong in ((0, 1, 0), (5, 0, 0), (5, 2, -1)):
        with pytest.raises(ValueError, match="must be"):
            Sketch(*wrong)
    sketch = Sketch(100, 10, 0)
    with pytest.raises(ValueError, match=r"100 numbers was expected, not an array of shape \(10, 10\)"):
        sketch.forward(np.zeros((10, 10)))
    with pytest.raises(ValueError, match=r"10 numbers was expected, not an array of shape \(100,\)"):
        sketch.adjoint(np.zeros(100))
    with pytest.raises(ValueError, match=r"128 numbers was expected"):
        unrotate(np.zeros(100), 100, 0)
