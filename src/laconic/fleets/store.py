"""Where records that outlive a step are kept: in memory, or in files so that memory does not follow their number."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from laconic.files import make_safe

T = TypeVar("T")


def split_entry(entry: str) -> tuple[str, str]:
    """SHA-256, "" where it is not known, and name of a file, out of a line as sha256sum writes them."""
    digest, _, name = entry.rpartition("  ")
    return digest, name


class Store(Generic[T]):
    """Records by number. Files are never overwritten once saved: each save makes new ones, so a crash loses nothing."""

    def __init__(
        self,
        folder: Path | None,
        kind: str,
        freeze: Callable[[T], bytes],
        thaw: Callable[[bytes], T],
        *,
        on_disk: bool = False,
    ) -> None:
        if on_disk and folder is None:
            raise ValueError("records are to live on disk, but no folder was given; give one, or keep them in memory")
        self._folder, self._kind, self._on_disk = folder, kind, on_disk
        self._freeze, self._thaw = freeze, thaw
        self._records: dict[int, T] = {}
        self._changed: set[int] = set()
        self._files: dict[int, str] = {}  # as split_entry reads them
        self._saved: set[str] = set()  # files that the last checkpoint names
        self._round = 0

    def get(self, number: int) -> T | None:
        if number in self._records:
            return self._records[number]
        if number not in self._files:
            return None
        record = self._read(self._files[number])
        if not self._on_disk:
            self._records[number] = record
        return record

    def put(self, number: int, record: T) -> None:
        self._changed.add(number)
        if self._on_disk:
            self._write(number, record)
        else:
            self._records[number] = record

    def save(self, round: int) -> dict[int, str]:
        """Everything is safe in files when this returns; which these are, by record, as split_entry reads them."""
        self._round = round
        for number in sorted(self._records.keys() & self._changed):
            self._write(number, self._records[number])
        make_safe([self._path / split_entry(self._files[number])[1] for number in self._changed])
        self._changed.clear()
        return dict(self._files)

    def settle(self, round: int) -> None:
        """The checkpoint that names the files is safe, so older ones can go."""
        names = {split_entry(entry)[1] for entry in self._files.values()}
        for name in self._saved - names:
            (self._path / name).unlink(missing_ok=True)
        self._saved, self._round = names, round + 1

    def open(self, files: dict[int, str], round: int) -> None:
        """Goes on from a checkpoint made in that round; whatever was put since is gone."""
        self._records.clear()
        self._changed.clear()
        self._files, self._round = dict(files), round + 1
        self._saved = {split_entry(entry)[1] for entry in files.values()}

    @property
    def _path(self) -> Path:
        assert self._folder is not None
        return self._folder

    def _read(self, entry: str) -> T:
        """Its SHA-256 is looked at each time: with states on disk a run reads there what it wrote days ago."""
        digest, name = split_entry(entry)
        data = (self._path / name).read_bytes()
        if digest and hashlib.sha256(data).hexdigest() != digest:
            raise ValueError(f"{self._path / name} is not as it was saved; restore a copy or start the run anew")
        try:
            return self._thaw(data)
        except ValueError as error:
            raise ValueError(f"{self._path / name}: {error}") from error

    def _write(self, number: int, record: T) -> None:
        name, data = f"{self._kind}-{number:05d}-{self._round:06d}.safetensors", self._freeze(record)
        (self._path / name).write_bytes(data)  # no checkpoint names it yet
        old = split_entry(self._files.get(number, ""))[1]
        if old not in ("", name) and old not in self._saved:
            (self._path / old).unlink(missing_ok=True)
        self._files[number] = f"{hashlib.sha256(data).hexdigest()}  {name}"
