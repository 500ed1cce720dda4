import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from wire_samples import Everything, OneBits, OneFloats, OneInts, OneSparse, clause_bits, everything, flip

from laconic.wire import (
    EMPTY,
    MOST_COUNT,
    Bits,
    Count,
    CountArray,
    Floats,
    Ints,
    Message,
    Share,
    Sparse,
    WireError,
    bound,
    decode,
    decode_detailed,
    encode,
    encode_detailed,
    floats,
    kernels,
    size,
)
from laconic.wire.codec import checksum

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=9)
INT_DTYPES = [f"{sign}{width}" for sign in "iu" for width in (1, 2, 4, 8)]


@st.composite
def array_pairs(draw, dtypes):
    """An array and a base for it: alike, unlike, or of another shape."""
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    array = draw(hnp.arrays(dtype, draw(SHAPES)))
    kind = draw(st.sampled_from(["alike", "unlike", "other shape"]))
    if kind == "alike":
        base = array.copy()
        if base.size:
            base.flat[draw(st.integers(0, base.size - 1))] = draw(hnp.arrays(dtype, ()))[()]
        return array, base
    return array, draw(hnp.arrays(dtype, array.shape if kind == "unlike" else draw(SHAPES)))


@st.composite
def sparse_pairs(draw):
    mask, base_mask = draw(array_pairs(["?"]))
    dtype = draw(st.sampled_from(["f2", "f4", "f8"]))
    return tuple(Sparse(m, draw(hnp.arrays(dtype, int(m.sum())))) for m in (mask, base_mask))


def pairs(values):
    return st.tuples(values, values)


KINDS = {
    Bits: array_pairs(["?"]),
    Ints: array_pairs(INT_DTYPES),
    Floats: array_pairs(["f2", "f4", "f8"]),
    Sparse: sparse_pairs(),
    int: pairs(st.integers(-(1 << 63), (1 << 63) - 1)),
    float: pairs(st.floats()),
    bool: pairs(st.booleans()),
    str: pairs(st.text(max_size=40)),
    Count: pairs(st.integers(0, MOST_COUNT)),
    Share: pairs(st.floats(0, 1)),
    CountArray: pairs(hnp.arrays("u2", SHAPES)),
}


@st.composite
def messages(draw):
    """A message of a random class, and a base."""
    annotations, both = {}, ({}, {})
    for k, kind in enumerate(draw(st.lists(st.sampled_from(list(KINDS)), max_size=7))):
        optional = draw(st.booleans())
        annotations[f"field_{k}"] = kind | None if optional else kind
        for values, value in zip(both, draw(KINDS[kind]), strict=True):
            values[f"field_{k}"] = None if optional and draw(st.booleans()) else value
    cls = type("Random", (Message,), {"__annotations__": annotations})
    return cls(**both[0]), cls(**both[1])


@given(messages())
def test_no_message_takes_more_than_its_bound(pair):
    message, base = pair
    assert size(message) <= bound(message)
    assert size(message, base) <= bound(message)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(messages())
def test_every_message_survives_the_wire(pair):
    message, base = pair
    cls = type(message)
    assert decode(cls, encode(message)) == message
    encoded = encode_detailed(message, base)
    assert decode(cls, encoded.data, base) == message
    assert sum(len(part.data) for part in encoded.fields.values()) + encoded.envelope_bytes == len(encoded.data)
    again, told = decode_detailed(cls, encoded.data, base)
    assert again == message
    assert told.data == encoded.data
    for name, part in encoded.fields.items():
        assert told.fields[name][:3] == part[:3]  # the rest is what a writer reckons with
    assert size(message, message) <= size(message) + 2


def some_bits(density, shape=(60, 90)):
    return clause_bits(np.random.default_rng(3), shape, density)


