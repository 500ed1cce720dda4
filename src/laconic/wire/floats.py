"""Floats, bit for bit: plain, byte planes, or as integers in the order of their values, under a model.

That of singles looks for numbers that follow from those before them; the others' is the integers'.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.wire import ints, planes
from laconic.wire.bits import shorter
from laconic.wire.buffer import Payload, Shape, WireError, chunks_of, gather

PLAIN, PLANES, MODEL = ints.PLAIN, ints.PLANES, ints.MODEL
LINES = 4
PLANES_ON_BASE, MODEL_ON_BASE, LINES_ON_BASE = (ints.ON_BASE + method for method in (PLANES, MODEL, LINES))
NAMES = {method: ints.NAMES[method] for method in (PLAIN, PLANES, MODEL, PLANES_ON_BASE, MODEL_ON_BASE)}
NAMES |= {LINES: "lines", LINES_ON_BASE: "lines on base"}
MAX_MODELLED = 1 << 15  # beyond it the model takes longer than its few percent are worth
MAX_TRIED = 1 << 12  # numbers for which every model is tried; of more, stretches tell which is to be
N_STRETCHES, STRETCH = 8, 256
MAX_SAMPLED = 1 << 14  # numbers that tell which form of many is shorter


def encode(array: NDArray[np.floating[Any]], base: NDArray[np.floating[Any]] | None) -> tuple[int, bytes]:
    """The shortest form found, and which."""
    best = (PLAIN, array.tobytes())
    if array.size > MAX_MODELLED:
        return encode_many(best, array, base)
    flat, held = array.ravel(), None if base is None else base.ravel()
    n_columns = array.shape[-1] if array.ndim else 1
    for method in list_methods(flat, held, n_columns):
        best = shorter(best, method, write(method, flat, held, n_columns, len(best[1])))
    return best


def list_methods(
    flat: NDArray[np.floating[Any]], held: NDArray[np.floating[Any]] | None, n_columns: int
) -> Iterable[int]:
    """What to try: of many numbers, only that model which is shortest for some of them, since models take long."""
    if not flat.size:
        return ()
    models = (MODEL, LINES) if flat.itemsize == 4 else (MODEL,)
    alone = (PLANES, *models)
    every = alone if held is None else (*alone, *(ints.ON_BASE + method for method in alone))
    if flat.size <= MAX_TRIED:
        return every
    some, start = take_stretches(flat), None if held is None else take_stretches(held)
    by_planes = (PLANES, PLANES_ON_BASE)
    tried = [method for method in every if method not in by_planes]
    chosen = min(tried, key=lambda method: len(write(method, some, start, n_columns, some.nbytes)))
    return *(method for method in every if method in by_planes), chosen


def take_stretches(flat: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """Stretches from all over, since models go by what stood just before; layers differ."""
    starts = np.arange(N_STRETCHES) * (flat.size // N_STRETCHES)
    some: NDArray[np.floating[Any]] = flat[(starts[:, None] + np.arange(STRETCH)).ravel()]
    return some


def write(
    method: int, flat: NDArray[np.floating[Any]], held: NDArray[np.floating[Any]] | None, n_columns: int, limit: int
) -> bytes:
    """The numbers in this form, or `limit` bytes or more of nothing where a model's would be longer."""
    start = held if method >= ints.ON_BASE else None
    if method == PLANES:
        return planes.squeeze(rotate(flat))
    if method in (LINES, LINES_ON_BASE):
        return write_lines(flat, start, limit)
    if start is None:
        return ints.write_model(order(flat).astype(np.int64), None, n_columns, limit)
    if method == PLANES_ON_BASE:
        return planes.squeeze(find_steps(flat, start))
    known = order(start)
    steps, hints = order(flat) - known, ints.bit_lengths(known.astype(np.int64))
    return ints.write_model(steps.astype(np.int64), hints, n_columns, limit)


