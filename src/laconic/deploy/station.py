"""A node over MQTT: hears requests on its own topic, carries them out on its own files, and always answers."""

from __future__ import annotations

import json
import queue
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import zstandard

from laconic.algorithm import ClientId, Task, steps_of
from laconic.deploy.allowed import read_experiment
from laconic.deploy.examples import read_examples
from laconic.deploy.keeper import Keeper, keep, stopping
from laconic.deploy.runs import clear_finished
from laconic.deploy.settings import name_node, read_settings
from laconic.files import lock, write_atomically
from laconic.fleets.frames import (
    BEGIN,
    END,
    EVALUATE,
    Answer,
    Head,
    Outcome,
    Sent,
    read_request,
    write_reply,
    write_score,
)
from laconic.fleets.host import Home
from laconic.fleets.link import Address, Link, Will
from laconic.fleets.mqtt import ASLEEP, GONE, HERE
from laconic.fleets.node import Node, Stage
from laconic.fleets.remote import evaluate, perform
from laconic.fleets.source import ClientData, Parts
from laconic.wire import WireError

ID_BYTES = 16  # of a run
MOST_SETTINGS_BYTES = 1 << 18  # of a run, as text
LINGER_SECONDS = 5.0  # before a node on duty goes to sleep, if nothing is asked
RESTART_SECONDS = 2.0
SOCKETS = "sockets.json"  # in a node's folder: bytes of its connections since it was started


class Unknown(Exception):
    """The server has to say first what the run is."""


class Unfit(Exception):
    """This node cannot take part in the run."""


# ---------------------------------------------------------------- what a run is, on its way
def write_begin(run: str, finished: list[str], settings: str) -> bytes:
    ids = bytes.fromhex(run) + bytes([len(finished)]) + b"".join(bytes.fromhex(each)[:4] for each in finished)
    return ids + zstandard.compress(settings.encode(), 19)


def read_begin(body: bytes) -> tuple[str, list[str], str]:
    """Id of the run, how the ids of finished ones begin, settings as TOML."""
    n_finished = body[ID_BYTES]
    at = ID_BYTES + 1 + 4 * n_finished
    finished = [body[k : k + 4].hex() for k in range(ID_BYTES + 1, at, 4)]
    text = zstandard.ZstdDecompressor().decompress(body[at:], max_output_size=MOST_SETTINGS_BYTES)
    return body[:ID_BYTES].hex(), finished, text.decode()


# ---------------------------------------------------------------- a node's runs
class Own:
    """A node's examples, read again when their file has changed."""

    def __init__(self, path: Path, task: Task) -> None:
        self._path, self._task = path, task
        self._read_at = -1
        self._parts: Parts | None = None

    def read(self) -> Parts:
        """ValueError where they do not fit the task."""
        changed = self._path.stat().st_mtime_ns if self._path.exists() else -2
        if self._parts is None or changed != self._read_at:
            self._parts, self._read_at = read_examples(self._path, self._task), changed
        return self._parts


class RunHere(NamedTuple):
    node: Node
    steps: list[str]
    sends_notes: bool


@dataclass
class Runs:
    """Of one node, in its folder, by the first two bytes of their ids."""

    folder: Path
    client: ClientId
    own: Own

    def begin(self, body: bytes) -> None:
        run, finished, text = read_begin(body)
        runs = self.folder / "runs"
        if not (runs / run / "config.toml").exists():  # for the run's whole life, and for the node's owner to see
            clear_finished(runs, [path.name for path in runs.glob("*") if path.name[:8] in finished])
            write_atomically(runs / run / "config.toml", text.encode())

    def open(self, short: int) -> RunHere:
        """Anew for each request: what the owner allows may have changed, and a crash is nothing special then."""
        folder = next((self.folder / "runs").glob(f"{short:04x}*/config.toml"), None)
        if folder is None:
            raise Unknown
        try:
            settings = read_settings(self.folder, "node")
            config = read_experiment(folder, settings.methods, settings.models)
            own = self.own.read()
        except (ValueError, ImportError) as error:
            raise Unfit(str(error)) from error
        source = ClientData(((0, {self.client: own}),))
        home = Home(config.method, settings.task, source, config.seed, tested=config.data.tested)
        steps = [step.name for step in steps_of(type(config.method))]
        # a budget is kept by the method's own messages; there is no room for more
        return RunHere(Node(home, self.client, folder.parent), steps, settings.notes and not config.budget)

    def carry_out(self, head: Head, body: bytes) -> bytes:
        """The body of the reply."""
        if head.kind == END:
            return b""
        run, stage = self.open(head.run), Stage(head.attempt, head.round - head.lag)
        if head.kind == EVALUATE:
            return write_score(evaluate(run.node, head.round, stage))
        request = read_request(head, body, run.steps, self.client)
        return write_reply(*perform(run.node, request, stage, sends_notes=run.sends_notes))


