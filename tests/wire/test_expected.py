"""What a reader expects is what it gets, or the message is refused in words: a kind's own limits, and those of Due."""

import math

import numpy as np
import pytest
from wire_samples import OneSparse

from laconic.wire import (
    MOST_COUNT,
    Bits,
    Count,
    CountArray,
    Due,
    Floats,
    Ints,
    Message,
    Share,
    Sparse,
    UpTo,
    WireError,
    bound,
    codec,
    decode,
    encode,
    fields,
    most_bytes,
    size,
)


class Update(Message):
    weights: Floats
    rows: Ints
    states: Bits
    kept: Sparse
    scale: float
    depth: int
    name: str
    levels: Ints | None = None
    exact: Floats | None = None


class Told(Message):
    n_examples: Count
    accuracy: Share
    per_class: CountArray


class Loose(Message):
    """As Told, by kinds without limits."""

    n_examples: int
    accuracy: float
    per_class: Ints


def update(**changed):
    vector = np.linspace(-1, 1, 12, dtype=np.float32)
    usual = {
        "weights": np.ones((10, 100), np.float32),
        "rows": np.arange(20).reshape(4, 5),
        "states": np.eye(6, dtype=bool),
        "kept": Sparse.of(vector, vector > 0.5),
        "scale": 2.5,
        "depth": 3,
        "name": "one",
    }
    return Update(**usual | changed)


def refuse(expected, what, **changed):
    message = update(**changed)
    data = encode(message)
    assert decode(Update, data) == message  # nothing is wrong with it otherwise
    with pytest.raises(WireError, match=what):
        decode(Update, data, expected=expected)


# ---------------------------------------------------------------- kinds
@pytest.mark.parametrize(
    ("told", "what"),
    [
        ((-1, 0.5, np.arange(3)), r"n_examples: got -1; 0 to 10000000 was expected"),
        ((MOST_COUNT + 1, 0.5, np.arange(3)), "n_examples: got 10000001"),
        ((-(1 << 63), 0.5, np.arange(3)), "n_examples: got -9223372036854775808"),
        ((5, -0.001, np.arange(3)), r"accuracy: got -0.001; 0 to 1 was expected"),
        ((5, 1.5, np.arange(3)), "accuracy: got 1.5"),
        ((5, math.nan, np.arange(3)), "accuracy: got nan"),
        ((5, math.inf, np.arange(3)), "accuracy: got inf"),
        ((5, 0.5, np.array([3, -5])), "per_class: got -5"),
        ((5, 0.5, np.array([3, 10**15])), "per_class: got 1000000000000000"),
        ((5, 0.5, np.array([1 << 63], np.uint64)), "per_class: got 9223372036854775808"),
    ],
)
def test_a_kind_with_limits_refuses_what_lies_beyond_when_made_and_when_read(told, what):
    with pytest.raises(TypeError, match=what):
        Told(*told)
    body = encode(Loose(*told))
    body = body[: -2 if len(body) < 258 else -4]
    with pytest.raises(WireError, match=what):
        decode(Told, body + codec.checksum(Told, body, None))


@pytest.mark.parametrize("wrong", [(1.5, 0.5, np.arange(3)), (1, "x", np.arange(3)), (1, 0.5, np.ones(3))])
def test_a_kind_with_limits_takes_only_what_its_carrier_does(wrong):
    with pytest.raises(TypeError, match="Told"):
        Told(*wrong)


@pytest.mark.parametrize(
    "told", [(0, 0.0, np.arange(0)), (MOST_COUNT, 1.0, np.full((3, 2), MOST_COUNT)), (7, 1 / 3, np.uint8([0, 255]))]
)
def test_kinds_with_limits_travel_in_as_many_bytes_as_those_without(told):
    message, loose = Told(*told), Loose(*told)
    assert decode(Told, encode(message)) == message
    assert encode(message)[:-2] == encode(loose)[:-2]
    assert size(message) == size(loose)
    assert bound(message) == bound(loose)
    assert decode(Told, encode(message, message), message) == message


