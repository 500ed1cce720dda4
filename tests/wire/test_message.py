import copy

import numpy as np
import pytest
from wire_samples import OneBits, OneFloats, OneInts, OneSparse, everything

from laconic.wire import EMPTY, Bits, Floats, Ints, Message, Sparse


def test_annotations_are_the_schema():
    class Update(Message):
        weights: Ints
        states: Bits | None
        kept: Sparse
        accuracy: float

    kinds = [
        ("weights", "ints", False),
        ("states", "bits", True),
        ("kept", "sparse", False),
        ("accuracy", "float", False),
    ]
    assert Update.schema == tuple(kinds)
    assert EMPTY.schema == ()


@pytest.mark.parametrize(
    "annotation", [list, dict[str, int], np.ndarray, int | str, bytes, OneBits, Bits | Ints | None]
)
def test_an_annotation_that_cannot_travel_is_refused_with_the_class(annotation):
    with pytest.raises(TypeError, match=r"Update\.cargo is .* a message carries Bits, Ints"):
        type("Update", (Message,), {"__annotations__": {"cargo": annotation}})


def test_an_annotation_that_cannot_be_read_is_refused():
    with pytest.raises(TypeError, match="Update: name 'Bitz' is not defined"):
        type("Update", (Message,), {"__annotations__": {"cargo": "Bitz"}})


def test_a_subclass_adds_to_its_parents_fields():
    class Parent(Message):
        first: int

    class Child(Parent):
        second: Bits

    assert [field.name for field in Child.schema] == ["first", "second"]


def test_messages_cannot_be_changed():
    with pytest.raises(AttributeError):
        OneBits(np.ones(3, bool)).values = np.zeros(3, bool)


@pytest.mark.parametrize(
    ("cls", "value", "what"),
    [
        (OneBits, np.ones(3, np.uint8), "got uint8; bits are bool"),
        (OneBits, [True], "got list"),
        (OneInts, np.ones(3), "got float64; ints are int8"),
        (OneFloats, np.ones(3, int), "floats are float16"),
        (OneFloats, np.ones(3, np.longdouble), "floats are float16"),
        (OneBits, np.ones((1,) * 9, bool), "at most 8"),
        (OneBits, None, "got NoneType"),
        (OneSparse, np.ones(3), r"Sparse\.of"),
        (OneSparse, Sparse(np.ones(3, bool), np.ones(2)), "the mask selects 3"),
    ],
)
def test_a_wrong_value_is_refused_where_it_is_made(cls, value, what):
    with pytest.raises(TypeError, match=what):
        cls(value)


def test_scalars_are_checked_and_lose_their_numpy_type():
    class Scalars(Message):
        number: int
        share: float
        flag: bool
        name: str

    message = Scalars(np.int16(3), np.float32(0.5), np.bool_(True), "a")
    assert [type(getattr(message, name)) for name in ("number", "share", "flag")] == [int, float, bool]
    for wrong in [(1.5, 0, True, ""), (1 << 63, 0, True, ""), (1, 0, 1, ""), (1, 0, True, "x" * 256)]:
        with pytest.raises(TypeError):
            Scalars(*wrong)


def test_equality_is_of_every_bit():
    assert everything(1) == everything(1)
    assert everything(1) != everything(2)
    assert OneFloats(np.float32([np.nan])) == OneFloats(np.float32([np.nan]))
    assert OneFloats(np.float32([0.0])) != OneFloats(np.float32([-0.0]))
    assert OneFloats(np.float32([1.0])) != OneFloats(np.float64([1.0]))
    assert OneInts(np.ones((2, 3), int)) != OneInts(np.ones((3, 2), int))
    assert OneBits(np.ones(3, bool)) != OneInts(np.ones(3, int))


def test_sparse_goes_to_dense_and_back():
    vector, mask = np.float32([[1, 2], [3, 4]]), np.array([[True, False], [False, True]])
    assert Sparse.of(vector, mask).values.tolist() == [1, 4]
    assert Sparse.of(vector, mask).dense(fill=9).tolist() == [[1, 9], [9, 4]]


def test_paper_bits_must_name_fields():
    with pytest.raises(TypeError, match=r"paper_bits names \['wieghts'\]"):

        class Update(Message, paper_bits={"wieghts": 32}):
            weights: Ints


def test_annotations_written_as_text_are_read():
    cls = type("Late", (Message,), {"__annotations__": {"x": "Floats | None"}, "__module__": __name__})
    assert cls.schema == (("x", "floats", True),)
    assert Floats is not None


def test_a_snapshot_is_equal_and_stays_so_while_the_original_changes():
    message = everything(1)
    kept = message.snapshot()
    assert kept == message
    message.bits[0, 0] ^= True
    message.sparse.values[0] += 1
    assert kept != message
    assert kept.snapshot().bits is kept.bits  # nothing to copy any more
    with pytest.raises(ValueError, match="read-only"):
        kept.ints[0, 0] = 1


def test_a_copy_of_a_message_stays_as_it_is_and_shares_what_cannot_be_written_to() -> None:
    class News(Message):
        vector: Floats

    vector = np.ones(3, np.float32)
    kept = copy.deepcopy(News(vector))
    vector += 1
    assert kept.vector.tolist() == [1, 1, 1]
    assert copy.deepcopy(kept).vector is kept.vector
