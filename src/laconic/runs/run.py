"""The loop of an experiment: rounds, evaluation, records, checkpoints."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Protocol

from laconic.algorithm import Task
from laconic.data import Partition
from laconic.data.sources import name_source
from laconic.device import CPU
from laconic.files import LOCK, lock, make_folder, remove, sync_folder, write_atomically
from laconic.fleets import REMOTE
from laconic.fleets.base import BaseFleet, Conditions, OverBudget, WorkerLost
from laconic.records import (
    LINES,
    ClientScore,
    Deployed,
    Environment,
    Failure,
    Journal,
    Matrix,
    Pairs,
    Panels,
    Progress,
    Pulse,
    Record,
    Round,
    Summary,
    Times,
    Traffic,
    log_event,
    read_lines,
    read_rounds,
    to_line,
    write,
)
from laconic.records import Partition as RecordedPartition
from laconic.runs import checkpoint as checkpoints
from laconic.runs.budget import keep_budget
from laconic.runs.checkpoint import Checkpoint
from laconic.runs.client_models import INPUTS, write_inputs
from laconic.runs.config import Config, parse_bytes, read_config, write_config
from laconic.runs.prepare import Prepared, prepare
from laconic.runs.record import (
    describe_clients,
    describe_environment,
    describe_matrices,
    describe_pairs,
    describe_partition,
    describe_round,
    summarize,
)
from laconic.runs.typed_toml import ConfigError
from laconic.signals import find_number
from laconic.simulation import Federation, OnProgress, federate

MADE_HERE = "data.npz"  # examples that came from memory, kept beside the run
MAX_LOSSES = 3  # of workers without a checkpoint between them; more are no accident

__all__ = ["Interrupted", "OverBudget", "Summary", "Watch", "drive", "resume", "run"]

Opener = Callable[[OnProgress], AbstractContextManager[Federation]]  # told whom to tell of progress


class Watch(Protocol):
    """How a run tells what happens; progressed may come from other threads."""

    def started(self, title: str, rounds: int, first_round: int) -> None:
        """And again each time that it went back to a checkpoint."""

    def progressed(self, round: int, done: int, total: int, what: str) -> None:
        """So many of the clients asked have finished that step."""

    def finished_round(self, row: Round, seconds: float) -> None: ...

    def said(self, line: str) -> None: ...


class Interrupted(Exception):
    """Ctrl-C or another signal; every finished round is safe in the folder."""

    def __init__(self, folder: Path, number: int = signal.SIGINT, words: str = "") -> None:
        """words: instead of how a run on this machine goes on."""
        remedy = f"stopped, with all finished rounds safe.  Go on with: laconic run --resume {folder}"
        super().__init__(words or remedy)
        self.folder, self.number = folder, number


def run(
    config: Config,
    folder: Path,
    *,
    watch: Watch | None = None,
    on_open: Callable[[BaseFleet], object] = lambda fleet: None,
) -> Summary:
    """A new run; the folder must not exist or be empty. on_open: told of the fleet before anyone is asked."""
    check_empty(folder)
    if config.fleet.name in REMOTE:
        words = "real nodes are reached through their server: laconic deploy run SERVER EXP.TOML, or laconic deploy try"
        raise ConfigError("E102", f'fleet.name = "{config.fleet.name}": {words}')
    find_device(config)
    prepared = prepare(config)
    config.method.check_task(prepared.task)
    say = watch.said if watch else lambda line: None
    for line in prepared.notes:
        say(line)
    config = keep_budget(config, prepared.task, say)
    with lock(folder):
        check_empty(folder)
        write(folder, describe_environment())
        write(folder, describe_partition(prepared))
        prepared.partition.save(folder / "partition.npz")
        write_inputs(folder, prepared)
        write_settings(config, folder)  # last: from now on it can be resumed
        for line in prepared.notes:
            log_event(folder, line)
        return _go(config, prepared, folder, watch, on_open)


def resume(folder: Path, *, watch: Watch | None = None, rounds: int | None = None) -> Summary:
    """Goes on after the last checkpoint, to the same end as if it had never stopped; rounds: to that end instead."""
    if not (folder / "config.toml").exists():
        raise ValueError(f"{folder} holds no run that got under way; start it anew")
    with lock(folder):
        checkpoints.verify(folder)
        begun = read_config(folder / "config.toml")
        config = replace(begun, rounds=rounds or begun.rounds)
        if config.rounds < begun.rounds:
            raise ValueError(f"{folder} has {begun.rounds} rounds; it can get more, not as few as {rounds}")
        if (folder / Deployed.file).exists():
            raise ValueError(f"{folder} holds a run on real nodes; go on with laconic deploy run SERVER --out {folder}")
        if config == begun and (folder / Summary.file).exists():
            remove(folder / Failure.file)
            return summarize(config, folder, read_rounds(folder), sum(row.seconds for row in read_lines(folder, Times)))
        prepared = prepare(config, Partition.load(folder / "partition.npz"))
        if config != begun:  # only now that it is clear that it can go on
            remove(folder / Summary.file)  # first: it would call done what has rounds to go
            checkpoints.accept_settings(folder, write_config(config).encode())
            write_settings(config, folder)
            log_event(folder, f"prolonged to {config.rounds} rounds")
        return _go(config, prepared, folder, watch)


def check_empty(folder: Path) -> None:
    """But for what a start leaves there that was cut short before it could be resumed."""
    remains = {LOCK, Environment.file, RecordedPartition.file, "partition.npz", INPUTS, MADE_HERE}
    names = {path.name for path in folder.iterdir() if path.suffix != ".draft"} if folder.exists() else set()
    if names - remains:
        raise ValueError(f"{folder} is not empty; choose another folder, or resume the run in it")


def write_settings(config: Config, folder: Path) -> None:
    write_atomically(folder / "config.toml", write_config(config).encode())


def _go(
    config: Config,
    prepared: Prepared,
    folder: Path,
    watch: Watch | None,
    on_open: Callable[[BaseFleet], object] = lambda fleet: None,
) -> Summary:
    @contextmanager
    def open_here(on_progress: OnProgress) -> Iterator[Federation]:
        with federate(
            config.method,
            prepared.task,
            prepared.source,
            config.seed,
            fleet=config.fleet.name,
            workers=config.fleet.workers,
            conditions=find_conditions(config),
            folder=folder / checkpoints.FOLDER,
            on_disk=config.fleet.state == "disk",
            tested=config.data.tested,
            renews=config.renew_statistics,
            device=find_device(config),
            on_progress=on_progress,
        ) as federation:
            on_open(federation.fleet)
            yield federation

    return drive(config, folder, open_here, watch)


def find_conditions(config: Config) -> Conditions:
    budget = parse_bytes(config.budget) if config.budget else None
    return Conditions(config.fleet.participation, config.fleet.lost_replies, budget, config.fleet.averaging)


def find_device(config: Config) -> str:
    """Where the method's networks are worked out; others have none."""
    if config.fleet.device == CPU or config.method.takes != "values":
        return CPU
    from laconic.networks import device

    try:
        return device.find_device(config.fleet.device)
    except ValueError as error:
        raise ConfigError("E102", str(error)) from error


