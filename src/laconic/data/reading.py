"""How data from outside is to be read, and which of it is for the test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

TEST_SHARE = 0.25  # of what comes without a test set


class Lacking(ValueError):
    """What a source needs is not installed; extra: what brings it."""

    def __init__(self, what: str, extra: str, error: ImportError) -> None:
        super().__init__(what)
        self.what, self.extra, self.error = what, extra, error


@dataclass(frozen=True)
class Reading:
    """Settings of [data] that say what is what in a table, a folder of images or a set from a hub."""

    label: str = ""  # column to predict
    group: str = ""  # column of owners
    features: tuple[str, ...] = ()  # columns to learn from; none: all others
    test: float | str = ""  # share of each owner's, or class's, examples, or a file of its own; "": a quarter
    size: int = 0  # pixels to a side that images are brought to; 0: as they are

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", tuple(self.features))
        if isinstance(self.test, float) and not 0 < self.test < 1:
            raise ValueError(f"data.test = {self.test} must be a share above 0 and below 1, or a file")
        if self.size < 0:
            raise ValueError(f"data.size = {self.size} must be at least 0 (0: images as they are)")

    @property
    def share(self) -> float:
        return self.test if isinstance(self.test, float) else TEST_SHARE

    @property
    def test_file(self) -> str:
        return self.test if isinstance(self.test, str) else ""

    def refuse_others(self, name: str, *read: str) -> None:
        """What is asked of a source that knows nothing of it is refused, not ignored."""
        for field in fields(self):
            if getattr(self, field.name) != field.default and field.name not in read:
                known = f"only of {', '.join(f'data.{each}' for each in read)}" if read else "of none of these settings"
                raise ValueError(f"data.{field.name} is given, but {name} knows {known}; leave it out")


def pick_test(groups: NDArray[Any], share: float = TEST_SHARE) -> NDArray[np.bool_]:
    """True for so many of each group, evenly spread: a split that no change of random streams can move."""
    order = np.argsort(groups, kind="stable")
    _, starts, sizes = np.unique(groups[order], return_index=True, return_counts=True)
    place = np.arange(len(groups)) - np.repeat(starts, sizes)
    chosen = np.empty(len(groups), np.bool_)
    # 1e-9: a share that is not exact in binary, 0.1, say, still gives one in ten
    chosen[order] = np.floor((place + 1) * share + 1e-9) > np.floor(place * share + 1e-9)
    return chosen


def pick_some(groups: NDArray[Any], share: float, column: str) -> NDArray[np.bool_]:
    """As pick_test, but both halves must have rows; column: what the groups are called."""
    is_test = pick_test(groups, share)
    if is_test.any() and not is_test.all():
        return is_test
    half = "training" if is_test.any() else "test"
    raise ValueError(
        f"a share of {share:g} of each {column} leaves no row for the {half}; give data.test another share, or a file"
    )


def split(table: dict[str, NDArray[Any]], by: Sequence[str], share: float) -> dict[str, NDArray[Any]]:
    """KEY_train and KEY_test of each column; by: the first of these that is there has each of its values split."""
    lengths = {key: len(column) for key, column in table.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"rows do not match: {', '.join(f'{key} has {n}' for key, n in lengths.items())}")
    key = next(key for key in by if key in table)
    is_test = pick_some(table[key], share, "label" if key == "y" else key)
    halves = (("train", ~is_test), ("test", is_test))
    return {f"{key}_{half}": column[rows] for key, column in table.items() for half, rows in halves}
