"""Which bank is for which examples; one of the user's own; and features that are made once."""

import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from laconic.importing import import_function

Shape = tuple[int, ...]  # of one example: (columns,), (height, width) or (height, width, layers)
ONE = 32
BATCH = 256  # examples at a time
N_WIDE = 4000  # of a table's bank for a head that is never sent; that of images has as many
MIRRORED = "mirrored"  # in place of a bank of the user's own: images and their mirror images are seen as one


class Bank(Protocol):
    @property
    def n_features(self) -> int: ...

    def read(self, x: NDArray[np.uint8]) -> NDArray[np.int8]:
        """[example, feature] whole 32nds from -1 to 1."""


@dataclass(frozen=True, eq=False)
class Reshaped:
    """A bank for images, whatever the layers of grey ones are called."""

    bank: Bank
    shape: Shape  # (height, width, layers)

    @property
    def n_features(self) -> int:
        return self.bank.n_features

    def read(self, x: NDArray[np.uint8]) -> NDArray[np.int8]:
        return self.bank.read(np.ascontiguousarray(x).reshape(len(x), *self.shape))


class Mixing(Protocol):
    @property
    def n_features(self) -> int: ...

    def mix(self, wide: NDArray[np.int8]) -> NDArray[np.int8]: ...


@dataclass(frozen=True, eq=False)
class Mixed:
    """Features that are mixtures of a wide bank's."""

    wide: Bank
    mixing: Mixing

    @property
    def n_features(self) -> int:
        return self.mixing.n_features

    def read(self, x: NDArray[np.uint8]) -> NDArray[np.int8]:
        batches = [self.wide.read(x[k : k + BATCH]) for k in range(0, len(x), BATCH)]  # which are several times larger
        return np.concatenate([np.zeros((0, self.n_features), np.int8), *map(self.mixing.mix, batches)])


@dataclass(frozen=True, eq=False)
class OwnBank:
    """One of the user's own, say a frozen network that all ends hold: bytes [example, ...] to numbers from -1 to 1."""

    where: str
    function: Callable[[NDArray[np.uint8]], Any]
    n_features: int

    def read(self, x: NDArray[np.uint8]) -> NDArray[np.int8]:
        if not len(x):
            return np.zeros((0, self.n_features), np.int8)
        found = np.asarray(self.function(x), np.float64)
        if found.ndim != 2 or len(found) != len(x) or found.shape[1] < self.n_features or not np.isfinite(found).all():
            raise ValueError(
                f"method.bank = {self.where} gave numbers of shape {found.shape} for {len(x)} examples; "
                f"({len(x)}, {self.n_features} or more) finite ones were expected"
            )
        whole: NDArray[np.int8] = np.rint(ONE * found[:, : self.n_features].clip(-1, 1)).astype(np.int8)
        return whole


@cache
def open_bank(shape: Shape, n_features: int, where: str = "") -> Bank:
    """where: package.module:function, a bank of the user's own; or mirrored."""
    if where not in ("", MIRRORED):
        return OwnBank(where, import_function(where), n_features)
    if len(shape) == 1:
        return open_table(shape[0], n_features, where)
    from laconic.banks.images import VIEWS, build_mixtures

    return Mixed(open_wide(shape, where), build_mixtures(*check_layers(shape), VIEWS[where], n_features))


@cache
def open_wide(shape: Shape, where: str = "") -> Bank:
    """Some thousands of features, for what never travels; beside a bank of the user's own as if there were none."""
    if len(shape) == 1:
        return open_table(shape[0], N_WIDE, where)
    from laconic.banks.images import VIEWS, build_wide

    full = check_layers(shape)
    return Reshaped(build_wide(*full, VIEWS.get(where, VIEWS[""])), full)


def open_table(n_columns: int, n_features: int, where: str) -> Bank:
    from laconic.banks.tables import build_table

    if where == MIRRORED:
        raise ValueError(f'method.bank = "{where}" is for images; a row of {n_columns} columns has no mirror image')
    return build_table(n_columns, n_features)


@dataclass(frozen=True)
class Choice:
    """A bank as plain data: what it is for, how large, whose."""

    shape: Shape
    n_features: int  # 0: all that there are, for what never travels
    where: str = ""

    def open(self) -> Bank:
        if self.n_features:
            return open_bank(self.shape, self.n_features, self.where)
        return open_wide(self.shape, self.where)

    @property
    def wide(self) -> "Choice":
        """The one whose features are all heard at home."""
        return replace(self, n_features=0)

    def read(self, x: NDArray[np.uint8], n_layers: int | None = None) -> NDArray[np.float64]:
        """[example, feature] from -1 to 1; n_layers: as read_once has it."""
        return read_once(self.open(), x, n_layers) / ONE


def check_layers(shape: Shape) -> tuple[int, int, int]:
    height, width, n_layers = (*shape, 1)[:3]
    if n_layers not in (1, 3):
        raise ValueError(
            f"there is no bank for images of {n_layers} layers, 1 (grey) or 3 (colours) were expected; "
            "name one of your own: method.bank = package.module:function"
        )
    return height, width, n_layers


_READ: dict[tuple[int, int], tuple[weakref.ref[Any], NDArray[np.int8]]] = {}


def read_once(bank: Bank, x: NDArray[np.uint8], n_layers: int | None = None) -> NDArray[np.int8]:
    """As bank.read; of examples that stay from round to round as long as these are held.

    n_layers: the last so many layers, or columns, are for the bank; None: all.
    """
    key = (id(x), id(bank))
    if key not in _READ:
        if isinstance(bank, Mixed) and (wide := _READ.get((id(x), id(bank.wide)))):
            found = bank.mixing.mix(wide[1])
        else:
            found = bank.read(x if n_layers is None else x[..., -n_layers:])
        _READ[key] = (weakref.ref(x, lambda _: _READ.pop(key, None)), found)
    return _READ[key][1]
