"""Where clients live: their states, examples and steps. Every fleet keeps its clients in hosts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from weakref import ref

import numpy as np

from laconic import wire
from laconic.algorithm import Algorithm, ClientId, Examples, Site, Step, Task, state_type, step_of
from laconic.fleets.store import Store
from laconic.state import Frozen, freeze
from laconic.wire import Encoded, Message, WireError

START, SAMPLE, SERVER, SITE, LOSS = range(5)  # what a random stream is for

NOTHING = Encoded(b"", {})  # what a message without fields takes


def stream(seed: int, *key: int) -> np.random.Generator:
    """Independent of every stream with another key."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


class Source(Protocol):
    """Every client's examples."""

    def at(self, client: ClientId, round: int) -> tuple[Examples, Examples, Examples]:
        """Train, validation and test examples."""

    def only(self, clients: Sequence[ClientId]) -> Source:
        """The same for these clients, without the others' examples."""


class Exchange(NamedTuple):
    """A request and its reply: what later ones of the same step are coded against."""

    down: Message | None
    up: Message | None

    def after(self, down: Message, up: Message | None) -> Exchange:
        """Without what nothing is coded against; a message with nothing in it leaves the one before."""
        return Exchange(down if is_base(down) else self.down, up if up is not None and is_base(up) else self.up)


NONE_YET = Exchange(None, None)


def is_base(message: Message) -> bool:
    return not message.is_afresh and any(getattr(message, name) is not None for name, _, _ in message.schema)


@dataclass
class Cell:
    """All that one client keeps. For each step two slots of exchanges: one that both ends know to be complete, and one
    whose reply may be lost. The server's next request says which slot it holds too; the other is then free."""

    state: Any
    held: dict[str, list[Exchange | None]] = field(default_factory=dict)


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


class Decoded(NamedTuple):
    """A message, and what it was coded against while that is still held; states on disk come and go."""

    base: Callable[[], Message | None]
    message: Message


class Host:
    def __init__(self, home: Home) -> None:
        self.home = home
        self.cells: Store[Cell] = Store(home.folder, "client", self._freeze, self._thaw, on_disk=home.on_disk)
        self._decoded: dict[tuple[str, bytes], Decoded] = {}
        self._lock = threading.Lock()

    def perform(self, request: Request) -> Reply:
        """Decodes what came, runs the step, encodes its reply, keeps the client's new state."""
        cell, step = self._cell(request.client), step_of(type(self.home.algorithm), request.step)
        site = self._site(request.client, request.round, request.call)
        run = partial(getattr(self.home.algorithm, step.name), cell.state)
        if request.heard is not None:
            run({sender: self._decode(step, frame, None) for sender, frame in request.heard.items()}, site)
            encoded = NOTHING
        elif request.is_published:
            encoded, _ = encode_reply(step, run(wire.EMPTY, site), None)
        else:
            slots = cell.held.setdefault(step.name, [None, None])
            agreed, body = read_slot(step, request.frame)
            base = NONE_YET if agreed is None else slots[agreed]
            if base is None:
                raise WireError(f"client {request.client} holds no earlier {step.name}, which this one builds on")
            message = self._decode(step, body, base.down)
            told = run(message, site)
            encoded, reply = encode_reply(step, told, getattr(told, "base", None) or base.up)
            slots[free_slot(agreed)] = base.after(message, reply)
        self.cells.put(request.client, cell)
        return Reply(request.client, encoded, site.notes)

    def count_examples(self, request: Request) -> int:
        return len(self.home.source.at(request.client, request.round)[0].y)

    def evaluate(self, client: ClientId, round: int) -> Score:
        _, val, test = self.home.source.at(client, round)
        if self.home.tested == "validation":
            test = val
        if not len(test.y):
            return Score(client, 0, 0)
        method, state = self.home.algorithm, self._cell(client).state
        n_correct = int(np.count_nonzero(method.predict(state, test.x) == test.y))
        others = method.predict_also(state, test.x)
        also = tuple((name, int(np.count_nonzero(labels == test.y))) for name, labels in others.items())
        return Score(client, len(test.y), n_correct, also)

    def state(self, client: ClientId) -> Any:
        return self._cell(client).state

    def load(self, client: ClientId, data: bytes) -> None:
        """The client as it was when dumped."""
        self.cells.put(client, self._thaw(client, data))

    def dump(self, client: ClientId) -> bytes:
        return self._freeze(self._cell(client))

    def forget_decoded(self) -> None:
        self._decoded.clear()

    def _cell(self, client: ClientId) -> Cell:
        """A client met for the first time starts here, the same whenever that is."""
        cell = self.cells.get(client)
        if cell is None:
            train, val, _ = self.home.source.at(client, 0)
            site = Site(client, 0, train, val, stream(self.home.seed, START, client))
            cell = Cell(self.home.algorithm.start_client(self.home.task, site))
            self.cells.put(client, cell)
        return cell

    def _site(self, client: ClientId, round: int, call: int) -> Site:
        train, val, _ = self.home.source.at(client, round)
        return Site(client, round, train, val, stream(self.home.seed, SITE, round, client, call))

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

    def _freeze(self, cell: Cell) -> bytes:
        held = {
            f"{step}/{slot}/{way}": getattr(exchange, way)
            for step, slots in cell.held.items()
            for slot, exchange in enumerate(slots)
            if exchange is not None
            for way in Exchange._fields
        }
        return freeze({"state": cell.state, "held": list(held)} | held)

    def _thaw(self, _: ClientId, data: bytes) -> Cell:
        frozen = Frozen(data)
        keys = frozen.thaw({"held": list[str]})["held"]
        expected: dict[str, Any] = {"state": state_type(type(self.home.algorithm), "client")}
        for key in keys:
            name, _, way = key.split("/")
            step = step_of(type(self.home.algorithm), name)
            expected[key] = optional(step.message if way == "down" else step.reply)
        found = frozen.thaw(expected)
        cell = Cell(found["state"])
        for key in keys[:: len(Exchange._fields)]:
            name, slot, _ = key.split("/")
            slots = cell.held.setdefault(name, [None, None])
            messages = [found[f"{name}/{slot}/{way}"] for way in Exchange._fields]
            slots[int(slot)] = Exchange(*(message and message.snapshot() for message in messages))
        return cell


def optional(kind: type[Message] | None) -> Any:
    """The annotation of a held message, which is None where none was sent."""
    return (kind or Message) | None


def write_slot(step: Step, agreed: int | None) -> bytes:
    """The byte before a request: the slot that both ends hold. None is sent where nothing could be coded against it."""
    if not step.message.schema and step.reply is None:
        return b""
    return bytes([0 if agreed is None else agreed + 1])


def read_slot(step: Step, frame: bytes) -> tuple[int | None, bytes]:
    if not step.message.schema and step.reply is None:
        return None, frame
    if not frame or frame[0] > 2:
        raise WireError(f"a request for {step.name} starts with {frame[:1]!r}; a byte from 0 to 2 was due")
    return frame[0] - 1 if frame[0] else None, frame[1:]


def free_slot(agreed: int | None) -> int:
    return 0 if agreed is None else 1 - agreed


def encode_reply(step: Step, reply: Message | None, base: Message | None) -> tuple[Encoded, Message | None]:
    """The bytes, and the reply as both ends will hold it."""
    if reply is None or step.reply is None:
        return NOTHING, None
    if type(reply) is not step.reply:
        raise TypeError(f"{step.name} returned a {type(reply).__name__}; its annotation says {step.reply.__name__}")
    kept = reply.snapshot()
    return wire.encode_detailed(kept, base), kept
