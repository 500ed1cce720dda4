import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from laconic import banks
from laconic.banks.filters import make_filters
from laconic.banks.images import DEAD, LEVELS, VIEWS, build_wide
from laconic.banks.kernels import divide, factorise, multiply
from laconic.banks.photographs import load_photographs

# Of features of made images: 10 by 12 grey, 32 by 32 in colour; a change of any bit is a change of every bank there is.
DIGESTS = {
    ((10, 12), ""): "41e3140b74b6a0d9",
    ((32, 32, 3), ""): "1e6e34592413d13e",
    ((6,), ""): "bc371d07fc54f990",
    ((28, 28), "mirrored"): "48c9d6c5db3913f7",
}


def make_inputs(shape: tuple[int, ...], n: int = 20) -> np.ndarray:
    numbers = np.random.PCG64(1).random_raw(n * int(np.prod(shape)))
    return (numbers >> np.uint64(40)).astype(np.uint8).reshape(n, *shape)


def digest(shape: tuple[int, ...], where: str) -> str:
    x = make_inputs(shape)
    found = [banks.open_bank(shape, 40, where).read(x), banks.open_wide(shape, where).read(x)]
    return hashlib.sha256(b"".join(part.tobytes() for part in found)).hexdigest()[:16]


@pytest.mark.parametrize(("shape", "where"), DIGESTS)
def test_features_are_the_same_bits_everywhere(shape: tuple[int, ...], where: str) -> None:
    assert digest(shape, where) == DIGESTS[shape, where]


def test_a_cpu_without_fused_or_wide_instructions_makes_the_same_bits(tmp_path: Path) -> None:
    code = f"import test_banks as t; print(*(t.digest(*each) for each in {[*DIGESTS]!r}))"
    old = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(tmp_path)}
    old |= {"OPENBLAS_CORETYPE": "Nehalem", "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, env=os.environ | old, capture_output=True, check=True
    )
    assert done.stdout.decode().split() == [*DIGESTS.values()]


def test_photographs_are_those_that_were_shipped() -> None:
    photographs = load_photographs()
    assert photographs.shape == (2, 142, 213, 3)
    assert hashlib.sha256(photographs.tobytes()).hexdigest()[:16] == "427fd966c532dcbc"


@pytest.mark.parametrize(("side", "n_layers"), [(6, 3), (6, 1), (2, 1)])
def test_filters_are_small_and_add_up_to_nothing(side: int, n_layers: int) -> None:
    filters = make_filters(side, n_layers).astype(np.int64)
    assert filters.shape == (500, side * side * n_layers)
    assert np.abs(filters).max() <= 127
    assert not filters.sum(axis=1).any()
    assert (np.abs(filters).max(axis=1) > 0).all()


