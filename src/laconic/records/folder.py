"""The files of a run folder: lines that are only ever added, or cut back to a checkpoint, and a few whole objects."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from laconic.files import sync_folder, write_atomically
from laconic.records.kinds import Environment, Progress, Round
from laconic.records.schema import Mismatch, read_record

# 1: as first released. 2: partition.json says of examples that only the nodes know that they are not known.
SCHEMA = 2
PULSE_SECONDS = 0.5


class Record(Protocol):
    """A dataclass of kinds.py."""

    file: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Any]]


R = TypeVar("R", bound=Record)


def fault(place: str | Path, error: Mismatch) -> ValueError:
    return ValueError(f"{place}: {error}; restore the file from a copy, or run again")


# ---------------------------------------------------------------- whole files
def write(folder: Path, record: Record) -> None:
    content = {"schema": SCHEMA} | _to_json(record)
    write_atomically(folder / record.file, (json.dumps(content, indent=2) + "\n").encode())


def read(folder: Path, cls: type[R]) -> R:
    path = folder / cls.file
    try:
        found = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise fault(f"{path}:{error.lineno}", Mismatch(error.msg, "JSON")) from None
    schema = found.get("schema") if type(found) is dict else None
    if type(schema) is int and schema > SCHEMA:
        raise ValueError(f"{path}: its schema is {schema}, this laconic reads up to {SCHEMA}; upgrade laconic")
    try:
        if type(schema) is not int:
            raise Mismatch("schema is missing" if schema is None else f"schema is {schema!r:.60}", "a whole number")
        upgrade = getattr(cls, "upgrade", None)
        return read_record(cls, upgrade(found, schema) if upgrade else found)
    except Mismatch as error:
        raise fault(path, error) from None


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        wrong = Mismatch(f"byte {error.object[error.start]:#04x}", "UTF-8 text")
        raise fault(f"{path}:{line}", wrong) from None


# ---------------------------------------------------------------- lines
def to_line(record: Record) -> str:
    return json.dumps(_to_json(record))


def append_lines(path: Path, lines: Iterable[str]) -> bytes:
    """What was added, once it is safe."""
    is_new, data = not path.exists(), "".join(f"{line}\n" for line in lines).encode()
    with path.open("ab") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if is_new:
        sync_folder(path.parent)
    return data


class Journal:
    """The lines of one record from a checkpoint on, with their length and SHA-256."""

    def __init__(self, path: Path, n_bytes: int) -> None:
        """What lies beyond so many bytes was written after the checkpoint, and is dropped."""
        self.path, self.n_bytes, self._digest = path, n_bytes, hashlib.sha256()
        if path.exists() or n_bytes:
            cut(path, n_bytes)
            with path.open("rb") as file:
                self._digest = hashlib.file_digest(file, "sha256")

    def append(self, lines: Iterable[str]) -> None:
        data = append_lines(self.path, lines)
        self.n_bytes += len(data)
        self._digest.update(data)

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()


def cut(path: Path, n_bytes: int) -> None:
    with path.open("ab") as file:
        if file.tell() < n_bytes:
            raise ValueError(
                f"{path} has {file.tell()} bytes, {n_bytes} were expected; restore a copy or start the run anew"
            )
        file.truncate(n_bytes)


def drop_torn_line(path: Path) -> None:
    """A last line that was cut short goes, before others follow it."""
    if path.exists():
        cut(path, path.read_bytes().rfind(b"\n") + 1)


def read_lines(folder: Path, cls: type[R]) -> Iterator[R]:
    """One for each line; a last line without its end was cut short, and is left out. None of a run only just begun."""
    path = folder / cls.file
    lines = read_text(path).split("\n") if path.exists() else []
    for number, line in enumerate(lines, start=1):
        if number < len(lines) or _is_json(line):
            yield read_line(cls, line, f"{path}:{number}")


def read_line(cls: type[R], line: str | bytes, place: str | Path) -> R:
    """place: where it stands, for an error."""
    try:
        try:
            found = json.loads(line)
        except ValueError as error:
            raise Mismatch(f"{line[:60]!r} ({getattr(error, 'msg', error)})", "one JSON object") from None
        return read_record(cls, found)
    except Mismatch as error:
        raise fault(place, error) from None


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except json.JSONDecodeError:
        return False
    return True


def read_rounds(folder: Path) -> list[Round]:
    """One after the other, from the first."""
    rounds: list[Round] = []
    for number, row in enumerate(read_lines(folder, Round), start=1):
        if rounds and row.round != rounds[-1].round + 1:
            wrong = Mismatch(f"round {row.round}", f"round {rounds[-1].round + 1}")
            raise fault(f"{folder / Round.file}:{number}", wrong)
        rounds.append(row)
    return rounds


class Pulse:
    """Progress in its file, at most so often; a reader may find it empty or half written, and looks again."""

    def __init__(self, folder: Path) -> None:
        self._path, self._next_time = folder / Progress.file, 0.0

    def beat(self, progress: Progress) -> None:
        now = time.monotonic()
        is_between = (
            0 < progress.n_done < progress.n_asked
        )  # its start and end are told, for nothing may follow for long
        if is_between and now < self._next_time:
            return
        self._next_time = now + PULSE_SECONDS
        with suppress(OSError):  # a run does not end because nobody can see it
            self._path.write_text(to_line(progress), "utf-8")

    def end(self) -> None:
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


def log_event(folder: Path, line: str) -> None:
    """What happened when, for people; the records proper hold nothing of it."""
    append_lines(folder / "events.log", [f"{datetime.now(UTC).isoformat(timespec='seconds')}  {one_line(line)}"])


def one_line(text: str) -> str:
    """As a terminal may show it: what others said may hold line ends and codes that move its cursor."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


# ---------------------------------------------------------------- folders
def find_runs(folder: Path) -> list[Path]:
    """The folder itself, or the runs in it: those of a comparison or of several seeds, in the order they were begun."""
    if (folder / "config.toml").exists():
        return [folder]
    below = [path.parent for depth in ("*", "*/*") for path in folder.glob(f"{depth}/config.toml")]
    if runs := [path for path in below if (path / Environment.file).is_file()]:  # a node's folder has none
        return sorted(runs, key=lambda path: (read(path, Environment).started, path))
    came = "has no config.toml, so it is no run folder, and no run lies in it" if folder.is_dir() else "is no folder"
    raise ValueError(f"{folder} {came}; give one that `laconic run` or `laconic compare` made")


def _to_json(record: Record) -> dict[str, Any]:
    """Faster than asdict, which copies every list."""
    return {field.name: _plain(getattr(record, field.name)) for field in fields(record)}


def _plain(value: Any) -> Any:
    if type(value) is list and value and hasattr(value[0], "__dataclass_fields__"):
        return [_to_json(one) for one in value]
    return _to_json(value) if hasattr(value, "__dataclass_fields__") else value
