"""What a terminal shows of a run: a line per round and, if it is a terminal, a bar for the clients within it."""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from laconic.records import Round, one_line, read_rounds
from laconic.report.tables import format_bytes
from laconic.signals import SIGPIPE, Stopped

HEADING = "round  acc mean    p10   up/client  down/client       total"


class Terminal(Console):
    def on_broken_pipe(self) -> None:
        """Whoever read this has gone, as `| head -1` does: no failure of the run."""
        raise Stopped(SIGPIPE)


class Lines:
    """One line per round, for logs and pipes; folder: of a run that may have been begun, for `total`."""

    def __init__(self, console: Console, folder: Path | None = None) -> None:
        self.console, self.folder = console, folder
        self.sent_bytes: dict[int, int] = {}
        self.lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def started(self, title: str, rounds: int, first_round: int) -> None:
        with self.lock:
            if self.folder:  # not before: what a crash left behind the last checkpoint may be no rounds at all
                self.sent_bytes = {row.round: row.total_bytes for row in read_rounds(self.folder)}
            self.sent_bytes = {number: sent for number, sent in self.sent_bytes.items() if number < first_round}
            self.say(title)
            self.say(HEADING)

    def progressed(self, round: int, done: int, total: int, what: str) -> None:
        pass

    def finished_round(self, row: Round, seconds: float) -> None:
        with self.lock:
            self.sent_bytes[row.round] = row.total_bytes
            if row.round or row.total_bytes:  # often nothing travels before the first round
                self.say(format_row(row, sum(self.sent_bytes.values())))

    def said(self, line: str) -> None:
        with self.lock:
            self.say(line)

    def say(self, line: str) -> None:
        self.console.print(one_line(line), markup=False, highlight=False, soft_wrap=True)


class Bar(Lines):
    """The same lines scrolling above a bar: who has finished in this round, and how long the rest may take."""

    def __init__(self, console: Console, folder: Path | None = None) -> None:
        super().__init__(console, folder)
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),  # it may be what a node said
            BarColumn(30),
            TextColumn("{task.fields[count]}", style="progress.percentage"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
        )
        self.progress = Progress(*columns, console=console, transient=True)
        self.task = self.progress.add_task("loading", total=None, count="", left="")
        self.rounds = 0
        self.seconds: list[float] = []

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.stop()

    def started(self, title: str, rounds: int, first_round: int) -> None:
        super().started(title, rounds, first_round)
        with self.lock:
            self.rounds, self.seconds = rounds, []
        self.progress.reset(self.task, total=None, description="starting", count="", left="")

    def progressed(self, round: int, done: int, total: int, what: str) -> None:
        title = f"round {round}/{self.rounds}  {what}" if round else f"set-up  {what}"
        if done == 0:
            self.progress.reset(self.task)  # once finished, a bar stays so, and its clock stands
        self.progress.update(self.task, description=title, completed=done, total=total, count=f"{done}/{total} clients")

    def finished_round(self, row: Round, seconds: float) -> None:
        super().finished_round(row, seconds)
        if row.round:  # set-up says nothing about how long a round takes
            with self.lock:
                self.seconds.append(seconds)
                left_seconds = sum(self.seconds) / len(self.seconds) * (self.rounds - row.round)
            self.progress.update(self.task, left=f"about {format_seconds(left_seconds)} left")

    def said(self, line: str) -> None:
        super().said(line)
        self.progress.update(self.task, description=one_line(line))


def make_display(folder: Path, *, quiet: bool = False) -> Lines:
    """On stderr, for the run in this folder; rich knows about terminals and NO_COLOR."""
    console = Terminal(stderr=True, quiet=quiet)
    return Bar(console, folder) if console.is_terminal and not quiet else Lines(console, folder)


def format_row(row: Round, total_bytes: int) -> str:
    mean, p10 = ("-" if share is None else f"{share:.3f}" for share in (row.accuracy_mean, row.accuracy_p10))
    # over the clients sampled, and over all that something was sent to; nobody is sampled for the set-up.
    # what peers send each other goes up at one and down at the other
    ways = ((row.upload_bytes, row.n_sampled), (row.download_bytes, row.n_reached or 0))
    up, down = (format_bytes((n_bytes + row.peer_bytes) / max(n_clients, 1)) for n_bytes, n_clients in ways)
    line = f"{row.round:5d}  {mean:>8}  {p10:>5}  {up:>10}  {down:>11}  {format_bytes(total_bytes):>10}"
    if row.is_void:
        return f"{line}  void: too few replies"
    n_lost = row.n_sampled - row.n_replied
    return f"{line}  {n_lost} of {row.n_sampled} did not reply" if n_lost > 0 else line


def format_seconds(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
