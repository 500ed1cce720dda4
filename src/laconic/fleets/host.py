"""Where clients live: their states, examples and steps. Every fleet keeps its clients in hosts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from laconic import wire
from laconic.algorithm import Algorithm, ClientId, Site, Step, Task, step_of
from laconic.device import CPU, choose
from laconic.fleets.session import NOTHING, ClientEnd, encode_reply, read_slot
from laconic.fleets.source import Source
from laconic.fleets.store import Store
from laconic.wire import Encoded, Message

START, SAMPLE, SERVER, SITE, LOSS = range(5)  # what a random stream is for


def stream(seed: int, *key: int) -> np.random.Generator:
    """Independent of every stream with another key."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


class Request(NamedTuple):
    step: str
    client: ClientId
    round: int
    call: int  # how many requests the server has made in this round
    frame: bytes = b""
    heard: dict[ClientId, bytes] | None = None  # gossip: what neighbours published
    is_published: bool = False  # gossip: the reply goes to neighbours, who hold nothing it could be coded against


class Reply(NamedTuple):
    client: ClientId
    encoded: Encoded
    notes: dict[str, float]
    carried_notes: Any = b""  # of a real node, in place of notes: those as they travelled, bytes if it is honest


class Score(NamedTuple):
    client: ClientId
    n_test: int
    n_correct: int
    also: tuple[tuple[str, int], ...] = ()  # name and n_correct of each further prediction


@dataclass(frozen=True)
class Home:
    """What a host is made from; goes to worker processes as it is."""

    algorithm: Algorithm
    task: Task
    source: Source
    seed: int
    folder: Path | None = None  # of checkpoints
    on_disk: bool = False  # states live there between steps
    tested: str = "test"  # which of a client's examples it is evaluated on: test or validation
    renews: bool = False  # before that its model looks at its own training examples, see PersonalModel.renew
    device: str = CPU  # where networks are worked out


class Decoded(NamedTuple):
    """A message, and what it was coded against while that is still held; states on disk come and go."""

    base: Callable[[], Message | None]
    message: Message


class Host:
    def __init__(self, home: Home) -> None:
        self.home = home
        choose(home.device)
        self.ends: Store[ClientEnd] = Store(
            home.folder, "client", ClientEnd.freeze, partial(ClientEnd.thaw, type(home.algorithm)), on_disk=home.on_disk
        )
        self._decoded: dict[tuple[str, bytes], Decoded] = {}
        self._lock = threading.Lock()

    def perform(self, request: Request) -> Reply:
        """Decodes what came, runs the step, encodes its reply, keeps the client's new state."""
        end, step = self._end(request.client), step_of(type(self.home.algorithm), request.step)
        site = self._site(request.client, request.round, request.call)
        run = partial(getattr(self.home.algorithm, step.name), end.state)
        if request.heard is not None:
            run({sender: self._decode(step, frame, None) for sender, frame in request.heard.items()}, site)
            encoded = NOTHING
        elif request.is_published:
            encoded, _ = encode_reply(step, run(wire.EMPTY, site), None)
        else:
            slot, body = read_slot(step, request.frame)
            agreed = end.agreed(step, slot)
            message = self._decode(step, body, agreed.down)
            encoded, reply = encode_reply(step, run(message, site), agreed.up)
            end.keep(step, slot, agreed.after(message, reply))
        self.ends.put(request.client, end)
        return Reply(request.client, encoded, site.notes)

    def count_examples(self, request: Request) -> int:
        return len(self.home.source.at(request.client, request.round)[0].y)

    def evaluate(self, client: ClientId, round: int) -> Score:
        train, val, test = self.home.source.at(client, round)
        if self.home.tested == "validation":
            test = val
        if not len(test.y):
            return Score(client, 0, 0)
        method, state = self.home.algorithm, self._end(client).state
        if self.home.renews:
            labels: NDArray[np.integer[Any]] = method.personal_model(state).renew(train.x).classify(test.x)
        else:
            labels = method.predict(state, test.x)
        n_correct = int(np.count_nonzero(labels == test.y))
        others = method.predict_also(state, test.x)
        also = tuple((name, int(np.count_nonzero(other == test.y))) for name, other in others.items())
        return Score(client, len(test.y), n_correct, also)

    def state(self, client: ClientId) -> Any:
        return self._end(client).state

    def load(self, client: ClientId, data: bytes) -> None:
        """The client as it was when dumped."""
        self.ends.put(client, ClientEnd.thaw(type(self.home.algorithm), data))

    def dump(self, client: ClientId) -> bytes:
        return self._end(client).freeze()

    def forget_decoded(self) -> None:
        self._decoded.clear()

    def _end(self, client: ClientId) -> ClientEnd:
        """A client met for the first time starts here, the same whenever that is."""
        end = self.ends.get(client)
        if end is None:
            train, val, _ = self.home.source.at(client, 0)
            rng = stream(self.home.seed, START, client)
            site = Site(client, 0, train, val, rng, declared=self.home.algorithm.client_notes)
            end = ClientEnd(self.home.algorithm.start_client(self.home.task, site))
            self.ends.put(client, end)
        return end

    def _site(self, client: ClientId, round: int, call: int) -> Site:
        train, val, _ = self.home.source.at(client, round)
        rng = stream(self.home.seed, SITE, round, client, call)
        return Site(client, round, train, val, rng, declared=self.home.algorithm.client_notes)

    def _decode(self, step: Step, body: bytes, base: Message | None) -> Message:
        """A message sent to many is decoded once, and held once."""
        if not step.message.schema:
            return wire.EMPTY
        key = (step.name, body)
        with self._lock:
            known = self._decoded.get(key)
        if known is not None and known.base() is base:
            return known.message
        message = wire.decode(step.message, body, base).snapshot()
        with self._lock:
            known = self._decoded.get(key)
            if known is None or known.base() is not base:
                known = self._decoded[key] = Decoded((lambda: None) if base is None else ref(base), message)
        return known.message
