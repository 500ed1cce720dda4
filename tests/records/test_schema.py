"""Records read from their annotations: what fits is taken, what does not is named with its place."""

import re
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from laconic.records.schema import Amount, Count, Finite, Mismatch, Share, read_record


@dataclass(frozen=True)
class Inner:
    name: str
    counts: list[Count] | None = None


@dataclass(frozen=True, kw_only=True)
class Outer:
    count: Count
    late: Count = 7
    share: Share | None
    amount: Amount
    rows: list[list[Finite]]
    notes: dict[str, float | None]
    way: Literal["up", "down"]
    is_done: bool
    inner: Inner
    several: list[Inner] = field(default_factory=list)
    free: dict[str, Any] | None = None


GOOD: dict[str, Any] = {
    "count": 1,
    "share": None,
    "amount": 2,
    "rows": [[0.5, -1], []],
    "notes": {"odd": float("nan"), "none": None},
    "way": "up",
    "is_done": True,
    "inner": {"name": "x"},
    "several": [{"name": "y", "counts": [0, 3]}],
    "free": {"any": ["thing"]},
}


def test_what_fits_is_read_and_what_older_records_lack_is_filled_in() -> None:
    read = read_record(Outer, GOOD | {"from the future": 1})
    assert (read.count, read.late, read.share, read.amount) == (1, 7, None, 2)
    assert read.rows == [[0.5, -1], []]
    assert read.inner == Inner("x")
    assert read.several == [Inner("y", [0, 3])]
    assert read.free == {"any": ["thing"]}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"count": -1}, "count is '-1'; a whole number from 0 up was expected"),
        ({"count": True}, "count is 'True'; a whole number from 0 up was expected"),
        ({"count": 1.0}, "count is '1.0'; a whole number from 0 up was expected"),
        ({"share": 1.5}, "share is '1.5'; a number from 0 to 1, or null was expected"),
        ({"amount": float("inf")}, "amount is 'inf'; a number from 0 up was expected"),
        ({"amount": "much"}, "amount is 'much'; a number from 0 up was expected"),
        ({"rows": [[0.5], [1, float("nan")]]}, "rows[1][1] is 'nan'; a number was expected"),
        ({"rows": 5}, "rows is '5'; a list was expected"),
        ({"notes": {"a": "b"}}, "notes.a is 'b'; a number, or null was expected"),
        ({"notes": []}, "notes is '[]'; an object was expected"),
        ({"way": "sideways"}, 'way is \'sideways\'; "up" or "down" was expected'),
        ({"way": []}, 'way is \'[]\'; "up" or "down" was expected'),
        ({"is_done": 0}, "is_done is '0'; true or false was expected"),
        ({"inner": {}}, "inner.name is missing; a text was expected"),
        ({"inner": None}, "inner is 'None'; an object with name was expected"),
        ({"several": [{"name": "y", "counts": [0, None]}]}, "several[0].counts[1] is 'None'; a whole number from 0 up"),
        ({"free": [1]}, "free is '[1]'; an object, or null was expected"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(Mismatch, match=re.escape(complaint)):
        read_record(Outer, GOOD | change)


def test_what_is_no_object_at_all_is_named() -> None:
    with pytest.raises(Mismatch, match=r"it is '\[\]'; an object with count, share, amount, .* was expected"):
        read_record(Outer, [])
    with pytest.raises(Mismatch, match="count is missing; a whole number from 0 up was expected"):
        read_record(Outer, {})


def test_an_annotation_that_json_cannot_hold_is_refused_where_it_is_written() -> None:
    @dataclass
    class Odd:
        when: set[int]

    with pytest.raises(TypeError, match="is no kind that a record can hold"):
        read_record(Odd, {"when": []})
