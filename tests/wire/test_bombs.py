"""No message makes its reader hold or do much more than an honest one of the shape that is expected."""

import importlib
import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from wire_samples import OneBits, OneFloats, OneInts

from laconic.wire import Due, WireError, decode, encode, floats, ints, kernels, planes

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
bombs = importlib.import_module("bombs")

# What a code needs whatever the size of its array: 64-bit numbers of a chunk or two, the tables of a model.
CONSTANT_BYTES = 1 << 22
SMALL = [
    bombs.Series("bits in rows", bombs.SomeBits, (300, 400), "?"),
    bombs.Series("bits in one row", bombs.SomeBits, (120_000,), "?"),
    bombs.Series("bits in one column", bombs.SomeBits, (40_000, 1), "?"),
    bombs.Series("int8", bombs.SomeInts, (150_000,), "i1"),
    bombs.Series("int64", bombs.SomeInts, (20_000,), "i8"),
    bombs.Series("float16", bombs.SomeFloats, (1 << 15,), "f2"),
    bombs.Series("float32", bombs.SomeFloats, (60_000,), "f4"),
    bombs.Series("float64", bombs.SomeFloats, (5_000,), "f8"),
    bombs.Series("sparse", bombs.SomeSparse, (40_000,), "f4"),
]


def traced_bytes(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("series", SMALL, ids=lambda series: series.kind)
def test_no_forged_message_takes_much_more_memory_than_honest_ones(series):
    held = {True: [], False: []}
    for case in bombs.cases(series):
        bombs.read(case)
        held[case.is_honest].append((traced_bytes(lambda case=case: bombs.read(case)), case))
    honest, _ = max(held[True], key=lambda pair: pair[0])
    for forged, case in held[False]:
        # a message may be longer than an honest one can be; whoever receives it holds it before any of this
        assert forged <= 4 * honest + 2 * len(case.data), case.name


@pytest.mark.parametrize("n", [200_000, 2_000_000])
@pytest.mark.parametrize("dtype", ["i1", "i2", "i8", "f2", "f4", "f8"])
def test_what_a_code_needs_beside_its_array_does_not_grow_with_narrow_numbers(dtype, n):
    cls = OneFloats if dtype[0] == "f" else OneInts
    zeros = np.zeros(n, dtype)
    for base in (None, cls(zeros)):
        on_base = 0 if base is None else 8
        planed = bombs.pack_zeros(zeros.nbytes)
        coded = [(2, planed if cls is OneFloats else bytes([zeros.itemsize]) + planed)]
        if cls is OneInts:
            coded.append((1, b"\0" + bytes(-(-n // 8))))
        for method, code in coded:
            data = bombs.forge(cls, bombs.block(method + on_base, dtype, (n,), code), base)
            assert np.array_equal(decode(cls, data, base).values, zeros)
            assert traced_bytes(lambda data=data, base=base: decode(cls, data, base)) < (
                2.1 * zeros.nbytes + 2 * len(data) + CONSTANT_BYTES
            )


def test_bits_of_any_shape_and_code_take_a_few_bytes_each():
    n = 1_000_000
    full = b"\1" + bombs.write_varint(n) + bytes(1 + n // 8)
    for shape in ((n,), (1000, 1000), (n, 1)):
        for method, code in ((0, bytes(n // 8)), (1, full), (2, b"\4\x97")):
            data = bombs.forge(OneBits, bombs.block(method, "?", shape, code))
            decode(OneBits, data)
            assert traced_bytes(lambda data=data: decode(OneBits, data)) < 4.2 * n + CONSTANT_BYTES


@pytest.mark.skipif(sys.platform != "linux", reason="only there can a process forget its peak")
@pytest.mark.parametrize(
    "series", ["SomeBits, (200_000,), '?'", "SomeFloats, (1 << 15,), 'f4'", "SomeInts, (60_000,), 'i1'"]
)
def test_native_memory_counts_too(series):
    """What compiled loops and Zstandard hold is seen from outside alone."""
    code = f"""
import json
from bombs import *
print(json.dumps([measure(case, is_known=True) for case in cases(Series("", {series}))]))
"""
    env = {**os.environ, **bombs.GIVES_BACK}
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, check=True, capture_output=True, text=True, env=env, cwd=BENCHMARKS)
    honest, forged = bombs.costliest(json.loads(run.stdout), "held_bytes")
    assert forged["held_bytes"] <= 4 * honest["held_bytes"], forged["message"]


# ---------------------------------------------------------------- work
def refuse(cls, method, dtype, shape, code, what):
    data = bombs.forge(cls, bombs.block(method, dtype, shape, code))
    with pytest.raises(WireError, match=what):
        decode(cls, data)


@pytest.fixture
def no_loops(monkeypatch):
    """Whatever reaches an inner loop fails."""
    for name in ("code_integers", "code_singles", "code_bits", "code_sized", "read_rice"):
        monkeypatch.setattr(kernels, name, None)


@pytest.mark.usefixtures("no_loops")
def test_more_numbers_than_a_writer_models_are_refused_before_the_first_is_read():
    many = floats.MAX_MODELLED + 1
    for dtype in ("f2", "f4", "f8"):
        refuse(OneFloats, 3, dtype, (many,), b"\x10", "at most 32768 of up to")
    refuse(OneFloats, 4, "f4", (many,), b"", "by lines; at most 32768")
    refuse(OneInts, 3, "i1", (ints.MAX_MODELLED + 1,), b"\x08", "at most 262144 of up to 8 bits")


@pytest.mark.usefixtures("no_loops")
@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_no_number_is_modelled_by_more_bits_than_its_dtype_has(width):
    refuse(OneInts, 3, f"i{width}", (9,), bytes([8 * width + 1]), f"of up to {8 * width} bits")
    refuse(OneInts, 3, f"u{width}", (9,), bytes([255]), f"of up to {8 * width} bits")
    if width > 1:
        refuse(OneFloats, 3, f"f{width}", (9,), bytes([8 * width + 1]), f"of up to {8 * width} bits")


def test_a_model_stops_at_the_first_length_that_it_did_not_announce():
    rng = np.random.default_rng(0)
    values, hints = np.zeros(1000, np.int64), np.zeros(1000, np.uint8)
    code = np.frombuffer(bytearray(rng.bytes(5000)), np.uint8)
    assert kernels.code_integers(values, hints, 1000, 9, code, True) == -1  # the tree has leaves up to 15
    assert np.count_nonzero(values) < 100
    assert np.abs(values).max() < 1 << 15


@pytest.mark.usefixtures("no_loops")
def test_rice_codes_take_a_bit_at_least():
    refuse(OneInts, 1, "i1", (1_000_000,), b"\0" + bytes(1000), "cannot hold 1000000 Rice codes")


def test_planes_are_no_wider_than_their_numbers():
    for width in (1, 2):
        for wide in (1, 2, 4, 8):
            code = bytes([wide]) + bombs.pack_zeros(90 * wide)
            data = bombs.forge(OneInts, bombs.block(2, f"i{width}", (90,), code))
            if wide <= 2 * width:
                decode(OneInts, data)
            else:
                with pytest.raises(WireError, match="at most twice"):
                    decode(OneInts, data)
    refuse(OneInts, 2, "i8", (9,), b"\x10" + bombs.pack_zeros(9 * 16), "planes of 16 bytes")
    refuse(OneInts, 2, "i8", (9,), b"", "planes of 0 bytes")


def test_every_writers_planes_are_narrow_enough():
    for dtype in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"):
        ends = np.iinfo(dtype)
        numbers = np.tile(np.array([ends.min, ends.max, 0, 1], dtype), 500)
        for base in (None, OneInts(numbers[::-1].copy())):
            message = OneInts(numbers)
            assert decode(OneInts, encode(message, base), base) == message
            unsigned = ints.zigzag(ints.as_int64(numbers) - (0 if base is None else ints.as_int64(base.values)))
            width = np.min_scalar_type(unsigned.max()).itemsize
            assert width <= 2 * numbers.itemsize


# ---------------------------------------------------------------- Zstandard
FOUR_BYTES = np.dtype("<u4")


def unsqueeze(data, n):
    return np.concatenate(list(planes.unsqueeze(data, n, FOUR_BYTES)))


def test_a_frame_gives_as_many_bytes_as_are_expected_or_is_refused():
    assert not unsqueeze(bombs.pack_zeros(4000), 1000).any()
    for n_bytes in (3999, 4001, 1 << 17, 1 << 26):
        with pytest.raises(WireError, match="Zstandard frame"):
            unsqueeze(bombs.pack_zeros(n_bytes), 1000)
    with pytest.raises(WireError, match="no Zstandard frame"):
        unsqueeze(b"", 1000)


def test_a_frames_window_is_nothing_to_its_reader():
    assert not unsqueeze(bombs.pack_window(4000), 1000).any()


def test_a_frame_of_many_small_blocks_is_refused_and_no_writer_makes_one():
    rng = np.random.default_rng(0)
    with pytest.raises(WireError, match="of over 353 blocks, where 400000 bytes were expected"):
        unsqueeze(bombs.pack_blocks(rng, 400_000), 100_000)
    for n in (10, 1000, 16_384, 20_000, 300_000):
        for n_bits in (1, 9, 17, 31):
            steps = np.cumsum(rng.integers(0, 3, n // 2))
            numbers = np.concatenate([steps, rng.integers(0, 1 << n_bits, n - n // 2)]).astype(FOUR_BYTES)
            assert np.array_equal(unsqueeze(planes.squeeze(numbers), n), numbers)


def test_a_frame_longer_than_what_it_holds_is_refused():
    raw = (1 | 400 << 3).to_bytes(3, "little") + bytes(400)
    empty = bytes(3)
    assert not unsqueeze(b"\0" + empty * 10 + raw, 100).any()
    with pytest.raises(WireError, match="Zstandard frame of 1004 bytes, where 400 were expected"):
        unsqueeze(b"\0" + empty * 200 + raw, 100)


# ---------------------------------------------------------------- shapes
@pytest.mark.usefixtures("no_loops")
@pytest.mark.parametrize("shape", [(1 << 40,), (0, 1 << 40), (1 << 20, 1 << 20, 0), (1 << 62, 1 << 62), (2,) * 9])
@pytest.mark.parametrize(("cls", "dtype"), [(OneBits, "?"), (OneInts, "i1"), (OneFloats, "f8")])
@pytest.mark.parametrize("method", [0, 1, 2, 3, 4])
def test_a_claimed_shape_costs_nothing(cls, dtype, shape, method):
    data = bombs.forge(cls, bombs.block(method, dtype, shape, b"\4\4"))

    def read():
        for expected in ({}, {"values": Due((3,))}):
            with pytest.raises(WireError):
                decode(cls, data, expected=expected)

    read()
    assert traced_bytes(read) < 1 << 20
