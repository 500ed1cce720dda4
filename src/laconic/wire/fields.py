"""One field to bytes and back: numbers and text as they are, arrays as a block (method, dtype, shape, code)."""

import math
import struct
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from laconic.wire import bits, floats, ints
from laconic.wire.buffer import MAX_RANK, Reader, WireError, write_varint
from laconic.wire.expected import Due, check_chosen, check_size
from laconic.wire.message import CARRIERS, DTYPES, Sparse, are_same, plain

FLOAT_FORMATS = ("<e", "<f", "<d")  # a float travels in the first that holds it exactly; one byte says which
SAME = 15  # as in the base; no code follows
NAMES = {"bits": bits.NAMES, "ints": ints.NAMES, "floats": floats.NAMES}
SCALAR_METHODS = {"int": "varint", "float": "float", "str": "text"}
BOOL = np.dtype(bool)


class Part(NamedTuple):
    """A field as sent: how, and what memory it claims at the reader (none if the base tells its shape)."""

    data: bytes
    method: str
    on_base: bool
    claimed_bytes: int


def write_field(kind: str, value: Any, base: Any, *, tight: bool) -> Part:
    """tight: search for the shortest form; else the plain one."""
    kind = CARRIERS.get(kind, kind)
    if value is None or kind == "bool":
        return Part(b"", "flag", False, 0)
    if kind == "int":
        return Part(write_varint(value << 1 if value >= 0 else ~(value << 1)), "varint", False, 0)
    if kind == "float":
        return Part(write_float(value), "float", False, 0)
    if kind == "str":
        return Part(bytes([len(value.encode())]) + value.encode(), "text", False, 0)
    if kind == "sparse":
        return write_sparse(value, base, tight=tight)
    return write_block(kind, value, base, tight=tight)


def read_field(reader: Reader, field: tuple[str, str], base: Any, due: Due | None, *, is_last: bool) -> Any:
    """field: name and kind. is_last: the last array of a message runs to its end and has no length before it."""
    name, kind = field[0], CARRIERS.get(field[1], field[1])
    if kind == "int":
        number = reader.varint()
        return number >> 1 ^ -(number & 1)
    if kind == "float":
        return read_float(reader)
    if kind == "str":
        return read_text(reader)
    block = Reader(reader.take(reader.n_left if is_last else reader.varint()), reader.allowance)
    value: Any
    if kind == "sparse":
        value = read_sparse(block, name, base, due)
    else:
        value = read_block(block, kind, base, None if due is None else partial(check_size, name, due))
    block.finish()
    reader.allowance = block.allowance
    return value


def find_part(kind: str, data: bytes, *, has_length: bool) -> Part:
    """Of a field that was read: has_length: its array has one before it."""
    kind = CARRIERS.get(kind, kind)
    if not data or kind in SCALAR_METHODS:
        return Part(data, SCALAR_METHODS.get(kind, "flag") if data else "flag", False, 0)
    reader = Reader(data, 0)
    if has_length:
        reader.varint()
    blocks = [(kind, reader.data[reader.at])]
    if kind == "sparse":
        n_mask = reader.varint()
        blocks = [("bits", reader.data[reader.at]), ("floats", reader.data[reader.at + n_mask])]
    methods = [(kind, head & 15) for kind, head in blocks]
    names = ["same" if method == SAME else NAMES[kind][method] for kind, method in methods]
    return Part(data, ", ".join(names), any(method >= 8 for _, method in methods), 0)


def write_float(value: float) -> bytes:
    exact = struct.pack("<d", value)
    for code, letters in enumerate(FLOAT_FORMATS[:-1]):
        try:
            short = struct.pack(letters, value)
        except OverflowError:  # too large for this format
            continue
        if struct.pack("<d", *struct.unpack(letters, short)) == exact:
            return bytes([code]) + short
    return bytes([len(FLOAT_FORMATS) - 1]) + exact


def read_float(reader: Reader) -> float:
    letters = FLOAT_FORMATS[reader.varint(len(FLOAT_FORMATS) - 1)]
    (value,) = struct.unpack(letters, reader.take(struct.calcsize(letters)))
    return float(value)


def read_text(reader: Reader) -> str:
    raw = reader.take(reader.byte())
    try:
        return bytes(raw).decode()
    except UnicodeDecodeError as error:
        raise WireError(f"text of {len(raw)} bytes is no UTF-8: {error.reason}") from None


