from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from laconic import tsetlin as tm
from laconic.state import freeze, thaw
from laconic.wire import Bits, Ints, Message, Sparse


class Told(Message):
    bits: Bits
    counts: Ints | None
    some: Sparse | None
    name: str


@dataclass
class Inner:
    numbers: NDArray[np.float32]
    label: str | None


@dataclass
class Everything:
    flag: bool
    count: int
    share: float
    inner: Inner
    parts: tuple[Inner, ...]
    pair: tuple[int, str]
    by_client: dict[int, NDArray[np.int64]]
    met: set[int] = field(default_factory=set)
    names: list[str] = field(default_factory=list)
    told: Told | None = None


arrays = hnp.arrays(
    st.sampled_from([np.float32, np.bool_, np.uint8, np.int64]), hnp.array_shapes(min_dims=0, min_side=0)
)
inners = st.builds(Inner, arrays, st.none() | st.text())
told = st.builds(
    Told,
    hnp.arrays(np.bool_, hnp.array_shapes(min_side=0)),
    st.none() | hnp.arrays(np.int16, 3),
    st.none() | hnp.arrays(np.bool_, 6).map(lambda mask: Sparse.of(np.arange(6.0), mask)),
    st.text(max_size=9),
)
everything = st.builds(
    Everything,
    st.booleans(),
    st.integers(),
    st.floats(),
    inners,
    st.lists(inners, max_size=3).map(tuple),
    st.tuples(st.integers(), st.text()),
    st.dictionaries(st.integers(0, 99), hnp.arrays(np.int64, 4), max_size=3),
    st.sets(st.integers()),
    st.lists(st.text()),
    st.none() | told,
)


def same(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    if isinstance(a, Everything | Inner):
        return type(a) is type(b) and all(same(value, vars(b)[name]) for name, value in vars(a).items())
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(map(same, a.values(), b.values()))
    return a == b or (a != a and b != b)


@given(everything)
def test_plain_data_comes_back_as_it_was(value: Everything) -> None:
    data = freeze({"value": value})
    back = thaw(data, {"value": Everything})["value"]
    assert same(back, value)
    assert freeze({"value": back}) == data


@given(everything, st.data())
def test_damaged_bytes_are_a_clear_error_or_a_value_of_the_type(value: Everything, data: st.DataObject) -> None:
    blob = bytearray(freeze({"value": value}))
    where = data.draw(st.integers(0, len(blob) - 1))
    blob[where] ^= data.draw(st.integers(1, 255))
    cut = bytes(blob[: data.draw(st.integers(0, len(blob)))])
    try:
        back = thaw(cut, {"value": Everything})["value"]
    except ValueError as error:
        back = error
    assert isinstance(back, Everything) or "no sound state" in str(back)


def test_a_machine_trains_on_as_if_it_had_never_been_frozen() -> None:
    shape = tm.Shape.image(6, 6, patch=(3, 3))
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 2, (30, 6, 6), dtype=np.uint8), rng.integers(0, 3, 30)
    machine = tm.build(shape, 3, 5)
    tm.fit(machine, x, y, np.random.default_rng(1))
    back = thaw(freeze({"machine": machine}), {"machine": tm.Machine})["machine"]
    for each in (machine, back):
        tm.fit(each, x, y, np.random.default_rng(2))
    assert np.array_equal(machine.states, back.states)
    assert np.array_equal(machine.weights, back.weights)


def test_what_is_no_plain_data_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"server\.step is a function"):
        freeze({"server": Holder(freeze)})


@dataclass
class Holder:
    step: object
