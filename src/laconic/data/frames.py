"""Frames as a data set, of pandas, polars or any other library whose frames have columns by name."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.columns import Origin, by_text, find_alike, fit_column, read_cells, refuse_merged
from laconic.data.datasets import Dataset, from_arrays, write_columns
from laconic.data.reading import Reading, pick_some

Parts = Sequence[tuple[Any, Origin]]  # a table, and a second one if the test has its own


def from_frames(name: str, parts: Parts, reading: Reading) -> Dataset:
    parts = [(by_text(frame, origin), origin) for frame, origin in parts]
    for frame, origin in parts:
        check_names(list(frame.columns), reading, origin)
    label, group = reading.label, reading.group
    features = reading.features or tuple(each for each in parts[0][0].columns if each not in (label, group))
    for frame, origin in parts[1:]:
        if lacking := [name for name in features if name not in frame.columns]:
            raise ValueError(f"{origin.name} has no column {', '.join(lacking)}, which {parts[0][1].name} has")
    names = {"y": read_names(label, parts)} | ({group: read_names(group, parts)} if group else {})
    if len(np.unique(names["y"])) < 2:
        raise ValueError(f"column {label} holds {names['y'][0]} in every row; there is nothing to tell apart")
    if len(parts) > 1:
        is_test = np.repeat([False, True], [len(frame) for frame, _ in parts])
    else:
        is_test = pick_some(names[group or "y"], reading.share, group or label)
    arrays, notes = read_features(parts, features, is_test)
    for key, column in names.items():
        arrays |= {f"{key}_train": column[~is_test], f"{key}_test": column[is_test]}
    return replace(from_arrays(name, arrays), notes=notes)


def read_features(
    parts: Parts, names: Sequence[str], is_test: NDArray[np.bool_]
) -> tuple[dict[str, NDArray[Any]], tuple[str, ...]]:
    """Arrays of a data set, and what is odd about columns."""
    rows = {"x_train": ~is_test, "x_test": is_test}
    # column by column in memory, as they are filled and read again
    x = {half: np.empty((int(mine.sum()), len(names)), np.float64, order="F") for half, mine in rows.items()}
    fitted = []
    for k, name in enumerate(names):
        column, numbers, odd = fit_column(name, [(frame[name], origin) for frame, origin in parts])
        together = np.concatenate(numbers)
        for half, mine in rows.items():
            x[half][:, k] = together[mine]
        fitted.append((column, odd))
    arrays: dict[str, NDArray[Any]] = {**x, "features": np.array(names)}
    columns = [column for column, _ in fitted]
    if any(column.values or column.may_lack for column in columns):
        arrays["columns"] = write_columns(columns)
    elif all(np.isin(half, (0, 1)).all() for half in x.values()):
        arrays |= {half: bits.astype(np.uint8) for half, bits in x.items()}
    return arrays, tuple(odd for _, odd in fitted if odd)


def check_names(columns: Sequence[str], reading: Reading, origin: Origin) -> None:
    there = f"columns of {origin.name} are {', '.join(map(str, columns))}"
    if not reading.label:
        raise ValueError(f"data.label is empty; which column is to be predicted? {there}")
    for key, names in {"label": [reading.label], "group": [reading.group], "features": reading.features}.items():
        if lacking := [name for name in names if name and name not in columns]:
            raise ValueError(f"data.{key}: there is no column {', '.join(lacking)}; {there}")
    if reading.group in ("x", "y"):
        raise ValueError(f"data.group = {reading.group!r} means something else here; rename that column")
    if reading.label == reading.group or {reading.label, reading.group} & {*reading.features}:
        raise ValueError("data.label, data.group and data.features must be different columns")
    if not {*columns} - {reading.label, reading.group}:
        named = " and ".join(filter(None, [reading.label, reading.group]))
        raise ValueError(f"there is no column beside {named} to learn from; {there}")


def read_names(column: str, parts: Parts) -> NDArray[Any]:
    """[row] whole numbers or text, one in each."""
    found = [(name_cells(column, frame[column], origin), origin) for frame, origin in parts]
    names = [part for part, _ in found]
    if len({part.dtype.kind for part in names}) > 1:
        known = {text for part in names if part.dtype.kind == "U" for text in part.tolist()}
        names = [liken(column, part.astype(np.str_), known, origin) for part, origin in found]
    return np.concatenate(names)


def liken(column: str, names: NDArray[np.str_], known: Set[str], origin: Origin) -> NDArray[np.str_]:
    """Numbers as the text of another table has them: 3 is 3, or 03 if that alone is there."""
    alike = find_alike({*names.tolist()}, known)
    for row, name in enumerate(names.tolist()):
        if len(alike[name]) > 1:
            raise origin.error(
                column, row, name, f"elsewhere that is {' or '.join(sorted(alike[name]))}: write it alike"
            )
    return np.array([(alike[name] or [name])[0] for name in names.tolist()], np.str_)


def name_cells(column: str, given: Any, origin: Origin) -> NDArray[Any]:
    if (whole := find_whole(given)) is not None:
        return whole
    cells = read_cells(column, given, origin)
    # NaN is not itself either
    is_odd = [cell is None for cell in cells] if isinstance(cells, list) else cells != np.rint(cells)
    if True in is_odd:
        row = int(np.argmax(is_odd))
        raise origin.error(column, row, cells[row], "a name or a whole number was expected: fill it in or drop the row")
    if isinstance(cells, list):
        return np.array(cells, np.str_)
    refuse_merged(column, cells, origin)
    return cells.astype(np.int64)


def find_whole(given: Any) -> NDArray[Any] | None:
    """[row] integers as they came, beyond 64 bits as text; None if anything else is among them."""
    cells = np.empty(0) if isinstance(given, list) else np.asarray(given)  # lists are cells of files: text
    kind = cells.dtype.kind
    are_whole = all(isinstance(cell, Integral) and not isinstance(cell, bool) for cell in cells if kind == "O")
    if kind not in "iuO" or cells.ndim != 1 or not are_whole:
        return None
    try:
        return np.array(cells.tolist(), np.int64)
    except OverflowError:
        return cells.astype(np.str_)