def write_block(
    kind: str,
    array: NDArray[Any],
    base: NDArray[Any] | None,
    *,
    tight: bool,
    send_shape: bool = True,
    sizes: bits.Sizes | None = None,
) -> Part:
    """sizes: of the base's numbers, for a mask."""
    array = plain(array)
    start = None if base is None else plain(base)
    if start is not None and (start.shape, start.dtype) != (array.shape, array.dtype):
        start = None
    if start is not None and are_same(array, start):
        return Part(bytes([SAME]), "same", True, 0)
    method, code = encode_array(kind, array, start, sizes, tight=tight)
    name, on_base = NAMES[kind][method], method >= 8
    if on_base:  # shape and dtype are the base's
        return Part(bytes([method]) + code, name, True, 0)
    shape = bytes([array.ndim]) + b"".join(map(write_varint, array.shape)) if send_shape else b""
    head = bytes([method | DTYPES.index(array.dtype) << 4])
    return Part(head + shape + code, name, False, math.prod(max(n, 1) for n in array.shape) * array.itemsize)


def read_block(
    reader: Reader,
    kind: str,
    base: NDArray[Any] | None,
    check: Callable[[tuple[int, ...], int], None] | None = None,
    shape: tuple[int, ...] | None = None,
    sizes: bits.Sizes | None = None,
) -> NDArray[Any]:
    """check: of shape and bytes a number. shape: given if it was not sent; sizes: of the base's numbers, for a mask."""
    head = reader.byte()
    method, dtype = head & 15, DTYPES[min(head >> 4, len(DTYPES) - 1)]
    if method >= 8:
        if base is None or head >> 4:
            raise WireError(f"{kind} are coded by {head}, against a base that lacks them")
        base = plain(base)
        shape, dtype = base.shape, base.dtype
    else:
        base = None
        if shape is None:
            shape = tuple(reader.varint() for _ in range(reader.varint(MAX_RANK)))
    if check is not None:
        check(shape, dtype.itemsize)
    if base is None:
        reader.claim(shape, dtype.itemsize)
    if head >> 4 >= len(DTYPES) or (kind == "bits") != (dtype == BOOL) or (kind == "floats") != (dtype.kind == "f"):
        raise WireError(f"{kind} of dtype number {head >> 4}")
    if method == SAME and base is not None:
        return base.copy()
    if method not in NAMES[kind] or (method and not math.prod(shape)):
        raise WireError(f"{kind} of shape {shape} coded by method {method}; known are {NAMES[kind]}")
    code = reader.take(reader.n_left)
    if kind == "bits":
        return bits.decode(method, code, shape, base, sizes)
    if kind == "ints":
        return ints.decode(method, code, shape, dtype, base)
    return floats.decode(method, code, shape, dtype, base)


def encode_array(
    kind: str, array: NDArray[Any], base: NDArray[Any] | None, sizes: bits.Sizes | None, *, tight: bool
) -> tuple[int, bytes]:
    if kind == "bits":
        return bits.encode(array, base, sizes) if tight else (bits.PACKED, np.packbits(array).tobytes())
    if not tight:
        return ints.PLAIN, array.tobytes()
    return ints.encode(array, base) if kind == "ints" else floats.encode(array, base)


def write_sparse(sparse: Sparse, base: Sparse | None, *, tight: bool) -> Part:
    """The mask's block with its length before it, then the values'; their number is the mask's."""
    if base is not None and base.mask.shape != sparse.mask.shape:
        base = None
    held = None if base is None else plain(base.dense())  # zero where the base has nothing
    sizes = None if held is None else floats.sizes(held)
    mask = write_block("bits", sparse.mask, None if base is None else base.mask, tight=tight, sizes=sizes)
    expected = None if held is None else held.ravel()[np.flatnonzero(sparse.mask)]
    values = write_block("floats", sparse.values, expected, tight=tight, send_shape=False)
    return Part(
        write_varint(len(mask.data)) + mask.data + values.data,
        f"{mask.method}, {values.method}",
        mask.on_base or values.on_base,
        mask.claimed_bytes + values.claimed_bytes,
    )


def read_sparse(reader: Reader, name: str, base: Sparse | None, due: Due | None) -> Sparse:
    check = None if due is None else partial(check_size, name, due)
    held = None if base is None else plain(base.dense())
    sizes = None if held is None else floats.sizes(held)
    block = Reader(reader.take(reader.varint()), reader.allowance)
    mask = read_block(block, "bits", None if base is None else base.mask, check, sizes=sizes)
    block.finish()
    reader.allowance = block.allowance
    shape = (int(np.count_nonzero(mask)),)
    if due is not None:
        check_chosen(name, due, *shape)
        check = partial(check_size, name, due._replace(shape=shape))
    start = held.ravel()[np.flatnonzero(mask)] if held is not None and held.shape == mask.shape else None
    return Sparse(mask, read_block(reader, "floats", start, check, shape))
