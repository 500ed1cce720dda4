"""Sets of Hugging Face's `datasets`, by name or at hand, and partitions of `flwr-datasets`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.columns import Origin
from laconic.data.datasets import Dataset, from_arrays
from laconic.data.frames import from_frames
from laconic.data.images import read_images
from laconic.data.reading import Lacking, Reading, split

OWNER = "client"  # what the column of owners is called, where it has no name

Splits = dict[str, Any]  # by name, "train" at least


def load_hub(name: str, reading: Reading, *, download: bool) -> Dataset:
    """name: that of a set on the hub, NAME or NAME:CONFIGURATION, or a folder that save_to_disk wrote."""
    try:
        import datasets
    except ImportError as error:
        raise Lacking(f"hf:{name}", "hf", error) from None
    if Path(name).expanduser().is_dir():
        found = datasets.load_from_disk(str(Path(name).expanduser()))
    else:
        path, _, configuration = name.partition(":")
        config = datasets.DownloadConfig(local_files_only=not download)
        try:
            found = datasets.load_dataset(path, configuration or None, download_config=config)
        except (OSError, ValueError) as error:
            hint = "" if download else "; nothing is fetched without  --set data.download=true"
            raise ValueError(f"hf:{name} cannot be loaded: {error}{hint}") from error
    return from_splits(Path(name.partition(":")[0]).name, find_splits(found), reading)


def find_splits(data: Any) -> Splits:
    """Of what these libraries give; nothing of anything else. Partitions get a column that says whose a row is."""
    if comes_from(data, "flwr_datasets"):
        (split_name, partitioner) = next(iter(data.partitioners.items()))
        return join([data.load_partition(k, split_name) for k in range(partitioner.num_partitions)])
    if comes_from(data, "datasets"):
        return dict(data) if hasattr(data, "items") else {"train": data}
    if isinstance(data, list) and data and all(comes_from(part, "datasets") for part in data):
        return join(data)
    return {}


def comes_from(data: Any, library: str) -> bool:
    return type(data).__module__.partition(".")[0] == library


def join(partitions: list[Any]) -> Splits:
    import datasets

    owned = [part.add_column(OWNER, np.full(len(part), k)) for k, part in enumerate(partitions)]
    return {"train": datasets.concatenate_datasets(owned)}


def from_splits(name: str, splits: Splits, reading: Reading) -> Dataset:
    if "train" not in splits:
        raise ValueError(f"{name} has no split called train; there are {', '.join(splits)}")
    parts = [splits["train"], *([splits["test"]] if "test" in splits and reading.test == "" else [])]
    features = parts[0].features
    label = reading.label or next((key for key, kind in features.items() if hasattr(kind, "names")), "")
    owner = reading.group or (OWNER if OWNER in features else "")
    if label not in features:
        raise ValueError(f"data.label = {label!r} is no column of {name}; there are {', '.join(features)}")
    reading = Reading(label, owner, reading.features, reading.test, reading.size)
    pictures = [key for key, kind in features.items() if type(kind).__name__ == "Image"]
    if chosen := [key for key in pictures if key in (reading.features or pictures)]:
        return from_pictures(name, parts, chosen[0], reading)
    reading.refuse_others(name, "label", "group", "features", "test")
    frames = [name_labels(part, label) for part in parts]
    origins = [Origin(f"{name}, split {each}") for each in ("train", "test")]
    return from_frames(name, list(zip(frames, origins, strict=False)), reading)


def name_labels(part: Any, label: str) -> Any:
    """A frame; labels by their names where the set knows them."""
    frame = part.to_pandas()
    if hasattr(part.features[label], "names"):
        frame[label] = part.features[label].int2str(frame[label].tolist())
    return frame


def from_pictures(name: str, parts: list[Any], picture: str, reading: Reading) -> Dataset:
    openers = {
        f"row {row} of {name}, split {half}": partial(open_cell, part, row, picture)
        for half, part in zip(("train", "test"), parts, strict=False)
        for row in range(len(part))
    }
    x, columns = read_images(openers, reading.size), [reading.label, *([reading.group] if reading.group else [])]
    table = {"x": x} | {
        "y" if column == reading.label else column: np.concatenate([read_column(part, column) for part in parts])
        for column in columns
    }
    if len(parts) == 1:
        return from_arrays(name, split(table, [reading.group, "y"], reading.share))
    n_first = len(parts[0])
    halves = {"train": slice(None, n_first), "test": slice(n_first, None)}
    return from_arrays(name, {f"{key}_{half}": table[key][rows] for key in table for half, rows in halves.items()})


def open_cell(part: Any, row: int, column: str) -> Any:
    return part[row][column]


def read_column(part: Any, column: str) -> NDArray[Any]:
    kind = part.features[column]
    values = list(part[column])
    return np.array(kind.int2str(values) if hasattr(kind, "names") else values)