@pytest.mark.parametrize("where", VIEWS)
def test_a_wide_bank_counts_as_a_plain_loop_does(where: str) -> None:
    view = VIEWS[where]
    bank, images = build_wide(9, 8, 1, view), make_inputs((9, 8, 1), 3)
    filters, side, n_cells = make_filters(4, 1)[: view.n_filters].astype(np.float64), 4, view.n_cells
    due = np.zeros((3, view.n_filters, n_cells**2, 2), np.int64)
    for image, found in zip(images[..., 0].astype(np.float64), due, strict=True):
        for seen in (image, image[:, ::-1]) if view.is_mirrored else (image,):
            for row in range(6):
                for column in range(5):
                    patch = seen[row : row + side, column : column + side].ravel()
                    n = len(patch)
                    spread = np.sqrt(n * (patch**2).sum() - patch.sum() ** 2 + 10 * n**2)
                    contrast = np.float32(n * LEVELS / 128 / spread)
                    levels = ((filters @ patch).astype(np.float32) * contrast).astype(np.int64)
                    cell = n_cells * (n_cells * row // 6) + n_cells * column // 5
                    found[:, cell, 0] += np.maximum(0, levels - DEAD)
                    found[:, cell, 1] += np.maximum(0, -levels - DEAD)
    assert np.array_equal(bank.count(images).reshape(due.shape), due)


def test_a_mirrored_bank_says_the_same_of_an_image_and_its_mirror_image() -> None:
    images = np.stack([load_photographs()[:, y : y + 32, y : y + 32] for y in range(8)]).reshape(-1, 32, 32, 3)
    mirrored, plain = (banks.Choice((32, 32, 3), 40, where) for where in ("mirrored", ""))
    assert np.array_equal(mirrored.read(images), mirrored.read(images[:, :, ::-1].copy()))
    assert np.array_equal(mirrored.wide.read(images), mirrored.wide.read(images[:, :, ::-1].copy()))
    assert not np.array_equal(plain.read(images), plain.read(images[:, :, ::-1].copy()))
    assert len(np.unique(mirrored.read(images), axis=0)) == len(images)


def test_a_table_has_no_mirrored_bank() -> None:
    with pytest.raises(ValueError, match="is for images; a row of 7 columns has no mirror image"):
        banks.open_bank((7,), 10, "mirrored")


def test_light_and_contrast_of_an_image_hardly_matter() -> None:
    bank = banks.open_bank((32, 32, 3), 40)
    images = load_photographs()[:, :32, :32] // 2
    assert np.abs(bank.read(images + 60).astype(int) - bank.read(images)).max() == 0  # exactly, as filters add up to 0


def test_features_vary_alike_and_hardly_together_on_the_photographs() -> None:
    photographs = load_photographs()
    pieces = [p[y : y + 32, x : x + 32] for p in photographs for y in range(0, 110, 4) for x in range(0, 181, 4)]
    found = banks.open_bank((32, 32, 3), 40).read(np.array(pieces)) / banks.ONE
    assert 0.2 < found.std(axis=0).min() < found.std(axis=0).max() < 0.8
    alike = np.abs(np.corrcoef(found.T) - np.eye(40))
    assert alike.mean() < 0.15


def test_a_smaller_table_bank_is_the_beginning_of_a_larger_one() -> None:
    rows = make_inputs((7,), 50)
    small, large = (banks.open_bank((7,), n).read(rows) for n in (10, 300))
    assert np.array_equal(small, large[:, :10])
    assert large.min() == -banks.ONE
    assert large.max() == banks.ONE


def test_features_of_the_same_examples_are_made_once_and_forgotten_with_them() -> None:
    calls = []

    class Counting:
        n_features = 1

        def read(self, x: np.ndarray) -> np.ndarray:
            calls.append(x.shape)
            return np.zeros((len(x), 1), np.int8)

    bank, x = Counting(), make_inputs((5, 5, 2))
    assert banks.read_once(bank, x, 1) is banks.read_once(bank, x, 1)
    assert calls == [(20, 5, 5, 1)]
    banks.read_once(bank, make_inputs((5, 5, 2)), 1)
    assert len(calls) == 2


def give_too_few(x: np.ndarray) -> np.ndarray:
    return np.zeros((len(x), 3))


def give_ramp(x: np.ndarray) -> np.ndarray:
    return np.linspace(-2, 2, 5)[None].repeat(len(x), axis=0)


def test_a_bank_of_ones_own_is_clipped_and_rounded() -> None:
    found = banks.open_bank((4,), 5, "test_banks:give_ramp").read(make_inputs((4,), 2))
    assert found.tolist() == [[-32, -32, 0, 32, 32]] * 2


def test_a_bank_that_gives_too_few_features_is_refused_in_words() -> None:
    bank = banks.open_bank((4,), 5, "test_banks:give_too_few")
    with pytest.raises(ValueError, match=r"gave numbers of shape \(2, 3\) for 2 examples; \(2, 5 or more\)"):
        bank.read(make_inputs((4,), 2))


def test_images_of_other_layers_need_a_bank_of_ones_own() -> None:
    with pytest.raises(ValueError, match="no bank for images of 2 layers"):
        banks.open_bank((8, 8, 2), 5)


def test_factors_and_quotients_are_those_of_linear_algebra() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(13, 9)), rng.normal(size=(9, 11))
    out, square = np.empty((13, 11)), a.T @ a
    multiply(a, b, out)
    assert np.allclose(out, a @ b)
    factorise(square)
    assert np.allclose(square, np.linalg.cholesky(a.T @ a).T)
    quotient = a.copy()
    divide(quotient, square)
    assert np.allclose(quotient @ square, a)
