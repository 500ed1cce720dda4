"""What a reader expects of each field, so that others are refused unread: is it there, how large, how far from 0."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from laconic.wire.buffer import WireError
from laconic.wire.message import ARRAY_KINDS, Message, Sparse


class UpTo(NamedTuple):
    """Any number from 0 to this."""

    most: int

    def __str__(self) -> str:
        return f"up to {self.most}"


Length: TypeAlias = int | UpTo


class Due(NamedTuple):
    """A field as it must be. Of a Sparse, shape is the mask's; a number's or a text's is ()."""

    shape: tuple[Length, ...] = ()
    most: float = math.inf  # no entry lies beyond ± this
    n_chosen: Length | None = None  # values of a Sparse; None: as many as its mask has places
    item_bytes: int = 8  # that the widest dtype may take for a number: 4 refuses float64 and int64
    may_lack: bool = False  # whether it is there is up to the sender


Expected: TypeAlias = Mapping[str, Due | None]  # None: the field must not be there


def check_expected(cls: type[Message], expected: Expected) -> None:
    """ValueError where no message of this class could meet it, which is the reader's own mistake."""
    kinds = {field.name: field for field in cls.schema}
    for name, due in expected.items():
        if name not in kinds:
            raise ValueError(f"{name} is expected, which is no field of {cls.__name__}")
        _, kind, optional = kinds[name]
        if due is None:
            if not optional:
                raise ValueError(f"{cls.__name__}.{name} is always there; None is expected of fields that may be None")
            continue
        if due.shape and kind not in ARRAY_KINDS and kind != "sparse":
            raise ValueError(f"{cls.__name__}.{name} is one {kind}; its shape is (), not {write_shape(due.shape)}")
        if due.n_chosen is not None and kind != "sparse":
            raise ValueError(f"{cls.__name__}.{name} is {kind}; n_chosen is for a Sparse")
        if due.most < math.inf and kind in ("bits", "bool", "str"):
            raise ValueError(f"{cls.__name__}.{name} is {kind}; most is for numbers")


def check_presence(expected: Expected, is_set: Mapping[str, bool]) -> None:
    """By the flags in the head of a message."""
    for name, due in expected.items():
        if is_set.get("has " + name, True) != (due is not None) and not (due and due.may_lack):
            raise WireError(f"{name} came, but was not expected" if due is None else f"{name} is missing")


def check_size(name: str, due: Due, shape: tuple[int, ...], item_bytes: int) -> None:
    """To be called before anything of this size is made."""
    if len(shape) != len(due.shape) or not all(map(fits, shape, due.shape)):
        raise WireError(f"{name} has shape {shape}, {write_shape(due.shape)} was expected")
    if item_bytes > due.item_bytes:
        raise WireError(f"{name} takes {item_bytes} bytes a number, at most {due.item_bytes} was expected")


def check_chosen(name: str, due: Due, n_chosen: int) -> None:
    if due.n_chosen is not None and not fits(n_chosen, due.n_chosen):
        raise WireError(f"{name} chooses {n_chosen} entries, {due.n_chosen} was expected")


def check_entries(name: str, value: Any, most: float, *, must_be_finite: bool) -> None:
    """most: of numbers' sizes; inf where any will do."""
    if most == math.inf and not must_be_finite:
        return
    numbers = np.asarray(value.values if isinstance(value, Sparse) else value)
    if numbers.dtype.kind not in "iuf" or not numbers.size:
        return
    low, high = find_ends(numbers)
    if numbers.dtype.kind == "f" and (np.isnan([low, high]).any() or (must_be_finite and np.isinf([low, high]).any())):
        raise WireError(f"{name} is not finite")
    furthest = high if abs(high.item()) > abs(low.item()) else low  # Python's own: |low| may have no place in int64
    if abs(furthest.item()) > most:
        raise WireError(f"{name} reaches {furthest!s}, at most {most:.15g} was expected")


def find_ends(numbers: NDArray[Any]) -> tuple[Any, Any]:
    """Two entries, as far from 0 as any on their side of it; where there are NaNs, one is among them."""
    if numbers.dtype.kind != "f":
        return numbers.min(), numbers.max()
    # As whole numbers, floats rise with their size: as unsigned ones the negative above all others, as signed below.
    width = numbers.itemsize
    ends = numbers.view(f"u{width}").max(), numbers.view(f"i{width}").max().view(f"u{width}")
    low, high = np.array(ends).view(numbers.dtype)
    return low, high


def fits(length: int, due: Length) -> bool:
    return length <= due.most if isinstance(due, UpTo) else length == due


def write_shape(shape: tuple[Length, ...]) -> str:
    return f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"
