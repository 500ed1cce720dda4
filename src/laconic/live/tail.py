"""Records that are read as they grow: what is new since the last look, and how much of what was read still stands."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from laconic.records import Record, read_line

BLOCK_BYTES = 1 << 18


class OfRound(Record, Protocol):
    @property
    def round(self) -> int: ...


R = TypeVar("R", bound=OfRound)


class News(NamedTuple):
    n_kept: int  # of the lines read before, from the first: what lay behind them was cut off
    lines: list[bytes]  # that now follow these


class Tail:
    """Lines of a file that grows, and may be cut back to a checkpoint and grow again between two looks."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._forget()

    def _forget(self) -> None:
        self._hashes: list[int] = []  # of the lines read
        self._at, self._last = 0, b""  # where they end, and the last of them
        self._seen: tuple[int, int, int] | None = None
        self._is_doubted = False

    def doubt(self) -> None:
        """The next look compares all lines: the last may be as it was though some before it are not."""
        self._seen, self._is_doubted = None, True

    def read(self) -> News:
        """A last line without its end is left for the next look. A file that did not change is not opened."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            self._forget()
            return News(0, [])
        seen = (status.st_ino, status.st_size, status.st_mtime_ns)
        if seen == self._seen:
            return News(len(self._hashes), [])
        with self.path.open("rb") as file:
            file.seek(self._at - len(self._last))
            if self._is_doubted or file.read(len(self._last)) != self._last:
                file.seek(0)
                lines, before = split_lines(file.read()), self._hashes
                self._forget()
                n_kept = count_same(before, list(map(hash, lines)))
            else:
                lines, before, n_kept = split_lines(file.read()), [], len(self._hashes)
        self._hashes += map(hash, lines)
        self._at += sum(map(len, lines))
        self._last = lines[-1] if lines else self._last
        self._seen = seen
        return News(n_kept, lines[n_kept:] if before else lines)


def count_same(before: list[int], now: list[int]) -> int:
    pairs = zip(before, now, strict=False)
    return next((k for k, (one, other) in enumerate(pairs) if one != other), min(len(before), len(now)))


def split_lines(data: bytes) -> list[bytes]:
    """With their ends; what has none is left out."""
    return data[: data.rfind(b"\n") + 1].splitlines(keepends=True)


def read_last(folder: Path, cls: type[R], upto: int) -> list[R]:
    """The records of the last round that has some, up to that one; the file is read from its end and no further."""
    path = folder / cls.file
    found: list[R] = []
    for line in read_backwards(path):
        record = read_line(cls, line, path)
        if found and record.round != found[0].round:
            break
        if record.round <= upto:
            found.append(record)
    return found[::-1]


def read_backwards(path: Path) -> Iterator[bytes]:
    """Whole lines, the last first."""
    if not path.exists():
        return
    with path.open("rb") as file:
        at, rest, is_at_end = file.seek(0, 2), b"", True
        while at > 0:
            n_bytes = min(BLOCK_BYTES, at)
            at -= n_bytes
            file.seek(at)
            rest, *lines = (file.read(n_bytes) + rest).split(b"\n")
            if is_at_end and lines:
                lines.pop()  # behind the last end is nothing, or a line that is being written
                is_at_end = False
            yield from reversed(lines)
        if not is_at_end:
            yield rest
