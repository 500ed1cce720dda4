"""The bytes of version 1. To print those of the present code: python tests/wire/test_wire_golden.py"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from wire_samples import Everything, OneBits, OneFloats, OneInts, OneSparse

from laconic.wire import EMPTY, Sparse, decode, encode
from laconic.wire.kernels import REACH

GOLDEN = Path(__file__).parent / "golden" / "version_1.txt"
ADVICE = "the format changed: raise VERSION in laconic/wire/codec.py, then store the new bytes in golden/version_N.txt"


def pattern(n):
    """Numbers that look random and will be the same for ever, whatever numpy's generators do."""
    return np.array([(k * k * 2654435761 + k * 40503) >> 7 & 0xFFFF for k in range(n)])


def cases():
    """name: message, base."""
    sparse_bits = (pattern(800) % 16 == 0).reshape(20, 40)
    changed = sparse_bits ^ (pattern(800) % 97 == 5).reshape(20, 40)
    weights, floats = pattern(60) % 30 + 1, ((pattern(40) - 30000) / 4097).astype(np.float32)
    stretched = np.stack([floats[:-1], (floats[:-1] + floats[1:]) / 2], axis=1).ravel()
    held = ((pattern(600) - 30000) / 1025).astype(np.float32)
    return {
        "empty": (EMPTY, None),
        "bits packed": (OneBits(pattern(100) % 2 == 1), None),
        "bits none set": (OneBits(np.zeros((30, 50), bool)), None),
        "bits model": (OneBits(sparse_bits), None),
        "bits changes": (OneBits(changed | sparse_bits), OneBits(sparse_bits)),
        "bits model on base": (OneBits(sparse_bits & (pattern(800) % 5 > 0).reshape(20, 40)), OneBits(sparse_bits)),
        "bits same": (OneBits(sparse_bits), OneBits(sparse_bits)),
        "ints plain": (OneInts(pattern(5).astype(np.uint16)), None),
        "ints few": (OneInts(weights[:9].astype(np.int32)), None),
        "ints model": (OneInts((weights // 9).reshape(6, 10)), None),
        "ints on base": (OneInts(weights + weights // 12), OneInts(weights)),
        "floats model": (OneFloats(floats.reshape(4, 10)), None),
        "floats on base": (OneFloats(floats * np.float32(1.001)), OneFloats(floats)),
        "floats lines": (OneFloats(np.repeat(floats, 3)), None),
        "floats lines on base": (OneFloats(stretched), OneFloats(stretched * np.float32(0.99))),
        "sparse": (OneSparse(Sparse.of(floats.astype(np.float16), pattern(40) % 5 == 0)), None),
        "sparse mask by size": (
            OneSparse(Sparse.of(held, np.abs(held) * (pattern(600) % 7 + 1) > 40)),
            OneSparse(Sparse(np.ones(600, bool), held)),
        ),
        "all kinds": (
            Everything(
                sparse_bits[:3],
                weights[:6],
                floats[:2],
                Sparse.of(floats, floats > 6),
                -300,
                0.1,
                True,
                "größe",
                maybe_bits=None,
                maybe_number=7,
                maybe_flag=None,
            ),
            None,
        ),
    }


def read_only_cases():
    """Zstandard's releases choose their own bytes: old ones must be read, but need not be written again."""
    return {"floats planes": (OneFloats(np.tile(((pattern(9) - 30000) / 4096).astype(np.float32), 9)), None)}


def stored():
    return dict(line.split(": ") for line in GOLDEN.read_text().splitlines() if not line.startswith("#"))


@pytest.mark.parametrize("name", cases() | read_only_cases())
def test_old_bytes_are_still_read(name):
    message, base = (cases() | read_only_cases())[name]
    assert decode(type(message), bytes.fromhex(stored()[name]), base) == message, ADVICE


@pytest.mark.parametrize("name", cases())
def test_the_same_bytes_are_still_written(name):
    message, base = cases()[name]
    assert encode(message, base).hex() == stored()[name], ADVICE


def test_plain_python_writes_the_bytes_that_compiled_code_does():
    """The kernels' twin is the kernels' own source, uncompiled."""
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    run = subprocess.run([sys.executable, __file__], env=env, capture_output=True, text=True, check=True)
    written = dict(line.split(": ") for line in run.stdout.splitlines())
    assert {name: written[name] for name in cases()} == {name: stored()[name] for name in cases()}


def test_no_entry_of_the_tables_is_near_a_tie_that_platforms_round_apart():
    exact = 65536 / (1 + np.exp(-np.arange(-REACH, REACH) / 256))
    assert np.abs(exact % 1 - 0.5).min() > 1e-6


if __name__ == "__main__":
    for name, (message, base) in (cases() | read_only_cases()).items():
        data = encode(message, base)
        assert decode(type(message), data, base) == message
        print(f"{name}: {data.hex()}")