RNG = np.random.default_rng(5)
NOISE = RNG.random((300, 400)) < 0.5
TYPICAL_BITS = {
    "packed": (NOISE, None),
    "gaps": (np.random.default_rng(0).random(100_000) < 0.0003, None),
    "model": (some_bits(0.15), None),
    "changes": (flip(RNG, some_bits(0.2), 0.001), some_bits(0.2)),
    "model on base": (flip(RNG, some_bits(0.2), 0.1) & some_bits(0.2), some_bits(0.2)),
}
TYPICAL_INTS = {
    "plain": (RNG.integers(-(1 << 31), 1 << 31, 50, np.int32), None),
    "rice": (np.rint(RNG.laplace(0, 9, 40)).astype(np.int64), None),
    "planes": (np.tile(RNG.integers(0, 1 << 20, 40, np.int32), 50), None),
    "model": (RNG.geometric(0.2, (20, 30)), None),
    "model on base": (RNG.geometric(0.2, 600) // 9 + np.arange(600), np.arange(600)),
}


def stretch(numbers):
    """Numbers, and between every two of them their mean, as pooling to more places makes them."""
    return np.interp(np.arange(0, len(numbers), 0.5), np.arange(len(numbers)), numbers).astype(np.float32)


GAUSS = RNG.normal(size=3000).astype(np.float32)
MANY = np.random.default_rng(6).normal(size=100_000).astype(np.float32)
TYPICAL_FLOATS = {
    "plain": (RNG.integers(0, 1 << 32, 50, np.uint32).view(np.float32), None),
    "planes": (np.tile(GAUSS[:40], 60), None),
    "model": (GAUSS, None),
    "planes on base": (MANY * np.float32(1.01), MANY),  # too many for the model
    "model on base": (GAUSS.astype(np.float16) * np.float16(1.01), GAUSS.astype(np.float16)),
    "lines": (stretch(GAUSS), None),
    "lines on base": (stretch(GAUSS) * np.float32(1.01), stretch(GAUSS)),
}
TYPICAL = [(OneBits, *case) for case in TYPICAL_BITS.items()]
TYPICAL += [(OneInts, *case) for case in TYPICAL_INTS.items()] + [(OneFloats, *case) for case in TYPICAL_FLOATS.items()]


@pytest.mark.parametrize(("cls", "method", "arrays"), TYPICAL)
def test_each_method_is_chosen_where_it_is_best(cls, method, arrays):
    message, base = (None if array is None else cls(array) for array in arrays)
    encoded = encode_detailed(message, base)
    assert decode(cls, encoded.data, base) == message
    assert encoded.fields["values"].method == method


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_mask_of_large_numbers_is_told_by_the_sizes_of_those_that_both_ends_hold(dtype):
    rng = np.random.default_rng(7)
    held, score = rng.normal(size=(600, 500)).astype(dtype), rng.normal(size=(600, 500))
    mask = np.abs(score * held) > np.median(np.abs(score * held))
    message, base = OneSparse(Sparse.of(held * dtype(1.01), mask)), OneSparse(Sparse(np.ones_like(mask), held.ravel()))
    encoded = encode_detailed(message, base)
    assert encoded.fields["values"].method == "by size, planes on base"
    assert decode(OneSparse, encoded.data, base) == message
    mask_bytes = len(encode(OneBits(mask)))
    values_bytes = len(encode(OneFloats(message.values.values), OneFloats(held[mask])))
    assert len(encoded.data) < 0.85 * mask_bytes + values_bytes
    with pytest.raises(WireError, match="earlier"):
        decode(OneSparse, encoded.data)
    with pytest.raises(WireError, match="checksum"):
        decode(OneSparse, encoded.data, OneSparse(Sparse(np.ones_like(mask), held.ravel() + dtype(1))))


def test_bits_by_size_that_are_no_mask_are_refused():
    base = OneBits(some_bits(0.2))
    data = bytearray(encode(OneBits(flip(RNG, some_bits(0.2), 0.001)), base))
    assert data[1] == 8  # changes
    data[1] = 10
    data[-2:] = checksum(OneBits, bytes(data[:-2]), base)
    with pytest.raises(WireError, match="no mask"):
        decode(OneBits, bytes(data), base)


def test_large_sparse_bits_take_the_short_cut_both_ways():
    rng = np.random.default_rng(4)
    bits = clause_bits(rng, (700, 900), 0.02)
    message, base = OneBits(bits), OneBits(flip(rng, bits, 0.01))
    assert encode_detailed(message).fields["values"].method == "model"
    assert encode_detailed(message, base).fields["values"].method == "model on base"
    assert decode(OneBits, encode(message)) == message
    assert decode(OneBits, encode(message, base), base) == message


def test_numbers_that_others_tell_cost_little_more_than_their_rounding():
    """Half of them are means of their neighbours, so every second is on the line through the two before."""
    numbers, stretched = OneFloats(GAUSS), OneFloats(stretch(GAUSS))
    assert stretched.values.size == 2 * numbers.values.size
    assert size(stretched) < 1.1 * size(numbers)
    assert size(OneFloats(np.repeat(GAUSS, 8))) < 1.2 * size(numbers)


@pytest.mark.parametrize("moved", [0.01, 3.0])
@pytest.mark.parametrize("is_stretched", [False, True])
def test_of_many_floats_one_model_is_tried_and_costs_no_more_than_the_best_of_all(moved, is_stretched):
    rng = np.random.default_rng(3)
    held = rng.normal(size=10_000).astype("f4")
    numbers = (
        stretch(rng.normal(size=5_000).astype("f4"))
        if is_stretched
        else held + rng.normal(0, moved, 10_000).astype("f4")
    )
    methods = floats.list_methods(numbers, held, 1)
    assert sum("planes" not in floats.NAMES[method] for method in methods) == 1
    every = [*floats.list_methods(numbers[: floats.MAX_TRIED], held[: floats.MAX_TRIED], 1)]
    shortest = min(len(floats.write(method, numbers, held, 1, numbers.nbytes)) for method in every)
    assert len(floats.encode(numbers, held)[1]) <= 1.001 * shortest
    assert decode(OneFloats, encode(OneFloats(numbers), OneFloats(held)), OneFloats(held)) == OneFloats(numbers)


@given(hnp.arrays("f4", 2, elements=st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_a_line_goes_on_to_the_nearest_single(pair):
    """By integers alone, and within one of what doubles round to."""
    two, one = pair.astype(np.float64)
    limit = float(np.finfo(np.float32).max)
    exact = np.float32(np.clip(2 * one - two, -limit, limit))
    places = floats.order(np.array([one, two, exact], np.float32)).astype(np.int64)
    assert abs(kernels.go_on(*places[:2]) - places[2]) <= 1


def test_awkward_numbers_stay_bit_for_bit():
    odd = np.array([0x7FC12345, 0xFFF00001, 0x80000000, 1], np.uint32).view(np.float32)  # NaN with payload, -0.0, ...
    for array in (odd, np.tile(odd, 500), np.float64([5e-324, -np.inf]), np.float16([6e-8, -0.0])):
        for base in (None, OneFloats(array[::-1])):
            assert decode(OneFloats, encode(OneFloats(array), base), base) == OneFloats(array)
    edges = np.array([-(1 << 63), (1 << 63) - 1, 0, -1] * 30)
    for array in (edges, edges.view(np.uint64), edges.astype(np.int8), edges.astype(np.uint32)):
        for base in (None, OneInts(array[::-1]), OneInts(np.zeros_like(array))):
            assert decode(OneInts, encode(OneInts(array), base), base) == OneInts(array)


def test_views_and_byte_orders_arrive_as_plain_arrays():
    swapped = np.arange(12, dtype=">i4").reshape(3, 4).T[::-1]
    arrived = decode(OneInts, encode(OneInts(swapped))).values
    assert arrived.tolist() == swapped.tolist()
    assert arrived.dtype == np.int32
    assert decode(OneInts, encode(OneInts(swapped))) == OneInts(swapped)
    arrived[0, 0] = 5  # ours to change


def test_small_messages_are_small():
    class Order(Message):
        send_states: bool
        masks: Bits | None
        n_shared: int | None

    assert size(EMPTY) == 3
    assert size(Order(True, None, None)) == 3
    assert size(Order(True, None, 9)) == 4


def test_noise_costs_its_packed_size_and_a_few_bytes():
    assert size(OneBits(np.random.default_rng(1).random(12288) < 0.5)) <= 12288 // 8 + 9


def test_an_array_equal_to_the_bases_takes_one_byte():
    for message in (OneBits(some_bits(0.1, (1000, 300))), OneFloats(GAUSS), OneInts(np.arange(9))):
        assert size(message, message) == size(EMPTY) + 1
        decode(type(message), encode(message, message), message).values[0] = 0  # a copy: the base must stay as it is
    assert size(message, message) == size(EMPTY) + 1


def test_sparse_values_are_predicted_from_the_base_where_both_have_them():
    rng = np.random.default_rng(2)
    vector, mask = rng.normal(size=4000).astype(np.float32), rng.random(4000) < 0.2
    base = OneSparse(Sparse.of(vector, mask))
    message = OneSparse(Sparse.of(vector, flip(rng, mask, 0.01)))
    assert size(message, base) < size(message) / 4
    assert decode(OneSparse, encode(message, base), base) == message


def test_a_base_of_another_shape_or_dtype_is_no_help_but_no_harm():
    message = OneInts(np.arange(100))
    for base in (OneInts(np.arange(101)), OneInts(np.arange(100, dtype=np.int16))):
        assert encode(message, base) == encode(message)


def test_the_wrong_base_or_class_is_noticed():
    class Other(Message):
        values: Bits

    bits = some_bits(0.2)
    base, message = OneBits(bits), OneBits(flip(np.random.default_rng(0), bits, 0.01))
    data = encode(message, base)
    with pytest.raises(WireError, match="pass that as base"):
        decode(OneBits, data)
    with pytest.raises(WireError, match="coded against another base"):
        decode(OneBits, data, message)
    with pytest.raises(WireError, match="coded against another base"):
        decode(OneBits, data, OneBits(bits.reshape(90, 60)))
    with pytest.raises(WireError, match="no Other"):
        decode(Other, encode(message))
    with pytest.raises(ValueError, match="base is a Other"):
        encode(message, Other(bits))


def test_what_compresses_absurdly_well_is_sent_plain_rather_than_refused():
    message = OneBits(np.zeros(1 << 25, bool))
    data = encode(message)
    assert len(data) > 1 << 22
    assert decode(OneBits, data) == message


@pytest.mark.parametrize("shape", [(), (1,), (40, 1), (1, 40), (3, 2, 9), (9, 0, 4), (700,)])
def test_any_shape_will_do(shape):
    rng = np.random.default_rng(8)
    bits = np.asarray(rng.random(shape) < 0.9)
    floats = np.asarray(rng.normal(size=shape), np.float32)
    for cls, array in ((OneBits, bits), (OneInts, np.where(bits, 300, -5)), (OneFloats, floats)):
        for base in (None, cls(np.zeros_like(array)), cls(array)):
            assert decode(cls, encode(cls(array), base), base) == cls(array)


def test_everything_at_once():
    for seed in range(6):
        message, base = everything(seed), everything(seed + 1)
        assert decode(Everything, encode(message, base), base) == message


def test_importing_the_wire_waits_for_no_compiler():
    code = "import sys, laconic.wire; print({'numba', 'zstandard'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


@pytest.mark.parametrize("limit", [1, 3, 7, 31])
def test_numbers_within_limits_never_take_more_than_the_bound_of_a_message_so_limited(limit):
    class Rows(Message):
        rows: Ints

    rng, plain_bound = np.random.default_rng(limit), bound(Rows(np.zeros((10, 300), np.int8)))
    least = bound(Rows(np.zeros((10, 300), np.int8)).limited(rows=limit))
    assert least < plain_bound or limit == 31
    for _ in range(40):
        spikes = rng.random((2, 10, 300)) < rng.choice([0.02, 0.3, 1])
        numbers = np.where(
            spikes, rng.choice([-limit, limit], spikes.shape), rng.integers(-limit, limit + 1, spikes.shape)
        )
        message, base = (Rows(part.astype(np.int8)) for part in numbers)
        assert size(message) <= least
        assert size(message, base) <= least
