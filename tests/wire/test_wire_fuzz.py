import tracemalloc

import numpy as np
import pytest
from test_codec import TYPICAL
from wire_samples import Everything, OneBits, OneFloats, OneInts, OneSparse, everything

from laconic.wire import EMPTY, Message, Sparse, WireError, decode, encode
from laconic.wire.buffer import write_varint
from laconic.wire.codec import VERSION, checksum

MAX_BYTES = 1 << 16


def read_or_refuse(cls, data, base=None):
    """Whether these bytes are a message; anything but a message or WireError fails the test."""
    try:
        message = decode(cls, data, base, max_bytes=MAX_BYTES)
    except WireError:
        return False
    assert type(message) is cls
    return True


def sign(cls, body, base=None):
    """The body with the checksum that its head calls for, so that the decoders behind it are reached."""
    return body + checksum(cls, body, base if body[:1] and body[0] & 16 else None)


def shaped(*dims, method=0, dtype=0):
    """A body whose only field is an array that claims this shape."""
    return bytes([VERSION, method | dtype << 4, len(dims)]) + b"".join(map(write_varint, dims))


def mutate(rng, body):
    """Some bytes changed, cut, doubled or put in."""
    out = bytearray(body)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(0, len(out) + 1))
        match rng.integers(0, 5):
            case 0 | 1:
                if at < len(out):
                    out[at] = rng.integers(0, 256) if rng.random() < 0.5 else out[at] ^ 1 << rng.integers(0, 8)
            case 2:
                del out[at : at + int(rng.integers(1, 9))]
            case 3:
                out[at:at] = out[at // 2 : at]
            case 4:
                out[at:at] = rng.bytes(int(rng.integers(1, 5)))
    return bytes(out)


def victims():
    for cls, _, arrays in TYPICAL:
        message, base = (None if array is None else cls(array.reshape(-1)[:600]) for array in arrays)
        yield message, base
    rng = np.random.default_rng(0)
    vector = rng.normal(size=300).astype(np.float16)
    sparse = [OneSparse(Sparse.of(vector, rng.random(300) < share)) for share in (0.2, 0.3)]
    yield sparse[0], sparse[1]
    for seed in range(3):
        yield everything(seed), everything(seed + 1)
    yield EMPTY, None


@pytest.mark.parametrize(("message", "base"), list(victims()), ids=lambda m: type(m).__name__)
def test_damaged_messages_are_refused_or_read_and_never_crash(message, base):
    rng = np.random.default_rng(1)
    cls, data = type(message), encode(message, base)
    body = data[: -2 if len(data) < 258 else -4]
    assert sign(cls, body, base) == data
    for _ in range(250):
        read_or_refuse(cls, sign(cls, mutate(rng, body), base), base)


def test_damage_without_a_mended_checksum_is_refused():
    rng = np.random.default_rng(2)
    message = everything(0)
    data = encode(message)
    for _ in range(300):
        damaged = mutate(rng, data)
        assert damaged == data or not read_or_refuse(Everything, damaged)


@pytest.mark.parametrize("cls", [OneBits, OneInts, OneFloats, OneSparse, Everything, Message])
def test_random_bytes_are_refused_or_read_and_never_crash(cls):
    rng = np.random.default_rng(3)
    n_read = 0
    for _ in range(1500):
        read_or_refuse(cls, rng.bytes(int(rng.integers(0, 40))))
        dtype = {OneBits: 0, OneInts: rng.integers(1, 9), OneFloats: rng.integers(9, 12)}.get(cls, 0)
        head = shaped(*rng.integers(0, 5, 2).tolist(), method=int(rng.integers(0, 4)), dtype=int(dtype))
        n_read += read_or_refuse(cls, sign(cls, head + rng.bytes(int(rng.integers(0, 30)))))
    assert n_read > 0 or cls not in (OneBits, OneInts, OneFloats)


def test_no_damage_makes_us_hold_much():
    rng = np.random.default_rng(4)
    bodies = [(type(m), encode(m, b)[:-4], b) for m, b in victims() if len(encode(m, b)) > 300]
    for cls, body, base in bodies:
        read_or_refuse(cls, sign(cls, body, base), base)  # compiles the kernels
    tracemalloc.start()
    try:
        for _ in range(40):
            for cls, body, base in bodies:
                read_or_refuse(cls, sign(cls, mutate(rng, body), base), base)
        assert tracemalloc.get_traced_memory()[1] < 40 * MAX_BYTES
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("cls", "body", "what"),
    [
        (OneBits, shaped(80_000, 1568), "array of shape .80000, 1568. takes 125440000 bytes, 65536 allowed"),
        (OneBits, shaped(1 << 40, 0, 1 << 40), "allowed"),
        (OneBits, shaped(*[2] * 9), "number 9 is above 8"),
        (OneBits, bytes([VERSION, 0, 1]) + b"\xff" * 12, "over ten bytes"),
        (OneBits, bytes([VERSION, 0, 1, 0x80, 0]), "written too long"),
        (OneBits, shaped(9), "2 bytes due, 0 left"),
        (OneBits, shaped(9) + b"abc", "1 bytes too many at the end"),
        (OneBits, shaped(9, dtype=3), "bits of dtype number 3"),
        (OneInts, shaped(9, dtype=15), "ints of dtype number 15"),
        (OneBits, shaped(9, method=7), "coded by method 7"),
        (OneBits, shaped(9, method=9), "against a base that lacks them"),
        (OneBits, shaped(100, method=1) + b"\1\x65\0", "number 101 is above"),
        (OneBits, shaped(100, method=1) + b"\1\1\5\xff", "gaps run over"),
        (OneBits, shaped(100, method=1) + b"\1\1\x28" + b"\xff" * 4 + bytes(6), "gaps run over"),
        (OneBits, shaped(100, method=2) + b"\3\5", "lag 3"),
        (OneBits, shaped(100, method=2) + b"\5\xff", "prior 255"),
        (OneBits, shaped(8, method=2) + b"\5\5" + b"\x55" * 40, "bytes too many after the bits"),
        (OneInts, shaped(4, method=3, dtype=1) + b"\x09", "of 9 bits modelled; at most .* of up to 8 bits"),
        (OneInts, shaped(4, method=3, dtype=1) + b"\x08" + b"\x99" * 9, "do not fit int8|not 4 numbers"),
        (OneInts, shaped(4, method=2, dtype=1) + b"\3abc", "planes of"),
        (OneFloats, shaped(4, method=2, dtype=10) + b"abc", "no Zstandard frame"),
        (OneFloats, shaped(4, method=4, dtype=9) + b"abc", "4 of float16 by lines"),
        (OneFloats, shaped(2, method=4, dtype=10) + b"\x55" * 40, "are not 2 numbers"),
        (OneFloats, bytes([VERSION | 32, 0]), "flags 1; OneFloats has 0"),
        (Message, bytes([VERSION, 0]), "1 bytes too many at the end"),
        (Message, bytes([VERSION + 1]), "version 2; this end speaks version 1"),
        (Message, b"", "0 bytes are too few|2 bytes are too few|4 bytes are too few"),
    ],
)
def test_each_lie_is_called_by_its_name(cls, body, what):
    with pytest.raises(WireError, match=what):
        decode(cls, sign(cls, body), max_bytes=MAX_BYTES)
