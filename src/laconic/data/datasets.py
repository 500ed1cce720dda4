"""Data sets by name or file, as arrays checked once; nothing is downloaded unless asked for."""

import json
import tempfile
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from laconic.columns import Column, Origin, encode_rows
from laconic.data.files import MissingFiles
from laconic.data.known import ARRAYS, EMBEDDED, KNOWN, data_folder, find
from laconic.data.known import download as fetch_known  # `load` has a flag of that name
from laconic.data.reading import pick_test
from laconic.files import put_in_place

__all__ = ["KNOWN", "Dataset", "from_arrays", "load"]

_CLASS_KEYS = ("classes", "class_names")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Examples [n, ...] with labels 0..len(classes)-1; each class has training examples."""

    name: str
    x_train: NDArray[Any]  # uint8 images [n, h, w] or [n, h, w, channels], or numbers or bits of any shape
    y_train: NDArray[np.int64]
    x_test: NDArray[Any]
    y_test: NDArray[np.int64]
    classes: tuple[str, ...]
    booleanize: str  # how a Tsetlin Machine reads it unless told otherwise, e.g. "threshold:75", "quantile:4", "none"
    groups: dict[str, tuple[NDArray[Any], NDArray[Any]]]  # column, e.g. "speaker" -> its values in train and in test
    features: tuple[str, ...] = ()  # names of the columns of a table, where they have any
    columns: tuple[Column, ...] = ()  # of a table that holds text or lacks values: how its numbers are to be read
    notes: tuple[str, ...] = ()  # what is odd about it


def load(name: str, folder: Path | None = None, *, download: bool = False) -> Dataset:
    """A name of KNOWN, the name of any .npz in the folder, or a path that ends with .npz.

    NAME@COLUMN is NAME with a quarter of the examples of each group, e.g. of each speaker, for the test; with label as
    the column, a quarter of each class.
    """
    base, is_split, column = name.rpartition("@")
    if is_split and not column.endswith(".npz"):
        return split_groups(load(base, folder, download=download), column)
    if name.endswith(".npz"):
        return from_arrays(Path(name).stem, _read_npz(Path(name).expanduser()))
    folder = data_folder(folder)
    stored = folder / f"{name}.npz"
    if stored.is_file() and name not in EMBEDDED:
        return from_arrays(name, _read_npz(stored))
    known = find(name, folder)
    if download:
        fetch_known(name, folder)
    try:
        arrays = known.read(folder / known.home)
    except MissingFiles as error:
        raise ValueError(
            f"{name} is not in {folder}: no {stored.name} there, and {error}. Get it from {known.page} or with  "
            "--set data.download=true  (laconic reproduce: --download) or set LACONIC_DATA to its folder"
        ) from None
    if known.is_slow:
        _keep(stored, arrays)
    return from_arrays(name, arrays, known.booleanize)


def find_name(name: str) -> None:
    """Refuses a name that `load` would not know either, in its words."""
    folder, base = data_folder(None), name.rpartition("@")[0] or name
    if not (folder / f"{base}.npz").is_file():
        find(base, folder)


def from_arrays(name: str, arrays: Mapping[str, ArrayLike], booleanize: str = "") -> Dataset:
    """Of x_train, y_train, x_test, y_test and optionally COLUMN_train, COLUMN_test (groups), classes and features.

    The last two are names; a table that holds text or lacks values has columns too, see `to_arrays`.
    """
    found = {key: np.asarray(value) for key, value in arrays.items()}
    if lacking := [key for key in ARRAYS if key not in found]:
        raise ValueError(f"{name} has no {', '.join(lacking)}; there are {', '.join(sorted(found)) or 'no arrays'}")
    tabular = _read_columns(name, found)
    if tabular and found["x_train"].shape[1:] != (len(tabular),):
        raise ValueError(f"{name}: columns are {len(tabular)}, x_train is of shape {found['x_train'].shape}")
    for split in ("train", "test"):
        _check_examples(name, f"x_{split}", found[f"x_{split}"], tabular)
    x_train, x_test = found["x_train"], found["x_test"]
    if x_train.shape[1:] != x_test.shape[1:]:
        raise ValueError(f"{name}: examples are {x_train.shape[1:]} in x_train and {x_test.shape[1:]} in x_test")
    columns = [key.removesuffix("_train") for key in found if key.endswith("_train") and key not in ARRAYS]
    for column in ["y", *columns]:
        for split in ("train", "test"):
            _check_column(name, f"{column}_{split}", found, len(found[f"x_{split}"]))
    y_train, y_test, classes = _number_labels(name, found)
    groups = {column: (found[f"{column}_train"].ravel(), found[f"{column}_test"].ravel()) for column in columns}
    features = _read_features(name, found, x_train)
    rule = booleanize or ("quantile:4" if tabular else _choose_booleanizer(name, x_train))
    return Dataset(name, x_train, y_train, x_test, y_test, classes, rule, groups, features, tabular)


def to_arrays(dataset: Dataset) -> dict[str, NDArray[Any]]:
    """What from_arrays takes, to be kept in an .npz."""
    arrays: dict[str, NDArray[Any]] = {key: getattr(dataset, key) for key in ARRAYS}
    arrays |= {"classes": np.array(dataset.classes), "features": np.array(dataset.features, np.str_)}
    if dataset.columns:
        arrays["columns"] = write_columns(dataset.columns)
    for column, (train, test) in dataset.groups.items():
        arrays |= {f"{column}_train": train, f"{column}_test": test}
    return arrays


def split_groups(dataset: Dataset, column: str) -> Dataset:
    """Train and test pooled and parted anew, so that whoever has training examples, if not too few, is tested."""
    columns = {"label": (dataset.y_train, dataset.y_test)} | dataset.groups
    if column not in columns:
        raise ValueError(f"{dataset.name} has no column {column}; there are: {', '.join(columns)}")
    is_test = pick_test(np.concatenate(columns[column]))
    pools = {"x": (dataset.x_train, dataset.x_test), "y": (dataset.y_train, dataset.y_test), **dataset.groups}
    arrays = {key: kept for key, kept in to_arrays(dataset).items() if key in ("classes", "features", "columns")}
    for key, halves in pools.items():
        pool = np.concatenate(halves)
        arrays |= {f"{key}_train": pool[~is_test], f"{key}_test": pool[is_test]}
    return from_arrays(f"{dataset.name}@{column}", arrays, dataset.booleanize)


def draw_examples(dataset: Dataset, n_train: int) -> Dataset:
    """About n_train training examples, always the same ones: of each class and of the test the same share; 0: all."""
    n_all = len(dataset.y_train)
    if not n_train or n_train >= n_all:
        return dataset
    rng = np.random.default_rng(0)
    train, test = (_draw_share(labels, n_train / n_all, rng) for labels in (dataset.y_train, dataset.y_test))
    told = f"{len(train):,} of {n_all:,} training and {len(test):,} of {len(dataset.y_test):,} test examples"
    return replace(
        dataset,
        x_train=dataset.x_train[train],
        y_train=dataset.y_train[train],
        x_test=dataset.x_test[test],
        y_test=dataset.y_test[test],
        groups={column: (one[train], other[test]) for column, (one, other) in dataset.groups.items()},
        notes=(*dataset.notes, f"{told} are taken (data.examples)"),
    )


def _draw_share(labels: NDArray[np.int64], share: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Places, in order; a class keeps one example at least."""
    places = (np.flatnonzero(labels == label) for label in np.unique(labels))
    # rounded first: a product that should be whole may lie a hair above it
    drawn = [rng.choice(each, ceil(round(share * len(each), 6)), replace=False) for each in places]
    return np.sort(np.concatenate(drawn))


