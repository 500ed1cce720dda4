"""Messages to bytes and back: a head, each field in the shortest form found, a checksum (see docs/wire.md)."""

import math
import zlib
from typing import Any, NamedTuple, TypedDict, TypeVar, Unpack

import numpy as np

from laconic.wire import ints
from laconic.wire.buffer import Reader, WireError, write_varint
from laconic.wire.expected import Expected, Length, UpTo, check_entries, check_expected, check_presence
from laconic.wire.fields import Part, find_part, read_field, write_field
from laconic.wire.message import ARRAY_KINDS, CARRIERS, MAX_TEXT_BYTES, Message, Sparse, plain

VERSION = 1
MAX_BYTES = 1 << 28  # of arrays in one message, unless the caller says otherwise
FREE_BYTES = 1 << 24  # what a message of few bytes may ask us to hold
PAID_BYTES = 1 << 12  # and for each byte that it has, this much more
CHECKSUM_BYTES = 4
MOST_BYTES = {"int": 10, "float": 9, "bool": 0, "str": MAX_TEXT_BYTES + 1}
MOST_BYTES |= {kind: MOST_BYTES[carrier] for kind, carrier in CARRIERS.items() if carrier in MOST_BYTES}

M = TypeVar("M", bound=Message)


class Encoded(NamedTuple):
    data: bytes
    fields: dict[str, Part]

    @property
    def envelope_bytes(self) -> int:
        return len(self.data) - sum(len(part.data) for part in self.fields.values())


def encode(message: Message, base: Message | None = None) -> bytes:
    """Bytes that decode to an equal message; base: one of the same class that the other end holds too."""
    return encode_detailed(message, base).data


def size(message: Message, base: Message | None = None) -> int:
    return len(encode(message, base))


def bound(message: Message) -> int:
    """Most bytes that any message with arrays of these shapes and types can take, base or not.

    Of a Sparse the number of values counts, not which they are: name one with as many as may come to be kept.
    """
    total = head_width(len(flag_names(type(message)))) + CHECKSUM_BYTES
    for name, kind, _ in message.schema:
        value = getattr(message, name)
        if isinstance(value, Sparse):
            total += bound_array(value.mask.shape, 1) + bound_array(value.values.shape, 8 * value.values.itemsize)
        elif isinstance(value, np.ndarray):
            n_bits = 1 if kind == "bits" else 8 * value.itemsize
            if name in message.limits:  # a byte for Rice's parameter is in the bound of the array
                n_bits = min(n_bits, ints.most_bits(message.limits[name]))
            total += bound_array(value.shape, n_bits)
        elif value is not None:
            total += MOST_BYTES[kind]
    return total


def most_bytes(cls: type[Message], expected: Expected) -> float:
    """Most bytes of a message that is as expected; inf if a field that could be of any size is not named."""
    total: float = head_width(len(flag_names(cls))) + CHECKSUM_BYTES
    for name, kind, _ in cls.schema:
        due = expected.get(name)
        if not is_array(kind):
            total += 0 if name in expected and due is None else MOST_BYTES[kind]
        elif name not in expected:
            return math.inf
        elif due is not None:
            shape = tuple(map(most_length, due.shape))
            total += bound_array(shape, 1 if kind in ("bits", "sparse") else 8 * due.item_bytes)
            if kind == "sparse":
                n_chosen = math.prod(shape) if due.n_chosen is None else most_length(due.n_chosen)
                total += bound_array((n_chosen,), 8 * due.item_bytes)
    return total


def most_length(length: Length) -> int:
    return length.most if isinstance(length, UpTo) else length


