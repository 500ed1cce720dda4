"""Data sets by whatever names them: a known name, a file, a folder of images, a hub, or a function of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from laconic.columns import MISSING, Origin
from laconic.data.datasets import Dataset, load
from laconic.data.frames import from_frames
from laconic.data.hub import load_hub
from laconic.data.images import from_folder
from laconic.data.memory import from_memory
from laconic.data.reading import Lacking, Reading
from laconic.importing import import_function

HUB = "hf:"
TABLES = (".csv", ".parquet")
READING = Reading()


def open_source(name: str, reading: Reading = READING, *, download: bool = False) -> Dataset:
    """NAME@COLUMN: see `load`."""
    if name.startswith(HUB):
        return load_hub(name.removeprefix(HUB), reading, download=download)
    path = Path(name).expanduser()
    if path.suffix.lower() in TABLES:
        return from_table(path, reading)
    if path.is_dir():
        return from_folder(path, reading)
    if ":" in name and not name.endswith(".npz"):
        return from_memory(import_function(name)(), reading, name_source(name))
    reading.refuse_others(name, "group")
    return load(name, download=download)


def from_table(path: Path, reading: Reading) -> Dataset:
    reading.refuse_others(str(path), "label", "group", "features", "test")
    files = [path, *([Path(reading.test_file).expanduser()] if reading.test_file else [])]
    return from_frames(path.stem, [(read_table(file), Origin(file.name, 1)) for file in files], reading)


def read_table(path: Path) -> Any:
    """A frame of pandas, which took 2 s of CPU for a million rows of 50 columns where polars took 8."""
    if not path.is_file():
        raise ValueError(f"{path} is not there; give the path of a .csv or .parquet")
    try:
        import pandas
    except ImportError as error:
        raise Lacking(str(path), "tables", error) from None
    try:
        if path.suffix.lower() == ".parquet":
            return pandas.read_parquet(path)
        # the encoding takes the mark that spreadsheets put in front
        return pandas.read_csv(path, keep_default_na=False, na_values=list(MISSING), encoding="utf-8-sig")
    except ImportError as error:
        raise Lacking(str(path), "tables", error) from None
    except (ValueError, OSError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error


def name_source(name: str) -> str:
    """What a data set is called in titles, and in names of folders where not every system takes a colon."""
    if ":" in name and not Path(name).exists():
        return name.removeprefix(HUB).replace(":", ".").replace("/", ".")
    return Path(name).stem
