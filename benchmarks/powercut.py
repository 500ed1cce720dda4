"""A power cut before every file operation of a short run: is the run resumed from what the disk then holds, and to the
same end?

    python benchmarks/powercut.py [SETTING=VALUE ...]      e.g. fleet.state=disk; prints N of N

Every operation that makes files safe or changes names is a point. For each, two disks are built, for a system may write
what nobody asked it to in any order: one with only what was synced, data and names; one with all names as they stood,
but of data only what was synced. A run is lost if it cannot go on there, ends otherwise, or if a round that was said to
be finished has to be played again.
"""

import io
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from laconic.conformance import read_all
from laconic.records import Round, read_rounds
from laconic.runs.config import Config, read_config
from laconic.runs.plan import go_on

SETTINGS = ["method.name=fedtm", "method.n_clauses=10", "method.epochs=1", "data.clients=3", "rounds=3"]
CHANGES = ("fsync", "sync", "replace", "rename", "unlink", "remove", "rmdir", "mkdir")  # of os
Tree = dict[Path, bytes | None]  # paths below the root; None: a folder


class Point(NamedTuple):
    """A power cut just before this operation."""

    operation: str
    n_told: int  # rounds said to be finished
    disks: tuple[Tree, Tree]  # what was synced; the same under all names


class Recorder:
    """Follows what happens below a folder and what of it is safe. A file is followed by its inode, which is kept from
    being given to another by a link elsewhere; a folder by one that is kept open."""

    def __init__(self, root: Path, graves: Path) -> None:
        self.root, self.graves = root, graves
        self.points: list[Point] = []
        self.n_told = 0
        self._names: dict[int, dict[str, int]] = {}  # what was synced: of a folder, its entries
        self._data: dict[int, bytes] = {}  # of a file
        self._folders: dict[int, int] = {}  # kept open
        self._sync_folder(root)

    @contextmanager
    def recording(self) -> Iterator[None]:
        with mock.patch.multiple(os, **{name: self._watch(name) for name in CHANGES}):
            opener = io.open

            def watch_open(file: Any, mode: str = "r", *rest: Any, **more: Any) -> Any:
                if isinstance(file, str | Path) and set(mode) & set("wax+"):
                    self._mark(f"open {mode}", file)
                return opener(file, mode, *rest, **more)

            with mock.patch.object(io, "open", watch_open):
                yield
        self._mark("end", self.root)

    def close(self) -> None:
        for handle in self._folders.values():
            os.close(handle)

    def _watch(self, name: str) -> Callable[..., Any]:
        act = getattr(os, name)

        def acting(*arguments: Any, **more: Any) -> Any:
            if name == "fsync":
                place = Path(f"/proc/self/fd/{arguments[0]}").readlink()
                self._mark(name, place)
                result = act(*arguments, **more)
                if place.is_relative_to(self.root):
                    self._sync_folder(place) if place.is_dir() else self._sync_file(place)
                return result
            self._mark(name, arguments[0] if arguments else self.root)
            result = act(*arguments, **more)
            if name == "sync":
                for path in [self.root, *self.root.rglob("*")]:
                    self._sync_folder(path) if path.is_dir() else self._sync_file(path)
            return result

        return acting

    def _sync_file(self, path: Path) -> None:
        self._data[self._follow(path)] = path.read_bytes()

    def _sync_folder(self, path: Path) -> None:
        self._names[self._follow(path)] = {entry.name: self._follow(entry) for entry in path.iterdir()}

    def _follow(self, path: Path) -> int:
        number = path.stat().st_ino
        if path.is_dir():
            if number not in self._folders:
                self._folders[number] = os.open(path, os.O_RDONLY)
        elif not (self.graves / str(number)).exists():
            os.link(path, self.graves / str(number))
        return number

    def _mark(self, operation: str, place: Any) -> None:
        path = Path(os.fsdecode(place))
        if path.is_absolute() and not path.is_relative_to(self.root):  # compiled code is kept elsewhere
            return
        words = f"{operation} {path.name}"
        synced = dict(self._list_synced(self.root.stat().st_ino, Path()))
        named: Tree = {}
        for path in self.root.rglob("*"):
            is_folder = path.is_dir()
            named[path.relative_to(self.root)] = None if is_folder else self._data.get(path.stat().st_ino, b"")
        self.points.append(Point(words, self.n_told, (synced, named)))

    def _list_synced(self, number: int, path: Path) -> Iterator[tuple[Path, bytes | None]]:
        for name, below in self._names.get(number, {}).items():
            is_folder = below in self._folders
            yield path / name, None if is_folder else self._data.get(below, b"")
            if is_folder:
                yield from self._list_synced(below, path / name)


class Teller:
    """Watches a run; what it hears of must be safe."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def finished_round(self, row: Round, seconds: float) -> None:
        self.recorder.n_told = row.round + 1

    def started(self, title: str, rounds: int, first_round: int) -> None: ...

    def progressed(self, round: int, done: int, total: int, what: str) -> None: ...

    def said(self, line: str) -> None: ...


class First:
    """Hears from which round on a run goes."""

    def __init__(self) -> None:
        self.round = 0

    def started(self, title: str, rounds: int, first_round: int) -> None:
        self.round = first_round

    def finished_round(self, row: Round, seconds: float) -> None: ...

    def progressed(self, round: int, done: int, total: int, what: str) -> None: ...

    def said(self, line: str) -> None: ...


def record(config: Config, home: Path) -> tuple[list[Point], dict[str, bytes]]:
    """Points of a run that nothing befalls, and what it leaves behind."""
    for name in ("disk", "graves"):
        (home / name).mkdir()
    recorder = Recorder(home / "disk", home / "graves")
    with recorder.recording():
        go_on(config, home / "disk" / "run", Teller(recorder))
    recorder.close()
    return recorder.points, read_all(home / "disk" / "run")


def go_on_after(disk: Tree, config: Config, folder: Path) -> int:
    """The first round that was played, on a disk as it is written here."""
    for path, data in sorted(disk.items()):
        if data is None:
            (folder / path).mkdir()
        else:
            (folder / path).write_bytes(data)
    first = First()
    go_on(config, folder / "run", first)
    return first.round if (folder / "run").exists() else -1


def try_point(point: Point, config: Config, due: dict[str, bytes], home: Path) -> Iterator[str]:
    for kind, disk in zip(("only what was synced", "all names"), point.disks, strict=True):
        folder = home / "after"
        folder.mkdir()
        try:
            was_done = Path("run/DONE.json") in disk
            first = go_on_after(disk, config, folder)
            if read_all(folder / "run") != due or len(read_rounds(folder / "run")) != config.rounds + 1:
                yield f"another end: before {point.operation}, {kind}"
            elif first < point.n_told and not was_done:
                yield f"round {first} was told of and lost: before {point.operation}, {kind}"
            else:
                yield "kept"
        except Exception as error:
            yield f"{type(error).__name__}: {error}: before {point.operation}, {kind}"
        finally:
            shutil.rmtree(folder)


def main(settings: list[str]) -> None:
    config = read_config(None, [*SETTINGS, *settings])
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="laconic-") as name:
        points, due = record(config, Path(name))
        for point in points:
            outcomes.update(try_point(point, config, due, Path(name)))
    print(f"{outcomes['kept']} of {outcomes.total()} kept, after power cuts before {len(points)} operations")
    for outcome, times in outcomes.items():
        if outcome != "kept":
            print(f"  {times} × {outcome}")
    sys.exit(outcomes["kept"] != outcomes.total())


if __name__ == "__main__":
    main(sys.argv[1:])
