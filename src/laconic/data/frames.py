"""Data at hand as a data set: arrays, or a frame with a column of labels and, maybe, one that says who owns a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.data.datasets import Dataset, from_arrays
from laconic.data.known import ARRAYS
from laconic.data.readers import every_fourth

OWNER = "client"  # what the column of owners is called, where it has no name


def from_memory(data: Any, *, label: str | None = None, group: str | None = None, name: str = "data") -> Dataset:
    """data: a frame, (x, y), (x, y, owners), or a mapping of x_train, y_train, x_test and y_test.

    Of what comes without a test set, every fourth row of each owner, or else of each class, becomes one.
    """
    if hasattr(data, "columns"):
        return _split(name, *_read_frame(data, label, group))
    if isinstance(data, Mapping):
        return from_arrays(name, data)
    if isinstance(data, tuple) and len(data) in (2, 3):
        x, y, *owners = (np.asarray(part) for part in data)
        return _split(name, {"x": x, "y": y} | ({group or OWNER: owners[0]} if owners else {}), ())
    raise ValueError(
        f"data is a {type(data).__name__}; give the name or path of a data set, a frame with label=, (x, y), "
        f"(x, y, owners), or a mapping of {', '.join(ARRAYS)}"
    )


def _read_frame(frame: Any, label: str | None, group: str | None) -> tuple[dict[str, NDArray[Any]], tuple[str, ...]]:
    columns = [str(column) for column in frame.columns]
    for role, column in {"label": label, "group": group}.items():
        if (column is None and role == "label") or (column is not None and column not in columns):
            raise ValueError(f"{role} is {column!r}; name a column of the frame: {', '.join(columns)}")
    features = tuple(column for column in columns if column not in (label, group))
    if not features:
        raise ValueError(f"the frame has no column beside {label} and {group}; there is nothing to learn from")
    x = np.stack([_read_column(frame, column) for column in features], axis=1)
    table = {"x": x, "y": _read_names(frame, str(label))}
    return table | ({} if group is None else {group: _read_names(frame, group)}), features


def _read_column(frame: Any, column: str) -> NDArray[np.float64]:
    values = np.asarray(frame[column])
    if values.dtype.kind not in "buif":
        raise ValueError(f"column {column} holds {values.dtype}, numbers were expected; encode it or leave it out")
    numbers = values.astype(np.float64)
    if not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise ValueError(f"column {column} has no number in row {row}; fill it in or drop the row")
    return numbers


def _read_names(frame: Any, column: str) -> NDArray[Any]:
    """Whole numbers or text."""
    values = np.asarray(frame[column])
    if values.dtype.kind == "O":
        if missing := [row for row, value in enumerate(values.tolist()) if not isinstance(value, str)]:
            came = values[missing[0]]
            raise ValueError(f"column {column} holds {came!r} in row {missing[0]}, text was expected in all or none")
        return values.astype(np.str_)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError(f"column {column} has no value in row {int(np.flatnonzero(~np.isfinite(values))[0])}")
    return values


def _split(name: str, table: dict[str, NDArray[Any]], features: tuple[str, ...]) -> Dataset:
    lengths = {key: len(column) for key, column in table.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"rows do not match: {', '.join(f'{key} has {n}' for key, n in lengths.items())}")
    owners = [key for key in table if key not in ("x", "y")]
    is_test = every_fourth(table[owners[0] if owners else "y"])
    halves = {f"{key}_{half}": column[rows] for key, column in table.items() for half, rows in
              (("train", ~is_test), ("test", is_test))}  # fmt: skip
    return from_arrays(name, halves | ({"features": np.array(features)} if features else {}))


def to_arrays(dataset: Dataset) -> dict[str, NDArray[Any]]:
    """What from_arrays takes, to be kept in an .npz."""
    arrays: dict[str, NDArray[Any]] = {key: getattr(dataset, key) for key in ARRAYS}
    arrays |= {"classes": np.array(dataset.classes), "features": np.array(dataset.features, np.str_)}
    for column, (train, test) in dataset.groups.items():
        arrays |= {f"{column}_train": train, f"{column}_test": test}
    return arrays