def test_kinds_with_limits_may_be_left_out():
    class Maybe(Message):
        n_examples: Count | None = None
        accuracy: Share | None = None
        per_class: CountArray | None = None

    assert decode(Maybe, encode(Maybe())) == Maybe()
    assert decode(Maybe, encode(Maybe(3, None, np.arange(2)))) == Maybe(3, None, np.arange(2))


# ---------------------------------------------------------------- finite
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_what_is_not_finite_is_refused_by_the_name_of_its_field_where_asked(bad, dtype):
    numbers = np.array([1, -2, bad, 3], dtype)
    sparse = Sparse(np.ones(4, bool), numbers)
    for name, value in {"exact": numbers, "weights": numbers[:, None], "kept": sparse, "scale": bad}.items():
        data = encode(update(**{name: value}))
        decode(Update, data)
        with pytest.raises(WireError, match=f"{name} is not finite"):
            decode(Update, data, must_be_finite=True)
    assert decode(Update, encode(update(exact=numbers[:2])), must_be_finite=True)


# ---------------------------------------------------------------- presence
def test_a_field_that_is_not_expected_is_refused_unread(monkeypatch):
    data = encode(update(levels=np.arange(9), exact=np.ones(3)))
    read = []
    monkeypatch.setattr(codec, "read_field", lambda *_, **__: read.append(1))
    with pytest.raises(WireError, match="levels came, but was not expected"):
        decode(Update, data, expected={"levels": None})
    with pytest.raises(WireError, match="exact is missing"):
        decode(Update, encode(update()), expected={"exact": Due((3,))})
    assert not read


def test_flags_and_texts_may_be_expected_too():
    class Flags(Message):
        is_last: bool | None
        name: str | None

    both, neither = Flags(False, "x"), Flags(None, None)
    here = {"is_last": Due(), "name": Due()}
    assert decode(Flags, encode(both), expected=here) == both
    assert decode(Flags, encode(neither), expected=dict.fromkeys(here)) == neither
    with pytest.raises(WireError, match="is_last is missing"):
        decode(Flags, encode(neither), expected=here)
    with pytest.raises(WireError, match="is_last came, but"):
        decode(Flags, encode(both), expected=dict.fromkeys(here))


# ---------------------------------------------------------------- shapes
WEIGHTS = np.ones((10, 100), np.float32)


@pytest.mark.parametrize(
    "came",
    [
        WEIGHTS[:, :99],
        np.ones((10, 101), np.float32),
        WEIGHTS[:9],
        WEIGHTS[:0],
        WEIGHTS[:, :0],
        WEIGHTS.T,
        WEIGHTS.ravel(),
        WEIGHTS[None],
        WEIGHTS[..., None],
        np.float32(1)[...],
        np.ones((1, 1000), np.float32),
    ],
    ids=lambda array: str(array.shape),
)
def test_an_array_of_another_shape_is_refused_before_it_is_made(came, monkeypatch):
    data, made = encode(update(weights=came)), []
    decode(Update, data)
    monkeypatch.setattr(fields.floats, "decode", lambda *_: made.append(1))
    shape = str(came.shape).replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(WireError, match=rf"weights has shape {shape}, \(10, 100\) was expected"):
        decode(Update, data, expected={"weights": Due((10, 100))})
    assert not made


def test_a_length_may_be_anything_up_to_a_limit():
    due = {"weights": Due((UpTo(10), 100))}
    for n_rows in (0, 1, 10):
        message = update(weights=np.ones((n_rows, 100), np.float32))
        assert decode(Update, encode(message), expected=due) == message
    what = r"weights has shape \(11, 100\), \(up to 10, 100\) was expected"
    refuse(due, what, weights=np.ones((11, 100), np.float32))
    refuse({"exact": Due((UpTo(4),))}, r"\(5,\), \(up to 4,\) was expected", exact=np.ones(5))


def test_an_empty_axis_hides_no_absurd_one():
    refuse({"weights": Due((UpTo(9), 100))}, r"\(0, 5000\)", weights=np.ones((0, 5000), np.float32))


