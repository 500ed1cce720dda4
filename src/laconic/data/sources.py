"""Data sets by whatever names them: a known name, a file, a folder of images, a hub, or a function of one's own."""

from __future__ import annotations

import csv
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

from laconic.columns import Origin
from laconic.data.cells import find_form, read_csv
from laconic.data.datasets import Dataset, find_name, load
from laconic.data.frames import check_names, from_frames
from laconic.data.hub import load_hub
from laconic.data.images import from_folder
from laconic.data.known import KNOWN
from laconic.data.memory import from_memory
from laconic.data.reading import Lacking, Reading
from laconic.importing import import_function

HUB = "hf:"
TABLES = (".csv", ".tsv", ".parquet")
TAKEN = ".csv, .parquet, .npz or a folder of images"
READING = Reading()


def open_source(name: str, reading: Reading = READING, *, download: bool = False) -> Dataset:
    """NAME@COLUMN: see `load`."""
    if not name:
        raise ValueError(f"data.name is empty; give a known name (laconic list datasets), {TAKEN}")
    if name.startswith(HUB):
        return load_hub(name.removeprefix(HUB), reading, download=download)
    path = Path(name).expanduser()
    if path.suffix.lower() in TABLES:
        return from_table(path, reading)
    if path.is_dir() and name not in KNOWN:  # ./digits is a folder of that name
        return from_folder(path, reading)
    if path.is_file() and path.suffix != ".npz":
        raise ValueError(f"{path} is of kind {path.suffix or 'unknown'}; {TAKEN} was expected")
    if ":" in name and path.suffix != ".npz":
        return from_memory(call_function(name), reading, name_source(name))
    if path.suffix != ".npz":
        find_name(name)
    reading.refuse_others(name, "group")
    return load(name, download=download)


def call_function(name: str) -> Any:
    """What a function of one's own gives; whatever it raises is told with the line that raised it."""
    function = import_function(name)
    try:
        return function()
    except Exception as error:  # a stranger's code
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}, line {last.lineno}"
        raise ValueError(f"{name}() raised {type(error).__name__}: {error} ({where})") from error


def from_table(path: Path, reading: Reading) -> Dataset:
    reading.refuse_others(str(path), "label", "group", "features", "test")
    files = [path, *([Path(reading.test_file).expanduser()] if reading.test_file else [])]
    parts, notes = zip(*[read_table(file, reading) for file in files], strict=True)
    dataset = from_frames(path.stem, list(zip(parts, [Origin(file.name, 1) for file in files], strict=True)), reading)
    return replace(dataset, notes=(*filter(None, notes), *dataset.notes))


def read_table(path: Path, reading: Reading) -> tuple[Any, str]:
    """Columns by name, and what is odd about them; pandas reads them.

    Of 50 columns and a million rows it makes frames in 2 s of CPU; polars takes 8 if it is to look at all rows before
    it says what a column holds, and without that fails where a column changes its mind.
    """
    if not path.is_file():
        raise ValueError(f"{path} is not there; give the path of a .csv or .parquet")
    try:
        if path.suffix.lower() == ".parquet":
            import pandas

            return pandas.read_parquet(path), ""
        form = find_form(path)
        names = [name for name in form.names if name]
        check_names(names, reading, Origin(path.name, 1))
        exact = [reading.label, *filter(None, [reading.group])]
        used = [*exact, *reading.features] if reading.features else names
        nameless = ", ".join(str(place) for place, name in enumerate(form.names, 1) if not name)
        odd = f"columns without a name are left out of {path.name}, by their place: {nameless}" if nameless else ""
        return read_csv(path, form, used, exact), odd
    except ImportError as error:
        raise Lacking(str(path), "tables", error) from None
    except (OSError, csv.Error) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    except ValueError as error:
        if type(error) is ValueError:  # one of ours; those of parsers are of kinds of their own
            raise
        raise ValueError(f"{path} cannot be read: {error}") from error


def name_source(name: str) -> str:
    """What a data set is called in titles, and in names of folders where not every system takes a colon."""
    if ":" in name and not Path(name).exists():
        return name.removeprefix(HUB).replace(":", ".").replace("/", ".")
    return Path(name).stem