def encode_many(
    best: tuple[int, bytes], array: NDArray[np.floating[Any]], base: NDArray[np.floating[Any]] | None
) -> tuple[int, bytes]:
    """By planes alone; on the base if every so-manieth number is shorter that way."""
    flat = array.ravel()
    if base is not None:
        held, some = base.ravel(), slice(None, None, array.size // MAX_SAMPLED)
        sample = (np.ascontiguousarray(flat[some]), np.ascontiguousarray(held[some]))
        if len(planes.squeeze(find_steps(*sample))) < len(planes.squeeze(rotate(sample[0]))):
            return shorter(best, PLANES_ON_BASE, planes.squeeze(find_steps(flat, held)))
    return shorter(best, PLANES, planes.squeeze(rotate(flat)))


def find_steps(array: NDArray[np.floating[Any]], base: NDArray[np.floating[Any]]) -> NDArray[np.unsignedinteger[Any]]:
    """From the base's numbers to these, in the order of values; they wrap at their own width, as the way back does."""
    return ints.zigzag(order(array) - order(base))


def decode(
    method: int, payload: Payload, shape: Shape, dtype: np.dtype[Any], base: NDArray[np.floating[Any]] | None
) -> NDArray[np.floating[Any]]:
    """base: given for the methods that need it."""
    if method == PLAIN:
        return ints.read_plain(payload, shape, dtype)
    n, signed, unsigned = math.prod(shape), np.dtype(f"<i{dtype.itemsize}"), np.dtype(f"<u{dtype.itemsize}")
    if method in (PLANES, PLANES_ON_BASE):
        chunks = planes.unsqueeze(payload, n, unsigned)
        return gather(from_planes(chunks, dtype, base), n, dtype).reshape(shape)
    if method in (LINES, LINES_ON_BASE):
        if dtype.itemsize != 4 or n > MAX_MODELLED:
            raise WireError(f"{n} of {dtype} by lines; at most {MAX_MODELLED} of float32 were expected")
        return unorder(ints.from_int64(read_lines(payload, n, base), signed), dtype).reshape(shape)
    start = None if base is None else order(base)
    values = ints.read_model(payload, shape, 8 * dtype.itemsize, start, MAX_MODELLED)
    ordered = ints.from_int64(values, signed)
    return unorder(ordered if start is None else start + ordered, dtype).reshape(shape)


def from_planes(
    chunks: Iterator[NDArray[np.unsignedinteger[Any]]], dtype: np.dtype[Any], base: NDArray[np.floating[Any]] | None
) -> Iterator[NDArray[np.floating[Any]]]:
    if base is None:
        yield from (unrotate(some, dtype) for some in chunks)
    else:
        for start, some in zip(chunks_of(base.ravel()), chunks, strict=True):
            yield unorder(order(start) + ints.unzigzag(some), dtype)


def write_lines(array: NDArray[np.floating[Any]], base: NDArray[np.floating[Any]] | None, limit: int) -> bytes:
    """The code of singles, or `limit` bytes of nothing where it would be longer."""
    from laconic.wire import kernels

    values, buffer = order(array).astype(np.int64), np.zeros(limit, np.uint8)
    start = np.zeros_like(values) if base is None else order(base).astype(np.int64)
    return buffer[: kernels.code_singles(values, start, base is not None, buffer, False)].tobytes()


def read_lines(payload: bytes | memoryview, n: int, base: NDArray[np.floating[Any]] | None) -> NDArray[np.int64]:
    from laconic.wire import kernels

    values, buffer = np.zeros(n, np.int64), np.frombuffer(bytearray(payload), np.uint8)
    start = np.zeros_like(values) if base is None else order(base).astype(np.int64)
    used = kernels.code_singles(values, start, base is not None, buffer, True)
    if used < len(buffer):
        raise WireError(f"the {len(buffer)} bytes of lines are not {n} numbers")
    return values


def order(array: NDArray[np.floating[Any]]) -> NDArray[np.signedinteger[Any]]:
    """Flat integers that rise with the values: 0.0 is 0, -0.0 is -1."""
    return turn_negative(array.ravel().view(f"<i{array.itemsize}"))


def unorder(ordered: NDArray[np.integer[Any]], dtype: np.dtype[Any]) -> NDArray[np.floating[Any]]:
    floats: NDArray[np.floating[Any]] = turn_negative(ordered).view(dtype)
    return floats


def turn_negative(raw: NDArray[Any]) -> NDArray[Any]:
    """All bits but the sign turned over where it is set; its own way back."""
    turned = raw >> (8 * raw.itemsize - 1)
    turned &= np.iinfo(raw.dtype).max
    turned ^= raw
    return turned


def rotate(array: NDArray[np.floating[Any]]) -> NDArray[np.unsignedinteger[Any]]:
    """Sign moved below the mantissa, so that the first byte is all exponent (of float32)."""
    raw: NDArray[np.unsignedinteger[Any]] = array.ravel().view(f"<u{array.itemsize}")
    return np.asarray(raw << 1 | raw >> (8 * array.itemsize - 1))


def unrotate(rotated: NDArray[np.unsignedinteger[Any]], dtype: np.dtype[Any]) -> NDArray[np.floating[Any]]:
    floats: NDArray[np.floating[Any]] = (rotated >> 1 | rotated << (8 * dtype.itemsize - 1)).view(dtype)
    return floats


def sizes(array: NDArray[np.floating[Any]]) -> NDArray[np.uint8]:
    """Flat exponents as bytes, those of doubles cut to the range of singles."""
    raw = array.ravel().view(f"<u{array.itemsize}")
    if array.itemsize == 8:
        return np.clip((raw >> 52 & 2047).astype(np.int64) - 896, 0, 255).astype(np.uint8)
    return (raw >> (23 if array.itemsize == 4 else 10) & (255 if array.itemsize == 4 else 31)).astype(np.uint8)
