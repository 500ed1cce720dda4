import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import linalg

from laconic.networks.hadamard import hadamard


def naive_hadamard(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """The slow twin: one step after the other, small parts first."""
    size = 1
    while size < len(x):
        halves = x.reshape(-1, 2, size)
        x = np.stack([halves[:, 0] + halves[:, 1], halves[:, 0] - halves[:, 1]], axis=1).ravel()
        size *= 2
    return x


def normal(n: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=n).astype(np.float32)


def transformed(x: NDArray[np.float32]) -> NDArray[np.float32]:
    y = x.copy()
    hadamard(y)
    return y


@pytest.mark.parametrize("n", [2**k for k in range(13)])
def test_is_the_dense_hadamard_product(n: int) -> None:
    x = np.random.default_rng(n).integers(-99, 100, n).astype(np.float32)  # whole numbers add up exactly
    dense = linalg.hadamard(n, dtype=np.int32)
    np.testing.assert_array_equal(transformed(x), dense @ x.astype(np.int32))


@pytest.mark.parametrize("n", [2**k for k in range(19)])
def test_agrees_with_the_slow_twin_bit_for_bit(n: int) -> None:
    np.testing.assert_array_equal(transformed(normal(n)), naive_hadamard(normal(n)))


def test_leaves_what_lies_before_and_after_alone() -> None:
    for n in (1, 32, 64, 128, 256, 512, 4096):
        around = np.full(n + 6, np.nan, np.float32)
        around[3:-3] = normal(n)  # not aligned to vectors
        hadamard(around[3:-3])
        np.testing.assert_array_equal(around[3:-3], naive_hadamard(normal(n)))
        assert np.isnan(around[:3]).all()
        assert np.isnan(around[-3:]).all()


def test_threads_do_not_disturb_each_other() -> None:
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda seed: transformed(normal(2**15, seed)), range(16)))
    for seed, y in enumerate(made):
        np.testing.assert_array_equal(y, naive_hadamard(normal(2**15, seed)))


def test_gives_the_same_bits_on_an_old_cpu(tmp_path: Path) -> None:
    """x86-64 without AVX: vectors of four numbers."""
    np.save(tmp_path / "x.npy", normal(2**15))
    code = f"""
import numpy as np
from laconic.networks.hadamard import hadamard
x = np.load({str(tmp_path / "x.npy")!r})
hadamard(x)
np.save({str(tmp_path / "y.npy")!r}, x)"""
    narrow = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=os.environ | narrow, check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), transformed(normal(2**15)))


def test_what_cannot_be_transformed_is_refused() -> None:
    for n in (0, 3, 96):
        with pytest.raises(ValueError, match=f"{n} numbers, not a power of 2"):
            hadamard(np.zeros(n, np.float32))
    frozen = np.zeros(4, np.float32)
    frozen.flags.writeable = False
    for x in (np.zeros(4), np.zeros((2, 2), np.float32), np.zeros(8, np.float32)[::2], frozen):
        with pytest.raises(ValueError, match="writeable contiguous vector of float32"):
            hadamard(x)
