"""A node's own examples: an .npz of arrays, read without ever unpickling, every fault in words."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.algorithm import Examples, Task
from laconic.records import Mismatch

PARTS = ("train", "val", "test")
REMEDY = "write it anew (docs/deploy.md)"


def write_examples(path: Path, parts: Sequence[Examples]) -> None:
    arrays: dict[str, NDArray[Any]] = {}
    for part, examples in zip(PARTS, parts, strict=True):
        arrays |= {f"x_{part}": examples.x, f"y_{part}": examples.y}
    np.savez_compressed(path, allow_pickle=False, **arrays)


def read_examples(path: Path, task: Task) -> tuple[Examples, Examples, Examples]:
    """A node's own; ValueError where they do not fit the task."""
    arrays = _read_arrays(path)
    try:
        train, val, test = (_check_part(part, arrays[f"x_{part}"], arrays[f"y_{part}"], task) for part in PARTS)
    except Mismatch as error:
        raise ValueError(f"{path}: {error}; {REMEDY}") from None
    return train, val, test


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    names = [f"{axis}_{part}" for part in PARTS for axis in "xy"]
    try:
        archive = np.load(io.BytesIO(path.read_bytes()), allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise ValueError
        with archive:
            found, arrays = archive.files, {name: archive[name] for name in names if name in archive.files}
    except FileNotFoundError:
        raise ValueError(f"{path} does not exist; an .npz of {', '.join(names)} was expected; {REMEDY}") from None
    except (ValueError, EOFError, RuntimeError, io.UnsupportedOperation, zipfile.BadZipFile, zlib.error):
        # what NumPy says of Python objects is how to load them unsafely
        wrong = "is damaged, cut short, or of Python objects, which are never unpickled"
        raise ValueError(f"{path} {wrong}; an .npz of {', '.join(names)} was expected; {REMEDY}") from None
    if missing := [name for name in names if name not in arrays]:
        came = f"has {', '.join(found) or 'nothing'}, and not {', '.join(missing)}"
        raise ValueError(f"{path} {came}; an .npz of {', '.join(names)} was expected; {REMEDY}")
    return arrays


def _check_part(part: str, x: NDArray[Any], y: NDArray[Any], task: Task) -> Examples:
    if y.ndim != 1 or y.dtype.kind not in "biuf":
        raise Mismatch(f"y_{part} is {y.dtype} {y.shape}", "one class for each example")
    if len(odd := y[y != np.floor(y)]):  # NaN too, which is equal to nothing
        raise Mismatch(f"y_{part} has {odd[0]}", "a whole number")
    if x.shape != (len(y), *task.input_shape):
        raise Mismatch(f"x_{part} has shape {x.shape}", str((len(y), *task.input_shape)))
    if x.dtype.kind not in "biuf" or not np.isfinite(x).all():
        raise Mismatch(f"x_{part} is {x.dtype}, and not all of it finite", "a finite number for each value")
    if len(y) and not 0 <= y.min() <= y.max() < task.n_classes:
        raise Mismatch(f"y_{part} reaches from {y.min():g} to {y.max():g}", f"0 to {task.n_classes - 1}")
    return Examples(x, y.astype(np.int64))
