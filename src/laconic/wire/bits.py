"""Bits: packed, as gaps between rare ones, as what changed since the base, or by a model of each bit's surroundings.

A mask may also be told by the sizes of the numbers it selects from, where both ends hold numbers much like them.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.wire.buffer import CHUNK, Reader, WireError, write_varint

PACKED, GAPS, MODEL = 0, 1, 2
CHANGES, MODEL_ON_BASE, BY_SIZE = 8, 9, 10  # from 8 on the base is needed
NAMES = {PACKED: "packed", GAPS: "gaps", MODEL: "model", CHANGES: "changes", MODEL_ON_BASE: "model on base"}
NAMES |= {BY_SIZE: "by size"}
MAX_PRIOR = 151
MAX_SURROUNDED = 1 << 18  # bits of a mask with sizes beside it; beyond this the surroundings are not worth their time

Sizes = NDArray[np.uint8]  # [bit] see floats.sizes
NOTHING_KNOWN = np.zeros((1, 1), np.uint8)  # in place of a base, where there is none


def encode(bits: NDArray[np.bool_], base: NDArray[np.bool_] | None, sizes: Sizes | None = None) -> tuple[int, bytes]:
    """The shortest form found, and which; forms that cannot win by the counts of ones are not tried."""
    best, flat = (PACKED, np.packbits(bits).tobytes()), bits.ravel()
    if len(best[1]) < 3:
        return best
    if sizes is not None:
        best = shorter(best, BY_SIZE, run_sized(flat, sizes, len(best[1])))
        if flat.size > MAX_SURROUNDED:
            return best
    n_ones = int(np.count_nonzero(flat))
    alone_bytes = entropy_bytes(n_ones, flat.size)
    if alone_bytes < 0.75 * len(best[1]):  # Rice codes lose to plain bits above some 20 % of ones
        rare = bool(2 * n_ones <= flat.size)
        best = shorter(best, GAPS, bytes([rare]) + write_gaps(flat == rare))
    given_bytes = math.inf
    if base is not None:
        held = base.ravel()
        gone, come = ~flat[held], flat[~held]
        n_gone, n_come = int(np.count_nonzero(gone)), int(np.count_nonzero(come))
        given_bytes = entropy_bytes(n_gone, gone.size) + entropy_bytes(n_come, come.size)
        if given_bytes < 0.5 * flat.size / 8:
            best = shorter(best, CHANGES, write_gaps(gone) + write_gaps(come))
        if given_bytes < 0.98 * alone_bytes:
            priors = bytes([write_prior(n_come, come.size), write_prior(n_gone, gone.size)])
            best = shorter(best, MODEL_ON_BASE, priors + run_model(bits, base, priors, 0, len(best[1])))
    if given_bytes > 0.5 * alone_bytes and not is_noise(bits, alone_bytes):
        lag, prior = find_lag(bits), bytes([write_prior(n_ones, flat.size)])
        payload = bytes([lag]) + prior + run_model(bits, None, prior, lag, len(best[1]))
        best = shorter(best, MODEL, payload)
    return best


def decode(
    method: int,
    payload: bytes | memoryview,
    shape: tuple[int, ...],
    base: NDArray[np.bool_] | None,
    sizes: Sizes | None = None,
) -> NDArray[np.bool_]:
    """base, sizes: given for the methods that need them."""
    n_bits, reader = math.prod(shape), Reader(payload, 0)
    if method == PACKED:
        packed = reader.take(-(-n_bits // 8))
        reader.finish()
        return np.unpackbits(np.frombuffer(packed, np.uint8), count=n_bits).view(np.bool_).reshape(shape)
    if method == GAPS:
        rare = reader.varint(1)
        flat = read_gaps(reader, n_bits)
        flat ^= rare == 0
        reader.finish()
        return flat.reshape(shape)
    if method == CHANGES:
        assert base is not None
        held, changed = base.ravel(), np.zeros(n_bits, bool)
        n_held = int(np.count_nonzero(held))
        changed[held] = read_gaps(reader, n_held)
        changed[~held] = read_gaps(reader, n_bits - n_held)
        reader.finish()
        return base ^ changed.reshape(shape)
    if method == BY_SIZE:
        if sizes is None:
            raise WireError("bits coded by the sizes of a base's numbers; these are no mask of any")
        return read_sized(payload, sizes).reshape(shape)
    return read_model(reader, shape, base)


def shorter(best: tuple[int, bytes], method: int, payload: bytes) -> tuple[int, bytes]:
    return (method, payload) if len(payload) < len(best[1]) else best


def entropy_bytes(n_ones: int, n_bits: int) -> float:
    """What independent bits of this density would take."""
    if n_ones in (0, n_bits):
        return 0.0
    return (
        n_bits * math.log2(n_bits) - n_ones * math.log2(n_ones) - (n_bits - n_ones) * math.log2(n_bits - n_ones)
    ) / 8


def write_gaps(flat: NDArray[np.bool_]) -> bytes:
    """How many are True, then the runs of False before each, Rice coded."""
    from laconic.wire import kernels

    gaps = np.diff(np.flatnonzero(flat), prepend=-1) - 1
    if not gaps.size:
        return write_varint(0)
    shift, n_bits = choose_shift(gaps)
    buffer = np.zeros(-(-n_bits // 8), np.uint8)
    kernels.write_rice(gaps, shift, buffer)
    return write_varint(gaps.size) + bytes([shift]) + buffer.tobytes()


def read_gaps(reader: Reader, n_bits: int) -> NDArray[np.bool_]:
    from laconic.wire import kernels

    flat = np.zeros(n_bits, bool)
    n_gaps = reader.varint(min(n_bits, 8 * reader.n_left))  # each takes a bit or more
    if n_gaps:
        shift = reader.varint(40)
        buffer, used, last = np.frombuffer(bytearray(reader.data[reader.at :]), np.uint8), 0, -1
        for at in range(0, n_gaps, CHUNK):
            places = np.zeros(min(CHUNK, n_gaps - at), np.int64)
            used = kernels.read_rice(places, shift, buffer, used)
            if used < 0 or places.max() >= n_bits:  # no sum of these can overflow
                raise WireError(f"{n_gaps} gaps run over the {n_bits} bits they should fit")
            places += 1
            np.cumsum(places, out=places)
            places += last
            last = int(places[-1])
            if last >= n_bits:
                raise WireError(f"{n_gaps} gaps run over the {n_bits} bits they should fit")
            flat[places] = True
        reader.take(-(-used // 8))
    return flat


def choose_shift(values: NDArray[np.integer[Any]]) -> tuple[int, int]:
    """The Rice parameter that takes fewest bits, and how many."""
    guess = max(int(float(values.mean()) * 0.69 + 1).bit_length() - 1, 0)
    sizes = {
        shift: int((values >> shift).sum()) + values.size * (shift + 1) for shift in range(max(guess - 1, 0), guess + 2)
    }
    shift = min(sizes, key=sizes.__getitem__)
    return shift, sizes[shift]


def write_prior(n_ones: int, n_bits: int) -> int:
    """A rate as a byte: three bits below the leading one, and where that stands."""
    chance = min(int((n_ones + 0.4) / (n_bits + 0.8) * (1 << 22)), 15 << 18)
    exponent = max(chance.bit_length() - 4, 0)
    return exponent << 3 | max((chance >> exponent) - 8, 0)


def read_prior(byte: int) -> int:
    return (8 + (byte & 7)) << (byte >> 3)


def find_lag(bits: NDArray[np.bool_]) -> int:
    """The distance along a row at which ones most often meet (a patch's width, say), 4 to 63."""
    rows = as_rows(bits)
    rows = rows[: max((1 << 16) // rows.shape[1], 1), : 1 << 16]
    lags = range(4, max(min(64, rows.shape[1] // 2), 5))
    return max(lags, key=lambda lag: np.count_nonzero(rows[:, lag:] & rows[:, :-lag]) / max(rows.shape[1] - lag, 1))


def is_noise(bits: NDArray[np.bool_], alone_bytes: float) -> bool:
    """Whether neither density nor, tried on a sample, the surroundings tell anything about a bit."""
    rows = as_rows(bits)
    if alone_bytes < 0.97 * bits.size / 8 or bits.size < 1 << 15:
        return False
    sample = rows[: max((1 << 14) // rows.shape[1], 1), : 1 << 14]
    return len(run_model(sample, None, bytes([write_prior(1, 2)]), 4, sample.size)) > 0.98 * sample.size / 8


def as_rows(bits: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return bits.reshape(-1, bits.shape[-1] if bits.ndim > 1 else bits.size)


def with_margins(bits: NDArray[np.bool_]) -> NDArray[np.uint8]:
    rows = as_rows(bits)
    out = margins_alone(bits.shape)
    out[1:, 1:-1] = rows
    return out


def margins_alone(shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Zeros, for bits of this shape to be read into."""
    n_columns = shape[-1] if len(shape) > 1 else math.prod(shape)
    return np.zeros((math.prod(shape) // n_columns + 1, n_columns + 2), np.uint8)


def run_model(bits: NDArray[np.bool_], base: NDArray[np.bool_] | None, priors: bytes, lag: int, limit: int) -> bytes:
    """The model's code, or `limit` bytes of nothing where it would be longer."""
    from laconic.wire import kernels

    padded, buffer = with_margins(bits), np.zeros(limit, np.uint8)
    known = NOTHING_KNOWN if base is None else with_margins(base)
    chances = np.array([read_prior(byte) for byte in priors] * 2)
    n_bytes = kernels.code_bits(padded, known, chances, lag, buffer, False)
    return buffer[:n_bytes].tobytes()


def read_model(reader: Reader, shape: tuple[int, ...], base: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    from laconic.wire import kernels

    lag = reader.byte() if base is None else 0
    if base is None and not 4 <= lag < 64:
        raise WireError(f"lag {lag}; 4 to 63 was expected")
    priors = reader.take(1 if base is None else 2)
    if max(priors) > MAX_PRIOR:
        raise WireError(f"prior {max(priors)}; at most {MAX_PRIOR} was expected")
    padded = margins_alone(shape)
    known = NOTHING_KNOWN if base is None else with_margins(base)
    buffer = np.frombuffer(bytearray(reader.take(reader.n_left)), np.uint8)
    used = kernels.code_bits(padded, known, np.array([read_prior(byte) for byte in priors] * 2), lag, buffer, True)
    if used < len(buffer):
        raise WireError(f"{len(buffer) - used} bytes too many after the bits")
    return padded[1:, 1:-1].astype(np.bool_).reshape(shape)


def run_sized(flat: NDArray[np.bool_], sizes: Sizes, limit: int) -> bytes:
    """The bits by their sizes, or `limit` bytes of nothing where that would be longer."""
    from laconic.wire import kernels

    buffer = np.zeros(limit, np.uint8)
    n_bytes = kernels.code_sized(flat.astype(np.uint8), sizes, buffer, False)
    return buffer[:n_bytes].tobytes()


def read_sized(payload: bytes | memoryview, sizes: Sizes) -> NDArray[np.bool_]:
    from laconic.wire import kernels

    flat, buffer = np.zeros(sizes.size, np.uint8), np.frombuffer(bytearray(payload), np.uint8)
    used = kernels.code_sized(flat, sizes, buffer, True)
    if used < len(buffer):
        raise WireError(f"{len(buffer) - used} bytes too many after the bits")
    return flat.view(np.bool_)