def test_shapes_that_the_base_gives_are_checked_as_well():
    base = update()
    for message in (base, update(weights=base.weights * np.float32(1.01))):
        data = encode(message, base)
        assert decode(Update, data, base, expected={"weights": Due((10, 100))}) == message
        with pytest.raises(WireError, match="weights has shape"):
            decode(Update, data, base, expected={"weights": Due((100, 10))})


@pytest.mark.parametrize(("dtype", "item_bytes"), [("f8", 4), ("f4", 2), ("f8", 2)])
def test_wider_numbers_than_expected_are_refused(dtype, item_bytes):
    what = f"weights takes {dtype[1]} bytes a number, at most {item_bytes} was expected"
    refuse({"weights": Due((10, 100), item_bytes=item_bytes)}, what, weights=WEIGHTS.astype(dtype))
    kept = Sparse(np.ones(12, bool), np.ones(12, dtype))
    refuse({"kept": Due((12,), item_bytes=item_bytes)}, "kept takes", kept=kept)
    narrow = update(weights=WEIGHTS.astype(f"f{item_bytes}"))
    assert decode(Update, encode(narrow), expected={"weights": Due((10, 100), item_bytes=item_bytes)}) == narrow


# ---------------------------------------------------------------- sparse
def test_how_many_entries_a_sparse_chooses_may_be_limited():
    vector = np.arange(12, dtype=np.float32)
    for n_chosen, due in ((0, UpTo(5)), (5, UpTo(5)), (5, 5), (12, None), (0, None)):
        message = update(kept=Sparse.of(vector, vector < n_chosen))
        assert decode(Update, encode(message), expected={"kept": Due((12,), n_chosen=due)}) == message
    for n_chosen, due, words in ((6, UpTo(5), "up to 5"), (12, UpTo(5), "up to 5"), (0, 5, "5"), (4, 5, "5")):
        what = f"kept chooses {n_chosen} entries, {words} was expected"
        refuse({"kept": Due((12,), n_chosen=due)}, what, kept=Sparse.of(vector, vector < n_chosen))


def test_more_entries_than_expected_are_refused_before_a_value_is_made(monkeypatch):
    data, made = encode(OneSparse(Sparse(np.ones(500, bool), np.ones(500)))), []
    monkeypatch.setattr(fields.floats, "decode", lambda *_: made.append(1))
    with pytest.raises(WireError, match="chooses 500"):
        decode(OneSparse, data, expected={"values": Due((500,), n_chosen=UpTo(50))})
    assert not made


def test_a_mask_of_another_shape_is_refused():
    vector = np.arange(12, dtype=np.float32)
    refuse({"kept": Due((3, 4))}, r"kept has shape \(12,\), \(3, 4\)", kept=Sparse.of(vector, vector > 3))
    refuse({"kept": Due((13,))}, r"kept has shape \(12,\), \(13,\)", kept=Sparse.of(vector, vector > 3))


# ---------------------------------------------------------------- how far
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("dtype", "size", "words"),
    [
        ("f4", 1e30, "1e[+]30"),
        ("f4", 3e38, "3e[+]38"),
        ("f8", 1e300, "1e[+]300"),
        ("f2", 2048, "2.*"),
        ("f8", 1000.1, "1000.1"),
    ],
)
def test_an_entry_beyond_the_most_is_refused(dtype, size, words, sign):
    numbers = np.array([1, -2, sign * size, 3], dtype)
    what = f"reaches {'-' if sign < 0 else ''}{words}, at most 1000 was expected"
    refuse({"exact": Due((4,), 1000)}, "exact " + what, exact=numbers)
    refuse({"kept": Due((4,), 1000)}, "kept " + what, kept=Sparse(np.ones(4, bool), numbers))
    refuse({"scale": Due((), 1000)}, "scale reaches", scale=float(numbers[2]))


