"""All that is followed: the runs in a folder, those that appear later among them, and the servers of their nodes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from laconic.files import LOCK
from laconic.live.nodes import FollowedServer, find_begun, find_server
from laconic.live.run import COLUMNS, SETTINGS, FollowedRun, find_change
from laconic.records import Environment

DEPTH = 4  # of runs below a folder: runs/reproduce/SCALE/ROW/seed-0
SEARCH_SECONDS, SEARCH_SHARE = 2.0, 0.05  # between looks for new runs; most of the time that these may take


class Watch:
    """One for all who look at the page."""

    def __init__(self, folder: Path) -> None:
        """It need not be there yet."""
        self.folder = folder
        self.runs: dict[str, FollowedRun] = {}
        self.servers: dict[str, FollowedServer] = {}
        self._next_search = 0.0

    def look(self) -> dict[str, Any] | None:
        """What is new since the last look; None: nothing is."""
        started = time.monotonic()
        if started >= self._next_search:
            self._search()
            took = time.monotonic() - started
            self._next_search = started + max(SEARCH_SECONDS, took / SEARCH_SHARE)
        runs = [news for run in self.runs.values() if (news := run.look())]
        self._meet_servers()
        servers = [news for server in self.servers.values() if (news := server.look())]
        gone = [run.name for run in self.runs.values() if not run.folder.is_dir()]
        for name in gone:
            del self.runs[name]
        return {"now": time.time(), "runs": runs, "gone": gone, "servers": servers} if runs or gone or servers else None

    def show(self) -> dict[str, Any]:
        """Everything, as it was at the last look."""
        return {
            "now": time.time(),
            "folder": str(self.folder),
            "columns": COLUMNS,
            "runs": [run.show() for run in self.runs.values()],
            "servers": [server.show() for server in self.servers.values()],
        }

    def _search(self) -> None:
        known = {run.folder.resolve() for run in self.runs.values()}
        for folder in filter(is_run, walk(self.folder)):
            if folder.resolve() not in known:
                known.add(folder.resolve())
                name = name_run(folder, self.folder)
                name = str(folder) if name in self.runs else name
                self.runs[name] = FollowedRun(folder, name)

    def _meet_servers(self) -> None:
        """Of the deployment that is followed, and of those that runs belong to."""
        own = find_server(self.folder)
        found = {run.about.server for run in self.runs.values() if run.about and run.about.server}
        for server in found | ({str(own.resolve())} if own else set()):
            if server not in self.servers:
                self.servers[server] = FollowedServer(Path(server))


def check_folder(folder: Path) -> None:
    """ValueError for one that holds no run, none that is being prepared, and no nodes that wait for some."""
    remedy = "give one that laconic run, compare, sweep or deploy init made"
    if not folder.is_dir():
        raise ValueError(f"{folder} is no folder; {remedy}")
    if find_server(folder) is None and not any(is_run(path) or find_change(path / LOCK) for path in walk(folder)):
        raise ValueError(f"{folder} holds no run; {remedy}")


def is_run(folder: Path) -> bool:
    """A node's folder has no Environment; one that is not for us to look at is none."""
    return all(find_change(folder / name) for name in (SETTINGS, Environment.file))


def walk(folder: Path, depth: int = DEPTH) -> Iterator[Path]:
    """The folder and those in it, or those that a deployment's runs lie in; not what lies in a run."""
    yield folder
    if server := find_server(folder):
        yield from find_begun(server)
    elif depth and not is_run(folder):
        try:
            inner = sorted(entry.path for entry in os.scandir(folder) if entry.is_dir() and entry.name[0] != ".")
        except OSError:  # it has gone, or is not for us
            return
        for path in inner:
            yield from walk(Path(path), depth - 1)


def name_run(folder: Path, root: Path) -> str:
    return (
        folder.relative_to(root).as_posix() if folder != root and folder.is_relative_to(root) else folder.resolve().name
    )
