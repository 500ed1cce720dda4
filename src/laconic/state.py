"""Plain data to bytes and back: dataclasses, arrays, numbers, text and containers of them, told by their annotations.

One safetensors blob: the arrays, and a JSON tree of the rest as metadata. The reader is told which type to expect, so
nothing in the bytes can name code.
"""

import json
import types
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, TypeAlias, Union, cast, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

TREE = "tree"
REMEDY = "restore a copy or start the run anew"


class Substitute(NamedTuple):
    """What is kept in place of values of some type, and the way there and back."""

    kind: Any
    pack: Callable[[Any], Any]
    unpack: Callable[[Any], Any]


Substitutes: TypeAlias = Mapping[Any, Substitute]
NONE: Substitutes = MappingProxyType({})


def freeze(values: Mapping[str, Any], substitutes: Substitutes = NONE) -> bytes:
    """Equal values give equal bytes."""
    writer = _Writer({}, substitutes)
    tree = {name: writer.dissolve(value, name) for name, value in values.items()}
    return pack(tree, writer.arrays)


def pack(tree: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> bytes:
    return save_tensors(arrays, metadata={TREE: json.dumps(tree)})


def thaw(data: bytes, expected: Mapping[str, Any]) -> dict[str, Any]:
    """The values frozen under these names, of these types; ValueError where the bytes hold anything else."""
    return Frozen(data).thaw(expected)


class Frozen:
    """For those who learn from some values which types to expect of the others."""

    def __init__(self, data: bytes, substitutes: Substitutes = NONE) -> None:
        with _explained():
            # the blob is 8 bytes of header length, the header (JSON), the arrays
            header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
            self.tree, self.arrays = json.loads(header["__metadata__"][TREE]), load_tensors(data)
        self.substitutes = substitutes

    def thaw(self, expected: Mapping[str, Any]) -> dict[str, Any]:
        reader = _Reader(self.arrays, self.substitutes)
        with _explained():
            return {name: reader.restore(kind, self.tree[name], name) for name, kind in expected.items()}


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except (SafetensorError, json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, IndexError) as error:
        raise ValueError(f"no sound state: {type(error).__name__} {error}; {REMEDY}") from None


def find_not_finite(value: Any, path: str = "state") -> str | None:
    """Where in plain data a number is that is none; arrays that cannot be written to were looked at when they came."""
    if isinstance(value, float | np.floating):
        return None if np.isfinite(value) else path
    if isinstance(value, np.ndarray):
        is_sound = value.dtype.kind != "f" or not value.flags.writeable or bool(np.isfinite(value).all())
        return None if is_sound else path
    if isinstance(value, dict):
        parts: Iterable[tuple[str, Any]] = ((f"{path}[{key}]", part) for key, part in value.items())
    elif isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        parts = ((f"{path}[{k}]", part) for k, part in enumerate(value))
    elif (names := _field_types(cast(Hashable, type(value)))) is not None:
        parts = ((f"{path}.{name}", getattr(value, name)) for name in names)
    else:
        return None
    return next((found for name, part in parts if (found := find_not_finite(part, name)) is not None), None)


@dataclass(frozen=True)
class _Writer:
    arrays: dict[str, NDArray[Any]]  # by path, filled as they are met
    substitutes: Substitutes

    def dissolve(self, value: Any, path: str) -> Any:
        """What JSON can hold of it."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.ndarray):
            return self._keep(value, path)
        if type(value) in self.substitutes:
            return self.dissolve(self.substitutes[type(value)].pack(value), path)
        if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
            return [self.dissolve(part, f"{path}.{k}") for k, part in enumerate(value)]
        if isinstance(value, set | frozenset):
            return self.dissolve(sorted(value), path)
        if isinstance(value, dict):
            return [self.dissolve(pair, f"{path}.{k}") for k, pair in enumerate(value.items())]
        names = _field_types(cast(Hashable, type(value)))
        if names is None:
            raise TypeError(
                f"{path} is a {type(value).__name__}; state is made of numbers, text, arrays, lists, tuples, sets, "
                "dicts and dataclasses of these"
            )
        parts, later = {name: getattr(value, name) for name in names}, _later_defaults(cast(Hashable, type(value)))
        left_out = {name for name, default in later.items() if is_plainly(parts[name], default)}
        return {name: self.dissolve(part, f"{path}.{name}") for name, part in parts.items() if name not in left_out}

    def _keep(self, array: NDArray[Any], path: str) -> Any:
        if array.dtype == np.bool_:
            self.arrays[path] = np.packbits(array)
            return list(array.shape)
        self.arrays[path] = np.asarray(array, order="C")
        return str(array.dtype)


@dataclass(frozen=True)
class _Reader:
    arrays: dict[str, NDArray[Any]]
    substitutes: Substitutes

    def restore(self, kind: Any, tree: Any, path: str) -> Any:
        origin, parts = _take_apart(kind)
        if origin is Annotated:
            return self.restore(parts[0], tree, path)
        if origin in (Union, types.UnionType):
            if tree is None and types.NoneType in parts:
                return None
            (kind,) = (part for part in parts if part is not types.NoneType)
            return self.restore(kind, tree, path)
        if (origin or kind) is np.ndarray:
            if isinstance(tree, list):
                count = int(np.prod(tree, dtype=np.int64))
                return np.unpackbits(self.arrays[path], count=count).view(np.bool_).reshape(tree)
            return self.arrays[path].copy()  # what safetensors gives may not be written to
        if origin in (list, set, frozenset, tuple, dict):
            if origin is dict:
                pair = types.GenericAlias(tuple, parts)
                return dict(self.restore(pair, item, f"{path}.{k}") for k, item in enumerate(tree))
            kinds = parts if origin is tuple and parts[-1] is not Ellipsis else (parts[0],) * len(tree)
            items = enumerate(zip(kinds, tree, strict=True))
            return origin(self.restore(part, item, f"{path}.{k}") for k, (part, item) in items)
        if kind is float and isinstance(tree, int) and not isinstance(tree, bool):
            return float(tree)
        if kind in (bool, int, float, str, types.NoneType):
            if type(tree) is not kind:
                raise TypeError(f"{path} is {tree!r}, {kind.__name__} was expected")
            return tree
        if kind in self.substitutes:
            substitute = self.substitutes[kind]
            return substitute.unpack(self.restore(substitute.kind, tree, path))
        names = _field_types(kind)
        if names is None:
            raise TypeError(f"{path} should be a {kind}, which is no plain data")
        here = {name: part for name, part in names.items() if name in tree or name not in _later_defaults(kind)}
        return kind(**{name: self.restore(part, tree[name], f"{path}.{name}") for name, part in here.items()})


def is_plainly(value: Any, default: Any) -> bool:
    """Whether it is None, a number or text, and the same; arrays never are."""
    return value is default or (isinstance(value, bool | int | float | str) and value == default)


@cache
def _take_apart(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    return get_origin(kind), get_args(kind)


@cache
def _field_types(kind: Any) -> dict[str, Any] | None:
    """Names and types of a dataclass's or named tuple's fields; None for anything else."""
    if is_dataclass(kind):
        hints = get_type_hints(kind, include_extras=True)
        return {field.name: hints[field.name] for field in fields(kind)}
    return get_type_hints(kind) if hasattr(kind, "_fields") else None


@cache
def _later_defaults(kind: Any) -> dict[str, Any]:
    """Fields marked as `later`: a state without one has its default, so older states can be read, and equal newer."""
    if not is_dataclass(kind):
        return {}
    return {field.name: field.default for field in fields(kind) if field.metadata.get("later")}