def write_columns(columns: Sequence[Column]) -> NDArray[np.str_]:
    return np.array([json.dumps(asdict(column)) for column in columns])


def _read_columns(name: str, arrays: Mapping[str, NDArray[Any]]) -> tuple[Column, ...]:
    try:
        told = [json.loads(each) for each in arrays.get("columns", np.array([], np.str_)).ravel().tolist()]
        return tuple(Column(each["name"], tuple(each["values"]), bool(each["may_lack"])) for each in told)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{name}: columns are not as laconic writes them ({error}); make the file anew") from error


def _check_examples(name: str, key: str, x: NDArray[Any], columns: Sequence[Column]) -> None:
    if x.dtype.kind not in "buif":
        raise ValueError(f"{name}: {key} is of dtype {x.dtype}; give Booleans, integers or floats")
    if x.ndim < 2 or x.size == 0:
        raise ValueError(f"{name}: {key} is of shape {x.shape}; give at least one example, [n, ...]")
    if columns:
        encode_rows(x, columns, Origin(f"{key} of {name}"))
    elif x.dtype.kind == "f" and not np.isfinite(x).all():
        n_bad = np.count_nonzero(~np.isfinite(x).reshape(len(x), -1).all(axis=1))
        raise ValueError(f"{name}: {key} holds NaN or infinity in {n_bad} of {len(x)} examples; fill in or drop them")


