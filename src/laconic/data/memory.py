"""Data at hand as a data set: frames, arrays, or what a hub of data sets gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.columns import Origin, is_frame
from laconic.data.datasets import Dataset, from_arrays
from laconic.data.frames import from_frames, name_cells
from laconic.data.hub import OWNER, find_splits, from_splits
from laconic.data.known import ARRAYS
from laconic.data.reading import Reading, split


def from_memory(data: Any, reading: Reading, name: str = "data") -> Dataset:
    """data: a frame, (x, y), (x, y, owners), a mapping of x_train, y_train, x_test and y_test, or from a hub.

    Of what comes without a test set, a quarter of each owner's rows, or else of each class, becomes one.
    """
    if isinstance(data, Dataset):
        reading.refuse_others(name, "group")
        return data
    if splits := find_splits(data):
        return from_splits(name, splits, reading)
    if reading.test_file:
        raise ValueError(f"test = {reading.test!r} is a file; of data at hand, give the share of rows for the test")
    if is_frame(data):
        reading.refuse_others(name, "label", "group", "features", "test")
        return from_frames(name, [(data, Origin("the frame"))], reading)
    reading.refuse_others(name, "group", "test")
    if isinstance(data, Mapping):
        return from_arrays(name, data)
    if isinstance(data, tuple) and len(data) in (2, 3):
        owner = reading.group or OWNER
        table = {key: as_rows(key, part, name) for key, part in zip(("x", "y", owner), data, strict=False)}
        return from_arrays(name, split(table, [owner, "y"], reading.share))
    raise ValueError(
        f"data is a {type(data).__name__}; give the name or path of a data set, a frame with label=, (x, y), "
        f"(x, y, owners), or a mapping of {', '.join(ARRAYS)}"
    )


def as_rows(key: str, given: Any, name: str) -> NDArray[Any]:
    """x as it is; labels and owners one in each row."""
    try:
        rows = np.asarray(given)
    except ValueError as error:
        raise ValueError(f"{name}: {key} is no array, its rows differ in length ({error})") from error
    if key == "x":
        return rows
    if rows.ndim == 2 and rows.shape[1] == 1:
        rows = rows[:, 0]
    if rows.ndim != 1:
        raise ValueError(f"{name}: {key} is of shape {rows.shape}; one value for each row was expected")
    return name_cells(key, rows, Origin(name)) if rows.dtype.kind in "Of" else rows
