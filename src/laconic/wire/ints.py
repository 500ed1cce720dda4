"""Integers: plain, Rice, byte planes, or a model of their bit lengths; as they are or as steps from the base."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.wire import planes
from laconic.wire.bits import choose_shift, shorter
from laconic.wire.buffer import CHUNK, Payload, Shape, WireError, chunks_of, gather

PLAIN, RICE, PLANES, MODEL = 0, 1, 2, 3
ON_BASE = 8  # added to a method: what it codes are steps from the base
NAMES = {PLAIN: "plain", RICE: "rice", PLANES: "planes", MODEL: "model"}
NAMES |= {ON_BASE + method: f"{NAMES[method]} on base" for method in (RICE, PLANES, MODEL)}
MAX_MODELLED = 1 << 18  # the model takes half a microsecond a number; beyond this, planes must do
MAX_RICE = 1 << 40


def most_bits(limit: int) -> int:
    """That a whole number within ±limit takes, by Rice code, be it the number or its step from the base."""
    return 1 + (4 * limit).bit_length()


def encode(array: NDArray[np.integer[Any]], base: NDArray[np.integer[Any]] | None) -> tuple[int, bytes]:
    """The shortest form found, and which; steps or numbers are left untried where their sizes say so."""
    best, values = (PLAIN, array.tobytes()), as_int64(array)
    n_columns = array.shape[-1] if array.ndim else 1
    if base is None or not array.size:
        return encode_values(best, values, n_columns) if array.size else best
    start = as_int64(base)
    steps = values - start
    plain_bits, step_bits = bit_lengths(values).sum(), bit_lengths(steps).sum()
    if step_bits <= plain_bits:
        method, payload = encode_values(best, steps, n_columns, bit_lengths(start))
        best = (method if method == PLAIN else ON_BASE + method, payload)
    if plain_bits <= 1.3 * step_bits:
        best = encode_values(best, values, n_columns)
    return best


def encode_values(
    best: tuple[int, bytes], values: NDArray[np.int64], n_columns: int, hints: NDArray[np.int64] | None = None
) -> tuple[int, bytes]:
    """The shortest of `best` and the ways to write these numbers."""
    unsigned = zigzag(values)
    if unsigned.max() < MAX_RICE:
        best = shorter(best, RICE, write_rice(unsigned.astype(np.int64), len(best[1])))
    if values.size <= MAX_MODELLED:
        best = shorter(best, MODEL, write_model(values, hints, n_columns, len(best[1])))
    narrow = unsigned.astype(np.min_scalar_type(unsigned.max()))
    return shorter(best, PLANES, bytes([narrow.itemsize]) + planes.squeeze(narrow))


def decode(
    method: int, payload: Payload, shape: Shape, dtype: np.dtype[Any], base: NDArray[np.integer[Any]] | None
) -> NDArray[np.integer[Any]]:
    """base: given for the methods that need it."""
    if method == PLAIN:
        return read_plain(payload, shape, dtype)
    chunks = decode_values(method % ON_BASE, payload, shape, dtype, base)
    if base is not None:
        chunks = (as_int64(start) + steps for start, steps in zip(chunks_of(base.ravel()), chunks, strict=True))
    return gather((from_int64(values, dtype) for values in chunks), math.prod(shape), dtype).reshape(shape)


def read_plain(payload: bytes | memoryview, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    n_bytes = math.prod(shape) * dtype.itemsize
    if len(payload) != n_bytes:
        raise WireError(f"{len(payload)} bytes of {dtype}; shape {shape} takes {n_bytes}")
    return np.frombuffer(payload, dtype).reshape(shape).copy()


def decode_values(
    method: int, payload: Payload, shape: Shape, dtype: np.dtype[Any], base: NDArray[np.integer[Any]] | None
) -> Iterator[NDArray[np.int64]]:
    """In chunks: numbers of this dtype, or their steps from the base's."""
    n = math.prod(shape)
    if method == RICE:
        yield from read_rice(payload, n)
    elif method == MODEL:
        yield from chunks_of(read_model(payload, shape, 8 * dtype.itemsize, None if base is None else base.ravel()))
    else:
        width = payload[0] if payload else 0
        if width not in (1, 2, 4, 8) or width > 2 * dtype.itemsize:  # zig-zag may take a bit more than the dtype has
            raise WireError(f"planes of {width} bytes; 1, 2, 4 or 8 was expected, and at most twice {dtype}'s")
        for some in planes.unsqueeze(payload[1:], n, np.dtype(f"<u{width}")):
            yield unzigzag(some).astype(np.int64)