def _check_column(name: str, key: str, arrays: Mapping[str, NDArray[Any]], n_examples: int) -> None:
    if key not in arrays:
        raise ValueError(f"{name} has no {key}, only the other half of it; there are {', '.join(sorted(arrays))}")
    values = arrays[key]
    if values.shape not in ((n_examples,), (n_examples, 1)):
        x_key = f"x_{key.rsplit('_', 1)[1]}"
        raise ValueError(
            f"{name}: {key} is of shape {values.shape}, {x_key} has {n_examples} examples; give one value for each"
        )
    if values.dtype.kind not in "biufUS":
        raise ValueError(f"{name}: {key} is of dtype {values.dtype}; give integers or text")
    is_large = values.dtype.kind == "u" and values.max(initial=0) > np.iinfo(np.int64).max
    if is_large or (
        values.dtype.kind == "f" and not (np.isfinite(values).all() and np.array_equal(values, np.rint(values)))
    ):
        raise ValueError(f"{name}: {key} is not whole numbers; give integers of 64 bits or text")


def _number_labels(
    name: str, arrays: Mapping[str, NDArray[Any]]
) -> tuple[NDArray[np.int64], NDArray[np.int64], tuple[str, ...]]:
    """Labels 0..k-1 in the order of the k values in y_train, and their names."""
    train, test = (_plain_labels(arrays[key]) for key in ("y_train", "y_test"))
    if train.dtype.kind != test.dtype.kind:
        raise ValueError(f"{name}: of y_train and y_test one is text and one is numbers; make them alike")
    values, y_train = np.unique(train, return_inverse=True)
    if len(strangers := np.setdiff1d(test, values)):
        raise ValueError(
            f"{name}: y_test holds labels that y_train does not: {', '.join(map(str, strangers[:5].tolist()))}; "
            "nobody could learn them, drop those examples"
        )
    classes = [str(value) for value in values.tolist()]
    if values.dtype.kind == "i":
        names: Sequence[str] | None = next((arrays[key].ravel().tolist() for key in _CLASS_KEYS if key in arrays), None)
        if names is None and name in KNOWN and values[0] >= 0 and values[-1] < len(KNOWN[name].classes):
            names = KNOWN[name].classes
        if names is not None and not (values[0] >= 0 and values[-1] < len(names)):
            raise ValueError(
                f"{name}: labels go from {values[0]} to {values[-1]} but there are {len(names)} classes; "
                "number the labels from 0"
            )
        if names is not None:
            classes = [str(names[value]) for value in values]
    return y_train.astype(np.int64), np.searchsorted(values, test).astype(np.int64), tuple(classes)


def _read_features(name: str, arrays: Mapping[str, NDArray[Any]], x: NDArray[Any]) -> tuple[str, ...]:
    names = tuple(str(each) for each in arrays.get("features", np.array([])).ravel().tolist())
    if names and (x.ndim != 2 or len(names) != x.shape[1] or len(set(names)) < len(names)):
        raise ValueError(f"{name}: features are {len(names)} names; one for each column of a table was expected")
    return names


def _plain_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels [n], as int64 or as text."""
    return labels.ravel().astype(np.str_ if labels.dtype.kind in "US" else np.int64)


def _choose_booleanizer(name: str, x: NDArray[Any]) -> str:
    low, high = float(x.min()), float(x.max())
    if x.dtype.kind in "bui" and low >= 0 and high <= 1:
        return "none"
    # cifar100_sub12k reads as cifar100 does
    kin = max((known for known in KNOWN if name.startswith(known)), key=len, default=None)
    if kin and kin not in EMBEDDED and (x.dtype == np.uint8) == (not KNOWN[kin].booleanize.startswith("quantile")):
        return KNOWN[kin].booleanize
    if x.ndim in (3, 4) and x.dtype == np.uint8:
        return "thermometer:8" if high > 127 else f"thermometer:{min(8, high):.0f}:{high:.0f}"
    if x.ndim in (3, 4) and low >= 0 and high <= 1:
        return "thermometer:8:1"
    return "quantile:4"


def _read_npz(path: Path) -> dict[str, NDArray[Any]]:
    if not path.is_file():
        raise ValueError(f"{path} is not there; give the path of an .npz with {', '.join(ARRAYS)}")
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is no .npz, a zip of arrays as numpy.savez writes it, or it is cut short")
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path} cannot be read: {error}. Save plain arrays, no objects, with numpy.savez") from error


def _keep(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    try:
        with tempfile.TemporaryDirectory(prefix=".keep-", dir=path.parent) as scratch:
            part = Path(scratch) / path.name
            np.savez(part, **arrays)  # type: ignore[arg-type]
            put_in_place(part, path)
    except OSError:
        return  # a data folder that cannot be written to still serves, if slowly
