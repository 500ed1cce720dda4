"""What travels: a message is a frozen dataclass whose annotations are its wire schema."""

import operator
import struct
import types
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, fields
from numbers import Real
from typing import (
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    Self,
    TypeAlias,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from numpy.typing import NDArray

Bits: TypeAlias = Annotated[NDArray[np.bool_], "bits"]
Ints: TypeAlias = Annotated[NDArray[np.integer[Any]], "ints"]
Floats: TypeAlias = Annotated[NDArray[np.floating[Any]], "floats"]
Count: TypeAlias = Annotated[int, "count"]
Share: TypeAlias = Annotated[float, "share"]
CountArray: TypeAlias = Annotated[NDArray[np.integer[Any]], "counts"]

# What the wire can tell apart, by the number it has there.
DTYPES = [np.dtype(f"<{code}") for code in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")]
ARRAY_KINDS = {"bits": "b", "ints": "iu", "counts": "iu", "floats": "f"}  # numpy's letters for each kind's dtypes
MOST_COUNT = 10**7  # of examples, say, that any one client is believed to have: more would outweigh all others
# Kinds that know their own limits: all lie between 0 and this.
MOST = {"count": MOST_COUNT, "counts": MOST_COUNT, "share": 1}
CARRIERS = {"count": "int", "counts": "ints", "share": "float"}  # and travel just as these do
MAX_TEXT_BYTES = 255

# A paper's own count of a field: bits for each element, or a rule from the field's value to bits.
PaperBits: TypeAlias = float | Callable[[Any], float]


class Sparse(NamedTuple):
    """Some entries of an array: mask (bool, any shape) says which, values (floats) follow in row-major order."""

    mask: NDArray[np.bool_]
    values: NDArray[np.floating[Any]]

    @classmethod
    def of(cls, vector: NDArray[np.floating[Any]], mask: NDArray[np.bool_]) -> Self:
        return cls(
            mask, vector.ravel()[np.flatnonzero(mask)]
        )  # five times as fast as vector[mask] where it is half full

    def dense(self, fill: float = 0) -> NDArray[np.floating[Any]]:
        if self.values.size == self.mask.size:
            return self.values.reshape(self.mask.shape).copy()
        out = np.full(self.mask.size, fill, self.values.dtype)
        out[np.flatnonzero(self.mask)] = self.values
        return out.reshape(self.mask.shape)


class Field(NamedTuple):
    name: str
    kind: str  # bits, ints, floats, sparse, int, float, bool, str, count, counts or share
    optional: bool


@dataclass_transform(frozen_default=True, eq_default=False)
class Message:
    """Base of all messages; `class Update(Message, paper_bits={"states": 1})` also names a paper's own bit count.

    `stateless=True`: never coded against an earlier one, so that neither end need keep it. For noise, such as weights.
    A reply may still be coded against something that both ends can work out; see `Coded`.
    """

    schema: ClassVar[tuple[Field, ...]] = ()
    paper_bits: ClassVar[Mapping[str, PaperBits]] = {}
    stateless: ClassVar[bool] = False
    limits: ClassVar[Mapping[str, int]] = {}

    def __init_subclass__(
        cls,
        paper_bits: Mapping[str, PaperBits] | None = None,
        stateless: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init_subclass__(**kwargs)
        cls.stateless = stateless
        dataclass(frozen=True, eq=False)(cls)
        try:
            hints = get_type_hints(cls, include_extras=True)
        except NameError as error:
            raise TypeError(f"{cls.__name__}: {error}; annotations must be readable where the class is made") from None
        cls.schema = tuple(read_annotation(cls, f.name, hints[f.name]) for f in fields(cls))  # type: ignore[arg-type]
        cls.paper_bits = {**cls.paper_bits, **(paper_bits or {})}
        if strangers := cls.paper_bits.keys() - {field.name for field in cls.schema}:
            raise TypeError(f"{cls.__name__}: paper_bits names {sorted(strangers)}, which are no fields of it")

    def __post_init__(self) -> None:
        for field in self.schema:
            value = getattr(self, field.name)
            if value is not None or not field.optional:
                try:
                    object.__setattr__(self, field.name, check_value(field.kind, value))
                except TypeError as error:
                    raise TypeError(f"{type(self).__name__}.{field.name}: {error}") from None

    def __eq__(self, other: object) -> bool:
        """Same class, and every field the same in kind, shape and each bit (so NaN equals itself, -0.0 is not 0.0)."""
        if type(other) is not type(self):
            return NotImplemented
        return all(are_same(getattr(self, name), getattr(other, name)) for name, _, _ in self.schema)

    __hash__ = None  # type: ignore[assignment]  # arrays inside

    def __deepcopy__(self, memo: object) -> Self:
        """Arrays that cannot be written to are shared: those that a server keeps for its clients are large."""
        return self.snapshot()

    def limited(self, **limits: int) -> Self:
        """The same, to bound its bytes by: whole numbers in these fields never lie beyond ± so much."""
        noted = copy(self)
        object.__setattr__(noted, "limits", limits)
        return noted

    def snapshot(self) -> Self:
        """An equal message that stays as it is: its arrays are its own and cannot be written to."""
        return type(self)(**{name: keep(getattr(self, name)) for name, _, _ in self.schema})


EMPTY = Message()


def keep(value: Any) -> Any:
    if isinstance(value, Sparse):
        return Sparse(*map(keep, value))
    if isinstance(value, np.ndarray) and value.flags.writeable:
        value = value.copy()
        value.setflags(write=False)
    return value


def read_annotation(cls: type, name: str, annotation: Any) -> Field:
    if name in ("schema", "paper_bits", "stateless", "limits"):
        raise TypeError(f"{cls.__name__}.{name}: messages use that name themselves")
    parts = get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)
    optional = len(parts) == 2 and types.NoneType in parts
    inner = next(part for part in parts if part is not types.NoneType) if optional else annotation
    if get_origin(inner) is Annotated and inner.__metadata__[0] in ARRAY_KINDS | CARRIERS:
        return Field(name, inner.__metadata__[0], optional)
    if inner in (int, float, bool, str, Sparse):
        return Field(name, inner.__name__.lower(), optional)
    raise TypeError(
        f"{cls.__name__}.{name} is {annotation}; a message carries Bits, Ints, Floats, Sparse, int, float, bool, str, "
        "Count, CountArray, Share or one of these | None"
    )


def check_value(kind: str, value: Any) -> Any:
    """The value as it will arrive; TypeError where the kind cannot carry it."""
    if kind in CARRIERS:
        return check_limits(check_value(CARRIERS[kind], value), MOST[kind])
    if kind in ARRAY_KINDS:
        return check_array(kind, value)
    if kind == "sparse":
        if not isinstance(value, Sparse):
            raise TypeError(f"got {type(value).__name__}; use Sparse.of(vector, mask)")
        mask, values = check_array("bits", value.mask), check_array("floats", value.values)
        if values.shape != (np.count_nonzero(mask),):
            raise TypeError(f"values have shape {values.shape}, the mask selects {np.count_nonzero(mask)}")
        return Sparse(mask, values)
    if kind == "bool":
        if not isinstance(value, bool | np.bool_):
            raise TypeError(f"got {value!r}; True or False was expected")
        return bool(value)
    if kind == "str":
        if not isinstance(value, str) or len(value.encode()) > MAX_TEXT_BYTES:
            raise TypeError(f"got {value!r:.40}; a text of at most {MAX_TEXT_BYTES} bytes was expected")
        return value
    if kind == "float":
        if not isinstance(value, Real):
            raise TypeError(f"got {value!r}; a number was expected")
        return float(value)
    number = operator.index(value)
    if not -(1 << 63) <= number < 1 << 63:
        raise TypeError(f"{number} does not fit 64 bits")
    return number


def check_limits(value: Any, most: int) -> Any:
    low, high = (value.min(initial=0), value.max(initial=0)) if isinstance(value, np.ndarray) else (value, value)
    if not (low >= 0 and high <= most):  # nor is NaN
        raise TypeError(f"got {high if low >= 0 else low}; 0 to {most} was expected")
    return value


def check_array(kind: str, array: Any) -> NDArray[Any]:
    if not isinstance(array, np.ndarray):
        raise TypeError(f"got {type(array).__name__}; an array was expected")
    if array.dtype.kind not in ARRAY_KINDS[kind] or array.itemsize > 8:
        raise TypeError(
            f"got {array.dtype}; {kind} are {' or '.join(str(t) for t in DTYPES if t.kind in ARRAY_KINDS[kind])}"
        )
    if array.ndim > 8:
        raise TypeError(f"got {array.ndim} axes; at most 8 travel")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def are_same(a: Any, b: Any) -> bool:
    if isinstance(a, Sparse) and isinstance(b, Sparse):
        return are_same(a.mask, b.mask) and are_same(a.values, b.values)
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.shape == b.shape and a.dtype == b.dtype and plain(a).tobytes() == plain(b).tobytes()
    if isinstance(a, float) and isinstance(b, float):
        return struct.pack("<d", a) == struct.pack("<d", b)
    return type(a) is type(b) and bool(a == b)


def plain(array: NDArray[Any]) -> NDArray[Any]:
    """The same values, contiguous and lowest byte first, as all coders expect them."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(array.shape)
