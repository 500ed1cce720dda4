"""A node over MQTT: hears requests on its own topic, carries them out on its own files, and always answers."""

from __future__ import annotations

import json
import queue
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from laconic.deploy.keeper import Keeper, keep, stopping
from laconic.deploy.node_runs import NodeRuns, OwnExamples, Unfit, Unknown
from laconic.deploy.settings import name_node, read_settings
from laconic.files import lock, write_atomically
from laconic.fleets.frames import BEGIN, MOST_WORDS, THRESHOLDS, Answer, Head, Outcome, Sent
from laconic.fleets.link import Address, Link, Will
from laconic.fleets.mqtt import ASLEEP, GONE, HERE
from laconic.wire import WireError

LINGER_SECONDS = 2.0  # before a node on duty goes to sleep, if nothing is asked
RESTART_SECONDS = 2.0
SOCKETS = "sockets.json"  # in a node's folder: bytes of its connections since it was started


class Station:
    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self.folder, self._say, self._todo = folder, say, queue.SimpleQueue[bytes]()
        settings = read_settings(folder, "node")
        self.runs = NodeRuns(folder, settings.client, OwnExamples(folder / settings.data, settings.task), say)
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
        if head.kind in (BEGIN, THRESHOLDS):
            self._learn(head, body)
            return
        outcome, words = Outcome.DONE, b""
        try:
            words = self.runs.carry_out(head, body)
        except Unknown:
            outcome = Outcome.UNKNOWN
            self._say(f"round {head.round}, call {head.call}: run {head.run:04x} is not known here")
        except Unfit as error:
            outcome, words = Outcome.UNFIT, self._refuse(head, str(error))
        except (ValueError, WireError) as error:
            outcome, words = Outcome.REFUSED, self._refuse(head, str(error))
        except Exception as error:  # a fault of ours is no reason to be silent
            self._say(traceback.format_exc())
            outcome, words = Outcome.REFUSED, self._refuse(head, f"{type(error).__name__}: {error}")
        self._answer(head, outcome, words)

    def _refuse(self, head: Head, words: str) -> bytes:
        self._say(f"run {head.run:04x}, round {head.round}, call {head.call} refused: {words}")
        return words[:MOST_WORDS].encode()

    def _learn(self, head: Head, body: bytes) -> None:
        """No answer is due: if it came to nothing, whatever is asked next will be unknown."""
        try:
            if head.kind == BEGIN:
                self.runs.begin(body)
            else:
                self.runs.keep_thresholds(head.run, body)
        except (ValueError, WireError, Unknown) as error:
            self._say(f"what came cannot be part of a run: {error}")

    def _answer(self, head: Head, outcome: Outcome, body: bytes) -> None:
        link = self.link
        if not link.is_up.is_set():  # who asked asks again at the birth message
            return
        now = (link.count().minus(link.linked).minus(link.idle), link.linked, link.idle)
        exchanged, linked, idle = (new.minus(old) for new, old in zip(now, self._told, strict=True))
        self._told = now
        link.publish(f"{self._topic}/r", Answer(*head.place, outcome, exchanged, body, linked, idle).write())


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
