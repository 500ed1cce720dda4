"""Plain JSON ↔ dataclasses: a record is checked against its annotations as it is read, and its fields are its keys."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


class Mismatch(ValueError):
    """What came instead of what was expected; whoever knows the file adds where."""

    def __init__(self, came: str, expected: str, *, is_value: bool = False) -> None:
        super().__init__(came, expected)
        self.came, self.expected, self._is_value, self._path = came, expected, is_value, ""

    def under(self, step: str) -> Mismatch:
        """The same, found under that key or place of what holds it."""
        self._path = step + self._path
        return self

    def __str__(self) -> str:
        came = f"{self._path.lstrip('.') or 'it'} {self.came}" if self._is_value else self.came
        return f"{came}; {self.expected} was expected"


class Limit(NamedTuple):
    """What an annotation says beyond the type: Annotated[int, Limit(...)]."""

    holds: Callable[[Any], bool]
    words: str


Count = Annotated[int, Limit(lambda n: n >= 0, "a whole number from 0 up")]
Amount = Annotated[float, Limit(lambda n: 0 <= n < math.inf, "a number from 0 up")]
Share = Annotated[float, Limit(lambda n: 0 <= n <= 1, "a number from 0 to 1")]
Finite = Annotated[float, Limit(math.isfinite, "a number")]


class Kind(NamedTuple):
    words: str
    read: Callable[[Any], Any]  # Mismatch for what is not of this kind


def read_record(cls: type[T], found: Any) -> T:
    """Keys that the class does not know are left out, for a later version may have written them."""
    kind: Any = cls
    record: T = find_kind(kind).read(found)
    return record


@cache
def find_kind(annotation: Any) -> Kind:
    origin, inner = get_origin(annotation), get_args(annotation)
    if is_dataclass(annotation):
        return _kind_of_object(annotation)
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if origin is Annotated:
        return _limit(find_kind(inner[0]), inner[1])
    if origin in (Union, UnionType) and len(inner) == 2 and inner[1] is NoneType:
        return _or_null(find_kind(inner[0]))
    if origin is Literal:
        *others, last = (f'"{choice}"' for choice in inner)
        return _limit(_PLAIN[str], Limit(inner.__contains__, f"{', '.join(others)} or {last}"))
    if origin is list:
        return _kind_of_list(find_kind(inner[0]).read)
    if origin is dict:
        return _kind_of_table(find_kind(inner[1]).read)
    raise TypeError(f"{annotation} is no kind that a record can hold; see {__name__}")


def _check(words: str, holds: Callable[[Any], bool]) -> Kind:
    def read(value: Any) -> Any:
        if not holds(value):
            raise Mismatch(f"is {str(value)[:60]!r}", words, is_value=True)
        return value

    return Kind(words, read)


# bool is an int to Python, but not here; a number may be written without its point, and a note may be NaN
_PLAIN: dict[Any, Kind] = {
    Any: Kind("anything", lambda value: value),
    bool: _check("true or false", lambda value: type(value) is bool),
    int: _check("a whole number", lambda value: type(value) is int),
    float: _check("a number", lambda value: type(value) in (int, float)),
    str: _check("a text", lambda value: type(value) is str),
}


def _limit(base: Kind, limit: Limit) -> Kind:
    def holds(value: Any) -> bool:
        try:
            return limit.holds(base.read(value))
        except Mismatch:
            return False

    return _check(limit.words, holds)


def _or_null(base: Kind) -> Kind:
    words = f"{base.words}, or null"

    def read(value: Any) -> Any:
        try:
            return None if value is None else base.read(value)
        except Mismatch as fault:
            fault.expected = words if fault.expected == base.words else fault.expected
            raise

    return Kind(words, read)


def _kind_of_list(read_one: Callable[[Any], Any]) -> Kind:
    is_list = _check("a list", lambda value: type(value) is list)

    def read(value: Any) -> Any:
        values: list[Any] = []
        is_list.read(value)
        try:
            for one in value:
                values.append(read_one(one))  # its length says where a fault is
        except Mismatch as fault:
            raise fault.under(f"[{len(values)}]") from None
        return values

    return Kind("a list", read)


def _kind_of_table(read_one: Callable[[Any], Any]) -> Kind:
    is_table = _check("an object", lambda value: type(value) is dict)

    def read(value: Any) -> Any:
        values, key = {}, ""
        is_table.read(value)
        try:
            for key, one in value.items():
                values[key] = read_one(one)
        except Mismatch as fault:
            raise fault.under(f".{key}") from None
        return values

    return Kind("an object", read)


def _kind_of_object(cls: Any) -> Kind:
    annotations = get_type_hints(cls, include_extras=True)
    kinds = [(field, find_kind(annotations[field.name])) for field in fields(cls)]
    words = f"an object with {', '.join(field.name for field, _ in kinds if _is_required(field))}"
    is_object = _check(words, lambda value: type(value) is dict)

    def read(value: Any) -> Any:
        found, given = {}, is_object.read(value)
        for field, kind in kinds:
            name = field.name
            if name in given:
                try:
                    found[name] = kind.read(given[name])
                except Mismatch as fault:
                    raise fault.under(f".{name}") from None
            elif _is_required(field):
                raise Mismatch("is missing", kind.words, is_value=True).under(f".{name}")
        return cls(**found)

    return Kind(words, read)


def _is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING
