"""A run over MQTT, watched from outside: its server carries it out, and what happens is read from its folder."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from laconic.deploy.runs import show_rows
from laconic.files import InUse, lock, remove
from laconic.records import Deployed, Failure, Nodes, Summary, log_event, read, write
from laconic.runs.typed_toml import ConfigError

if TYPE_CHECKING:
    from laconic.runs.run import Watch

POLL_SECONDS = 0.2
# bytes up and down: of messages as they were coded, by the papers' count, and of sockets, apart by what they were for
KINDS = ("coded", "paper", "exchange", "connect", "idle")
LOOK_SECONDS = 5.0  # between looks whether the server is still there


def check_server(server: Path) -> None:
    """ConfigError unless its process runs on this machine: it holds the folder."""
    if not is_held(server):
        raise ConfigError("E180", f"no server runs for {server}.  Start it: laconic deploy server {server}")


def is_held(folder: Path) -> bool:
    try:
        with lock(folder):
            return False
    except InUse:
        return True


def watch_run(folder: Path, watch: Watch, wait_seconds: float, absent_seconds: float) -> Summary:
    """Its summary; RuntimeError with what its server said if it failed. It goes on without a watcher."""
    deployed = replace(read(folder, Deployed), wait_seconds=wait_seconds, absent_seconds=absent_seconds)
    server = Path(deployed.server)
    write(folder, deployed)
    events, rows = read_events(folder), show_rows(folder, watch)
    next(events)
    remove(folder / Failure.file)  # so that its server takes it up again
    next_look, was_there = 0.0, True
    while not (folder / Summary.file).exists() and not (folder / Failure.file).exists():
        if time.monotonic() > next_look:
            next_look, is_there = time.monotonic() + LOOK_SECONDS, is_held(server)
            if was_there and not is_there:
                log_event(folder, "the server has ended; the run goes on once it is there again")
            was_there = is_there
        time.sleep(POLL_SECONDS)
        for line in next(events):
            watch.said(line)
        next(rows)
    if (folder / Failure.file).exists():
        raise RuntimeError(f"the run failed: {read(folder, Failure).error}")
    next(rows)
    return read(folder, Summary)


def read_events(folder: Path) -> Iterator[list[str]]:
    """What was written into events.log since the last look, without the time."""
    path = folder / "events.log"
    at = path.stat().st_size if path.exists() else 0
    while True:
        news = path.read_bytes()[at:] if path.exists() else b""
        whole = news[: news.rfind(b"\n") + 1]
        at += len(whole)
        yield [line.partition("  ")[2] for line in whole.decode("utf-8", "replace").splitlines()]


def read_status(server: Path) -> list[dict[str, Any]]:
    """A row for each node."""
    found = json.loads((server / Nodes.file).read_text("utf-8"))
    rows = []
    for node in found["nodes"]:
        sent = {kind: f"{up} / {down}" for kind, (up, down) in node.pop("sent").items()}
        rows.append(node | {kind: sent.get(kind, "") for kind in KINDS})
    return rows