def drive(config: Config, folder: Path, open_clients: Opener, watch: Watch | None) -> Summary:
    """The run in this folder, from its last checkpoint to its end, on whatever fleet is opened."""
    remove(folder / Failure.file)
    make_folder(folder / checkpoints.FOLDER)
    write(folder, Panels(list(type(config.method).panels)))
    pulse = Pulse(folder)

    def on_progress(what: str, done: int, total: int) -> None:
        pulse.beat(Progress(federation.fleet.round, what, done, total))
        if watch:
            watch.progressed(federation.fleet.round, done, total, what)

    try:
        with open_clients(on_progress) as federation:
            loop = _Loop(config, folder, federation, watch)
            loop.run()
    except KeyboardInterrupt as stop:
        number = find_number(stop)
        log_event(folder, f"stopped by {signal.Signals(number).name}")
        raise Interrupted(folder, number) from None
    except BaseException as error:
        log_event(folder, f"failed: {error}")
        words = "; ".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])])
        write(folder, Failure(words))
        error.add_note(f"recorded in {folder / Failure.file}")
        raise
    finally:
        pulse.end()
    summary = summarize(config, folder, read_rounds(folder), loop.seconds)
    sync_folder(folder / checkpoints.FOLDER)  # files of older checkpoints would come back, and stay
    write(folder, summary)
    log_event(folder, "done")
    return summary


