"""Messages like those that algorithms send, and others to be nasty with."""

import numpy as np
from numpy.typing import NDArray

from laconic.wire import Bits, Floats, Ints, Message, Sparse


class Everything(Message):
    bits: Bits
    ints: Ints
    floats: Floats
    sparse: Sparse
    number: int
    share: float
    is_last: bool
    name: str
    maybe_bits: Bits | None = None
    maybe_number: int | None = None
    maybe_flag: bool | None = None


class OneBits(Message):
    values: Bits


class OneInts(Message):
    values: Ints


class OneFloats(Message):
    values: Floats


class OneSparse(Message):
    values: Sparse


def clause_bits(rng: np.random.Generator, shape: tuple[int, int], density: float) -> NDArray[np.bool_]:
    """Rows like clauses: each has its own length, some columns are popular, ones come in runs."""
    heavy, popular = rng.gamma(2.0, 0.5, (shape[0], 1)), rng.gamma(0.7, 1.4, (1, shape[1]))
    bits = rng.random(shape) < np.clip(density * heavy * popular, 0, 0.95)
    bits[:, 1:] |= bits[:, :-1] & (rng.random((shape[0], shape[1] - 1)) < 0.3)
    return bits


def flip(rng: np.random.Generator, bits: NDArray[np.bool_], share: float) -> NDArray[np.bool_]:
    return bits ^ (rng.random(bits.shape) < share)


def everything(seed: int) -> Everything:
    rng = np.random.default_rng(seed)
    vector = rng.normal(size=60).astype(np.float32)
    return Everything(
        bits=clause_bits(np.random.default_rng(7), (12, 40), 0.1) ^ (rng.random((12, 40)) < 0.01 * seed),
        ints=np.arange(24).reshape(4, 6) + rng.integers(0, 3, (4, 6)),
        floats=np.float32([0.5, -0.0, np.nan, np.inf]) + np.float32(seed),
        sparse=Sparse.of(vector, rng.random(60) < 0.2),
        number=-seed,
        share=seed / 3,
        is_last=bool(seed % 2),
        name=f"größe {seed}",
        maybe_bits=None if seed % 2 else np.ones((3, 3), bool),
        maybe_flag=None if seed % 3 else True,
    )