# ---------------------------------------------------------------- the process
class Station:
    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self.folder, self._say, self._todo = folder, say, queue.SimpleQueue[bytes]()
        settings = read_settings(folder, "node")
        self.runs = Runs(folder, settings.client, Own(folder / settings.data, settings.task))
        self._topic, self._told = f"l/{name_node(settings.client)}", (Sent(), Sent(), Sent())
        self.link = Link(
            Address(settings.host, settings.port),
            folder,
            name_node(settings.client),
            [f"{self._topic}/q"],
            lambda topic, payload: self._todo.put(payload),
            say,
            will=Will(f"{self._topic}/s", HERE, GONE),
        )

    def check_examples(self) -> None:
        """When the node starts, and not in the midst of a run."""
        try:
            parts = self.runs.own.read()
            self._say(f"examples: {', '.join(str(len(part.y)) for part in parts)} to train, validate and test with")
        except ValueError as error:
            self._say(f"error: {error}.  Until then this node refuses every run")

    def serve(self) -> None:
        self.link.open()
        try:
            while True:
                self._handle(self._todo.get())
        finally:
            self._leave(GONE)

    def serve_by_turns(self, duty_seconds: float) -> None:
        """Connects, works as long as it is asked, sleeps."""
        while True:
            self.link.open()
            try:
                self.link.is_up.wait(60)
                while True:
                    self._handle(self._todo.get(timeout=LINGER_SECONDS))
            except queue.Empty:
                pass
            finally:
                self._leave(ASLEEP)
            time.sleep(duty_seconds)

    def _leave(self, last_words: bytes) -> None:
        self.link.close(last_words)
        write_atomically(self.folder / SOCKETS, json.dumps(self.link.count()._asdict()).encode())

    def _handle(self, payload: bytes) -> None:
        try:
            head, body = Head.read(payload)
        except ValueError as error:
            self._say(f"a request that cannot be read was left aside: {error}")
            return
        if head.kind == BEGIN:
            self._begin(body)
            return
        outcome, words = Outcome.DONE, b""
        try:
            words = self.runs.carry_out(head, body)
        except Unknown:
            outcome = Outcome.UNKNOWN
        except Unfit as error:
            outcome, words = Outcome.UNFIT, str(error).encode()
        except (ValueError, WireError) as error:
            outcome, words = Outcome.REFUSED, str(error).encode()
        except Exception as error:  # a fault of ours is no reason to be silent
            self._say(traceback.format_exc())
            outcome, words = Outcome.REFUSED, f"{type(error).__name__}: {error}".encode()
        if outcome in (Outcome.REFUSED, Outcome.UNFIT):
            self._say(f"round {head.round}, call {head.call} refused: {words.decode()}")
        self._answer(head, outcome, words)

    def _begin(self, body: bytes) -> None:
        try:
            self.runs.begin(body)
        except (ValueError, IndexError, zstandard.ZstdError) as error:  # whatever is asked of it will be unknown
            self._say(f"what came cannot be the settings of a run: {error}")

    def _answer(self, head: Head, outcome: Outcome, body: bytes) -> None:
        link = self.link
        now = (link.count().minus(link.linked).minus(link.idle), link.linked, link.idle)
        exchanged, linked, idle = (new.minus(old) for new, old in zip(now, self._told, strict=True))
        self._told = now
        place = (head.run, head.attempt, head.round, head.call)
        link.publish(f"{self._topic}/r", Answer(*place, outcome, exchanged, body, linked, idle).write())


def keep_station(folder: Path, duty_seconds: float, say: Callable[[str], None]) -> None:
    """The node of this folder, in this process. Ends with SIGTERM or Ctrl-C."""
    station = Station(folder, say)
    with lock(folder), stopping([]):
        station.check_examples()
        if duty_seconds:
            station.serve_by_turns(duty_seconds)
        else:
            station.serve()


def keep_several(folders: Sequence[Path], duty: str, say: Callable[[str], None]) -> None:
    """A process for each. Ends with SIGTERM or Ctrl-C."""
    keepers = []
    for folder in folders:
        command = [sys.executable, "-m", "laconic", "deploy", "node", str(folder.resolve())]
        command += ["--duty", duty] if duty else []
        log = folder / "node.log"
        keepers.append(Keeper(folder.name, log, partial(list, command), say, RESTART_SECONDS))
    keep(keepers)