class _Loop:
    def __init__(self, config: Config, folder: Path, federation: Federation, watch: Watch | None) -> None:
        self.config, self.folder, self.federation, self.watch = config, folder, federation, watch
        self.fleet = federation.fleet
        self.journals: dict[str, Journal] = {}
        self.begun_with = checkpoints.hash_begun_with(folder)
        self.seconds = 0.0
        self.n_losses = 0  # since the last checkpoint

    def run(self) -> None:
        """To the last round; what a lost worker took with it is played again, from the last checkpoint."""
        while True:
            try:
                return self.go_on()
            except WorkerLost as loss:
                self.n_losses += 1
                if self.n_losses > MAX_LOSSES:
                    remedy = "resume the run, with fewer fleet.workers or fleet.state=disk if memory was short"
                    loss.add_note(f"no checkpoint came about in {self.n_losses} trials; {remedy}")
                    raise
                self.say(f"{loss}; back to the last checkpoint with another in its place")

    def go_on(self) -> None:
        """From the last checkpoint, if there is one."""
        if self.n_losses:
            self.fleet.replace_lost()
        found = checkpoints.load(self.folder, self.fleet, self.config.method)
        lengths, self.seconds = (found.lengths, found.seconds) if found else ({}, 0.0)
        if not found:  # nothing of a start that was cut short may stay
            shutil.rmtree(self.folder / checkpoints.FOLDER)
            make_folder(self.folder / checkpoints.FOLDER)
            self.fleet.open({"links": {}, "clients": {}}, -1)
        # a kind of record that the checkpoint does not know was empty then
        self.journals = {kind.file: Journal(self.folder / kind.file, lengths.get(kind.file, 0)) for kind in LINES}
        first = found.round + 1 if found else 0
        log_event(self.folder, f"from round {first} on")
        if self.watch:
            self.watch.started(_title(self.config, self.federation.task, self.folder), self.config.rounds, first)
        self.federation.server = found.server if found else None
        for number in range(first, self.config.rounds + 1):
            self.run_round(number)

    def run_round(self, round: int) -> None:
        started, fleet = perf_counter(), self.fleet
        is_last = round == self.config.rounds
        is_evaluated = round > 0 and (is_last or round % self.config.evaluate_every == 0)
        played = self.federation.play(round, is_evaluated=is_evaluated)
        news = [f"error[E210] {line}; the client is left out" for line in fleet.refused]
        news += [f"error[E211] {line}; the reply counts" for line in fleet.dropped]
        news += [f"round {round} is void: {played.trouble}"] if played.trouble else []
        for line in news:
            self.say(line)
        row = describe_round(fleet, played.scores, is_void=played.trouble is not None)
        self.append(Round, [row])
        self.append(ClientScore, describe_clients(fleet, played.scores or []))
        self.append(Pairs, describe_pairs(fleet))
        self.append(Matrix, describe_matrices(fleet))
        self.journals[Traffic.file].append(fleet.ledger.to_jsonl())  # its columns are the record's fields
        seconds = perf_counter() - started
        self.append(Times, [Times(round, seconds, played.evaluate_seconds)])
        self.seconds += seconds
        if is_last or round % self.config.checkpoint_every == 0:
            lengths = {name: journal.n_bytes for name, journal in self.journals.items()}
            hashes = self.begun_with | {name: journal.sha256 for name, journal in self.journals.items()}
            checkpoint = Checkpoint(round, self.federation.server, lengths, self.seconds, hashes)
            checkpoints.save(self.folder, fleet, checkpoint)
            self.n_losses = 0
        if self.watch:
            self.watch.finished_round(row, seconds)

    def say(self, line: str) -> None:
        log_event(self.folder, line)
        if self.watch:
            self.watch.said(line)

    def append(self, kind: type[Record], rows: Iterable[Record]) -> None:
        self.journals[kind.file].append(map(to_line, rows))


def _title(config: Config, task: Task, folder: Path) -> str:
    rule = config.data.partition
    share = f"{rule}({config.data.alpha:g})" if "dirichlet" in rule else rule
    data = name_source(config.data.name) + (f", {config.data.shift}" if config.data.shift != "none" else "")
    tested = " · tested on validation examples" if config.data.tested == "validation" else ""
    return (
        f"{config.method_name} on {data} · {task.n_clients} clients · {share} · seed {config.seed}{tested} · {folder}"
    )