def write_rice(values: NDArray[np.int64], limit: int) -> bytes:
    """Rice code, or `limit` bytes of nothing where it would be longer."""
    from laconic.wire import kernels

    shift, n_bits = choose_shift(values)
    if n_bits >= 8 * limit:
        return bytes(limit)
    buffer = np.zeros(-(-n_bits // 8), np.uint8)
    kernels.write_rice(values, shift, buffer)
    return bytes([shift]) + buffer.tobytes()


def read_rice(payload: bytes | memoryview, n: int) -> Iterator[NDArray[np.int64]]:
    from laconic.wire import kernels

    if not payload or payload[0] > 40 or n > 8 * len(payload):
        raise WireError(f"{len(payload)} bytes cannot hold {n} Rice codes")
    buffer, used = np.frombuffer(bytearray(payload[1:]), np.uint8), 0
    for at in range(0, n, CHUNK):
        values = np.zeros(min(CHUNK, n - at), np.int64)
        used = kernels.read_rice(values, payload[0], buffer, used)
        if used < 0:
            break
        yield (values >> 1) ^ -(values & 1)
    if -(-used // 8) != len(buffer):
        raise WireError(f"{len(payload)} bytes of Rice codes are not the {n} due")


def write_model(values: NDArray[np.int64], hints: NDArray[np.int64] | None, n_columns: int, limit: int) -> bytes:
    """The model's code, or `limit` bytes of nothing where it would be longer."""
    from laconic.wire import kernels

    widest, buffer = int(bit_lengths(values).max()), np.zeros(limit, np.uint8)
    known = np.zeros(values.size, np.uint8) if hints is None else hints.astype(np.uint8)
    n_bytes = kernels.code_integers(values.copy(), known, n_columns, widest, buffer, False)
    return bytes([widest]) + buffer[:n_bytes].tobytes()


def read_model(
    payload: bytes | memoryview,
    shape: tuple[int, ...],
    n_bits: int,
    base: NDArray[np.integer[Any]] | None,
    most: int = MAX_MODELLED,
) -> NDArray[np.int64]:
    """Flat. n_bits: of a number, so that no more are read for any; most: that a writer would have modelled."""
    from laconic.wire import kernels

    n, n_columns, widest = math.prod(shape), shape[-1] if shape else 1, payload[0] if payload else 255
    if widest > n_bits or n > most:
        raise WireError(f"{n} numbers of {widest} bits modelled; at most {most} of up to {n_bits} bits were expected")
    hints = np.zeros(n, np.uint8)
    if base is not None:
        hints = gather((bit_lengths(as_int64(some)) for some in chunks_of(base)), n, hints.dtype)
    values, buffer = np.zeros(n, np.int64), np.frombuffer(bytearray(payload[1:]), np.uint8)
    used = kernels.code_integers(values, hints, n_columns, widest, buffer, True)
    if used < len(buffer):
        raise WireError(f"the {len(buffer)} bytes of the model's code are not {n} numbers")
    return values


def as_int64(array: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Flat; uint64 wraps, which loses nothing."""
    return array.ravel().astype(np.int64)


def from_int64(values: NDArray[np.int64], dtype: np.dtype[Any]) -> NDArray[np.integer[Any]]:
    if dtype.itemsize < 8:
        bounds = np.iinfo(dtype)
        if values.min() < bounds.min or values.max() > bounds.max:
            raise WireError(f"numbers from {values.min()} to {values.max()} do not fit {dtype}")
    return values.astype(dtype)


def bit_lengths(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """0 for 0, 1 for 1, 2 for 2 and 3, ... of the size without its sign, as kernels.code_integers counts them."""
    sizes = np.abs(values).view(np.uint64)
    lengths = np.frexp(sizes.astype(np.float64))[1].astype(np.int64)
    rounded_up = (lengths > 0) & (sizes >> (lengths - 1).clip(0, 63).astype(np.uint64) == 0)
    return np.asarray(lengths - rounded_up)


def zigzag(values: NDArray[np.signedinteger[Any]]) -> NDArray[np.unsignedinteger[Any]]:
    """0, -1, 1, -2, ... as 0, 1, 2, 3, ... at the same width."""
    return ((values << 1) ^ (values >> (8 * values.itemsize - 1))).view(f"<u{values.itemsize}")


def unzigzag(unsigned: NDArray[np.unsignedinteger[Any]]) -> NDArray[np.signedinteger[Any]]:
    return ((unsigned >> 1) ^ -(unsigned & 1)).view(f"<i{unsigned.itemsize}")
