"""One run folder followed: its rounds so far, whether it runs, stands still or has ended, and when it may end."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, TypeVar

from laconic.files import LOCK, is_in_use
from laconic.live.tail import Tail
from laconic.records import (
    Deployed,
    Environment,
    Failure,
    Partition,
    Progress,
    Record,
    Round,
    Summary,
    Times,
    read,
    read_line,
)
from laconic.report.run import read_config

# of each round; busiest: bytes of the client that sent and received most, of which it might have had its budget
COLUMNS = (
    "round", "accuracy", "p10", "up", "down", "peer", "busiest", "budget", "sampled", "replied", "lost", "refused",
    "is_void", "seconds",
)  # fmt: skip
RECENT_ROUNDS = 50  # whose seconds foretell those of the rounds to come
SETTINGS = "config.toml"
WATCHED = (SETTINGS, Summary.file, Failure.file, Round.file, Times.file, Progress.file, LOCK)

R = TypeVar("R", bound=Record)
Row = list[float | int | bool | None]  # COLUMNS
State = Literal["running", "waiting", "stopped", "failed", "finished", "unreadable"]


@dataclass(frozen=True)
class About:
    """What a run was begun with; only its number of rounds may be another later."""

    method: str
    data: str
    seed: int
    rounds: int
    n_clients: int
    tested: str
    started: str
    server: str  # of real nodes: the path of its folder; "": all clients are on one machine


@dataclass(frozen=True)
class Standing:
    state: State
    words: str = ""  # why it failed, or cannot be read
    progress: tuple[int, str, int, int] | None = None  # round, step, clients that have done it, clients asked
    ends_at: float | None = None  # foreseen; in seconds since 1970, as the next
    beat_at: float = 0.0  # last sign of life


class FollowedRun:
    def __init__(self, folder: Path, name: str) -> None:
        """name: how the page calls it, as no other."""
        self.folder, self.name = folder, name
        self.rows: list[Row] = []  # of rounds that have ended
        self.about: About | None = None
        self.standing = Standing("stopped")
        self.partition: Partition | None = None
        self._changed: dict[str, int] = {}  # by file: when, in nanoseconds
        self._start_over()

    def _start_over(self) -> None:
        self._rounds, self._times = Tail(self.folder / Round.file), Tail(self.folder / Times.file)
        self._read_rounds: list[Round] = []
        self._read_times: list[Times] = []

    def look(self) -> dict[str, Any] | None:
        """What is new, as `show` has it; None: nothing is."""
        before, changed = self._changed, {name: find_change(self.folder / name) for name in WATCHED}
        self._changed = changed
        if changed == before and self.standing.state == "finished":
            return None  # as most are in a folder of many; only these cannot be otherwise without a file that changes
        about, standing, n_before = self.about, self.standing, len(self.rows)
        try:
            if self.about is None or changed[SETTINGS] != before.get(SETTINGS):
                self._read_about()
            n_kept = self._read_rows()
            self.standing = self._find_standing()
        except (ValueError, OSError) as error:
            self._start_over()
            self.standing, self.rows, n_kept = Standing("unreadable", str(error)), [], 0
        is_same = (about, standing, n_before) == (self.about, self.standing, len(self.rows)) and n_kept == n_before
        return None if is_same else self.show(n_kept)

    def show(self, n_kept: int = 0) -> dict[str, Any]:
        """n_kept: rounds that a page has and that still stand."""
        about = asdict(self.about) if self.about else {}
        rows = {"n_kept": n_kept, "rows": self.rows[n_kept:]}
        command = shlex.join(["laconic", "run", "--resume", str(self.folder)])
        which = {"name": self.name, "folder": str(self.folder), "command": command}
        return which | about | asdict(self.standing) | rows

    def _read_about(self) -> None:
        self.partition = read(self.folder, Partition)
        config = read_config(self.folder / SETTINGS, self.partition)
        is_deployed = (self.folder / Deployed.file).exists()
        self.about = About(
            method=str(config["method"]["name"]),
            data=str(config["data"]["name"]),
            seed=config["seed"],
            rounds=config["rounds"],
            n_clients=len(self.partition.clients),
            tested=str(config["data"].get("tested", "test")),
            started=read(self.folder, Environment).started,
            server=read(self.folder, Deployed).server if is_deployed else "",
        )

    def _read_rows(self) -> int:
        """How many of the rows before still stand. A round's time is written last, so it is the times that count."""
        n_times = take_in(self._times, Times, self._read_times)
        if n_times < len(self.rows):
            self._rounds.doubt()  # rounds that are played again may end as they did, but never take as long to a digit
        n_rounds = take_in(self._rounds, Round, self._read_rounds)
        n_kept = min(n_times, n_rounds, len(self.rows))
        ended = zip(self._read_rounds[n_kept:], self._read_times[n_kept:], strict=False)
        self.rows[n_kept:] = [to_row(row, times.seconds) for row, times in ended]
        return n_kept

    def _find_standing(self) -> Standing:
        beat_at = max(self._changed[name] for name in (Round.file, Times.file, Progress.file, LOCK)) / 1e9
        if self._changed[Summary.file]:
            return Standing("finished", beat_at=self._changed[Summary.file] / 1e9)
        if is_in_use(self.folder):
            progress = self._read_progress()
            is_now = progress is not None and progress[0] >= len(self.rows)  # not of a round that has ended
            return Standing("running", "", progress if is_now else None, self._foresee(), beat_at)
        if self._changed[Failure.file]:
            return Standing("failed", read(self.folder, Failure).error, beat_at=self._changed[Failure.file] / 1e9)
        return Standing("waiting" if self.about and self.about.server else "stopped", beat_at=beat_at)

    def _read_progress(self) -> tuple[int, str, int, int] | None:
        path = self.folder / Progress.file
        try:
            found = read_line(Progress, path.read_bytes(), path)
        except (ValueError, OSError):  # it is being written
            return self.standing.progress
        return found.round, found.step, found.n_done, found.n_asked

    def _foresee(self) -> float | None:
        """As if every round to come took as long as the last ones did; set-up says nothing about that."""
        n_rounds = len(self._read_times)
        seconds = [times.seconds for times in self._read_times[max(1, n_rounds - RECENT_ROUNDS) :]]
        if not seconds or self.about is None:
            return None
        since = max(self._changed[Times.file], self._changed[LOCK]) / 1e9  # the last round's end, or its resumption
        return since + fmean(seconds) * (self.about.rounds - (n_rounds - 1))


def find_change(path: Path) -> int:
    """In nanoseconds since 1970; 0: it is not there."""
    try:
        return path.stat().st_mtime_ns
    except OSError:  # or it is not for us to look at
        return 0


def take_in(tail: Tail, cls: type[R], known: list[R]) -> int:
    """How many of the known records still stand; those that follow them now are added."""
    n_kept, lines = tail.read()
    known[n_kept:] = [read_line(cls, line, f"{tail.path}:{k}") for k, line in enumerate(lines, start=n_kept + 1)]
    return n_kept


def to_row(row: Round, seconds: float) -> Row:
    shares = [None if share is None else round(share, 5) for share in (row.accuracy_mean, row.accuracy_p10)]
    sent = [row.upload_bytes, row.download_bytes, row.peer_bytes, row.busiest_bytes, row.budget_bytes]
    clients = [row.n_sampled, row.n_replied, row.n_lost, row.n_refused]
    return [row.round, *shares, *sent, *clients, row.is_void, round(seconds, 3)]