@pytest.mark.parametrize("number", [10**15, -(10**15), (1 << 63) - 1, -(1 << 63), 1001, -1001])
def test_a_whole_number_beyond_the_most_is_refused(number):
    what = f"reaches {number}, at most 1000 was expected"
    refuse({"rows": Due((3,), 1000)}, what, rows=np.array([5, number, -7]))
    refuse({"depth": Due((), 1000)}, what, depth=number)


def test_entries_up_to_the_most_are_taken():
    numbers = np.array([-1000, 1000, 0])
    message = update(rows=numbers, exact=numbers.astype(np.float32), depth=-1000, scale=1000.0)
    due = {name: Due((3,) if name in ("rows", "exact") else (), 1000) for name in ("rows", "exact", "depth", "scale")}
    assert decode(Update, encode(message), expected=due) == message
    assert decode(Update, encode(update(rows=numbers[:0])), expected={"rows": Due((UpTo(3),), 1)})
    ends = np.array([1 << 63, 0], np.uint64)
    assert decode(Update, encode(update(rows=ends)), expected={"rows": Due((2,), 2.0**63)})


def test_nan_is_beyond_every_most():
    refuse({"exact": Due((2,), 1e300)}, "exact is not finite", exact=np.array([np.nan, 1]))
    refuse({"scale": Due((), 1e300)}, "scale is not finite", scale=math.nan)
    refuse({"exact": Due((2,), 1e300)}, "exact reaches -?inf", exact=np.array([np.inf, -np.inf]))


# ---------------------------------------------------------------- texts
def test_a_text_arrives_as_it_was_and_is_never_long():
    message = update(name="a\0\n\x1b[31m")
    assert decode(Update, encode(message), expected={"name": Due()}) == message

    class Text(Message):
        name: str

    body = encode(Text("x" * 255))[:-4] + b"x" * 10_000_000
    with pytest.raises(WireError, match="10000000 bytes too many at the end"):
        decode(Text, body + codec.checksum(Text, body, None))


# ---------------------------------------------------------------- the reader's own mistakes
@pytest.mark.parametrize(
    ("expected", "what"),
    [
        ({"wieghts": Due((3,))}, "wieghts is expected, which is no field of Update"),
        ({"weights": None}, "Update.weights is always there"),
        ({"scale": Due((3,))}, r"Update.scale is one float; its shape is \(\), not \(3,\)"),
        ({"weights": Due((3,), n_chosen=5)}, "n_chosen is for a Sparse"),
        ({"states": Due((6, 6), 1)}, "most is for numbers"),
        ({"name": Due((), 5)}, "most is for numbers"),
    ],
)
def test_what_no_message_can_be_is_not_expected(expected, what):
    with pytest.raises(ValueError, match=what) as caught:
        decode(Update, encode(update()), expected=expected)
    assert not isinstance(caught.value, WireError)


# ---------------------------------------------------------------- bytes
def test_no_message_that_is_as_expected_takes_more_than_most_bytes():
    expected = {
        "weights": Due((UpTo(10), 100), item_bytes=4),
        "rows": Due((4, 5)),
        "states": Due((6, 6)),
        "kept": Due((12,), n_chosen=UpTo(6), item_bytes=4),
        "levels": None,
    }
    assert most_bytes(Update, expected) == math.inf  # of exact, nothing is known
    expected["exact"] = Due((70,))
    rng = np.random.default_rng(0)
    for share in (0, 0.5):
        message = update(
            weights=rng.integers(0, 1 << 32, (10, 100), np.uint32).view(np.float32),
            rows=rng.integers(-(1 << 63), 1 << 63, (4, 5), np.int64, endpoint=False),
            states=rng.random((6, 6)) < share,
            kept=Sparse.of(np.arange(12, dtype=np.float32), np.arange(12) < 12 * share),
            name="x" * 255,
            exact=rng.normal(size=70),
        )
        assert decode(Update, encode(message), expected=expected) == message
        assert size(message) <= most_bytes(Update, expected) < size(message) + 200
    expected["exact"] = None
    assert most_bytes(Update, expected) < size(message)