def bound_array(shape: tuple[int, ...], n_bits: int) -> int:
    """Packed or plain, behind its length, method and shape."""
    return 10 + 2 + sum(len(write_varint(n)) for n in shape) + -(-math.prod(shape) * n_bits // 8)


def encode_detailed(message: Message, base: Message | None = None) -> Encoded:
    """The bytes, and which of them each field took by what method."""
    check_base(type(message), base)
    encoded = assemble(message, base, tight=True)
    claimed_bytes = sum(part.claimed_bytes for part in encoded.fields.values())
    if claimed_bytes > allowance(len(encoded.data)):  # so well compressed that a reader would take it for a bomb
        return assemble(message, base, tight=False)
    return encoded


class Limits(TypedDict, total=False):
    """Of what a reader takes."""

    expected: Expected | None  # of fields, by name; a message that is otherwise is refused before they are read
    must_be_finite: bool  # all floats in it
    max_bytes: int  # most memory its arrays may take


def decode(cls: type[M], data: bytes, base: Message | None = None, **limits: Unpack[Limits]) -> M:
    """The message in these bytes, else WireError."""
    return decode_detailed(cls, data, base, itemise=False, **limits)[0]


def decode_detailed(
    cls: type[M],
    data: bytes,
    base: Message | None = None,
    *,
    expected: Expected | None = None,
    must_be_finite: bool = False,
    max_bytes: int = MAX_BYTES,
    itemise: bool = True,
) -> tuple[M, Encoded]:
    """The message, and which bytes each field took by what method: as its writer's encode_detailed said."""
    check_base(cls, base)
    expected = expected or {}
    check_expected(cls, expected)
    names = flag_names(cls)
    n_head, n_check = head_width(len(names)), 2 if len(data) < 258 else 4
    if len(data) < n_head + n_check:
        raise WireError(f"{len(data)} bytes are too few for a {cls.__name__}")
    head = int.from_bytes(data[:n_head], "little")
    version, on_base, flags = head & 15, head >> 4 & 1, head >> 5
    if version != VERSION:
        raise WireError(f"version {version}; this end speaks version {VERSION}")
    if on_base and base is None:
        raise WireError(f"this {cls.__name__} was coded against an earlier one; pass that as base")
    body = memoryview(data)[:-n_check]
    if data[-n_check:] != checksum(cls, body, base if on_base else None):
        raise WireError(f"checksum fails: damaged, no {cls.__name__}, or coded against another base")
    if flags >> len(names):
        raise WireError(f"flags {flags:b}; {cls.__name__} has {len(names)}")
    is_set = {name: bool(flags >> k & 1) for k, name in enumerate(names)}
    check_presence(expected, is_set)
    reader = Reader(body, min(allowance(len(data)), max_bytes))
    reader.take(n_head)
    last = last_array(cls, is_set)
    values: dict[str, Any] = {}
    parts: dict[str, Part] = {}
    for name, kind, optional in cls.schema:
        before = reader.at
        if optional and not is_set["has " + name]:
            values[name] = None
        elif kind == "bool":
            values[name] = is_set[name]
        else:
            due, start = expected.get(name), getattr(base, name) if on_base else None
            values[name] = read_field(reader, (name, kind), start, due, is_last=name == last)
            check_entries(name, values[name], due.most if due else math.inf, must_be_finite=must_be_finite)
        if itemise:
            parts[name] = find_part(kind, bytes(body[before : reader.at]), has_length=name != last)
    reader.finish()
    try:
        return cls(**values), Encoded(data, parts)
    except TypeError as error:  # beyond the limits of its kind
        raise WireError(str(error)) from None


def assemble(message: Message, base: Message | None, *, tight: bool) -> Encoded:
    cls, parts = type(message), {}
    has = {"has " + name: getattr(message, name) is not None for name, _, _ in message.schema}
    is_set = {name: has[name] if name in has else bool(getattr(message, name)) for name in flag_names(cls)}
    last = last_array(cls, is_set)
    for name, kind, _ in message.schema:
        part = write_field(kind, getattr(message, name), getattr(base, name, None), tight=tight)
        if part.data and is_array(kind) and name != last:
            part = part._replace(data=write_varint(len(part.data)) + part.data)
        parts[name] = part
    on_base = any(part.on_base for part in parts.values())
    head = VERSION | on_base << 4 | sum(flag << k for k, flag in enumerate(is_set.values(), start=5))
    body = head.to_bytes(head_width(len(is_set)), "little") + b"".join(part.data for part in parts.values())
    return Encoded(body + checksum(cls, body, base if on_base else None), parts)


def check_base(cls: type[Message], base: Message | None) -> None:
    if base is not None and type(base) is not cls:
        raise ValueError(f"base is a {type(base).__name__}; a {cls.__name__} was expected")


def flag_names(cls: type[Message]) -> list[str]:
    """What the head's flags stand for: "has x" for each field that may be None, "x" for each bool."""
    return [
        flag
        for name, kind, optional in cls.schema
        for flag, is_due in (("has " + name, optional), (name, kind == "bool"))
        if is_due
    ]


def head_width(n_flags: int) -> int:
    return -(-(5 + n_flags) // 8)


def is_array(kind: str) -> bool:
    return kind in ARRAY_KINDS or kind == "sparse"


def last_array(cls: type[Message], is_set: dict[str, bool]) -> str | None:
    """The array that needs no length, because nothing follows it."""
    present = [field for field in cls.schema if field.kind != "bool" and is_set.get("has " + field.name, True)]
    return present[-1].name if present and is_array(present[-1].kind) else None


def allowance(n_bytes: int) -> int:
    return FREE_BYTES + PAID_BYTES * n_bytes


def checksum(cls: type[Message], body: bytes | memoryview, base: Message | None) -> bytes:
    """CRC-32 of schema, base and body, so that none of them can differ unnoticed; its low half if the body is short.

    The link below guards against noise; this is for mistaken bases and classes, which show again in the next message.
    So two bytes do where four would be a sixth of the message.
    """
    crc = zlib.crc32(repr((cls.__name__, *map(tuple, cls.schema))).encode())
    for name, _, _ in cls.schema if base is not None else ():
        value = getattr(base, name)
        for part in value if isinstance(value, Sparse) else (value,):
            if isinstance(part, np.ndarray):
                crc = zlib.crc32(repr((part.shape, part.dtype.name)).encode(), crc)
                crc = zlib.crc32(plain(part).ravel().view(np.uint8).data, crc)
            else:
                crc = zlib.crc32(repr(part).encode(), crc)
    return zlib.crc32(body, crc).to_bytes(4, "little")[: 2 if len(body) < 256 else 4]
