"""What all fleets share: who takes part, random streams, encode → ledger → decode, lost replies, the byte budget."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from laconic import wire
from laconic.aggregate import Averaging
from laconic.algorithm import ClientId, M, R, Site, Step, TooFew, step_of
from laconic.fleets.host import (
    LOSS,
    NONE_YET,
    NOTHING,
    SAMPLE,
    SERVER,
    Exchange,
    Home,
    Reply,
    Request,
    Score,
    free_slot,
    optional,
    stream,
    write_slot,
)
from laconic.fleets.soundness import Limits, check_sound, find_limits
from laconic.fleets.store import Store
from laconic.state import Frozen, freeze
from laconic.wire import ENVELOPE, Counts, Encoded, Hop, Ledger, Message, WireError

T = TypeVar("T", Reply, Score)


class OverBudget(Exception):
    """More bytes than a client may send and receive in a round."""


class WorkerLost(Exception):
    """A worker is gone, and with it what became of its clients since the last checkpoint."""


@dataclass(frozen=True)
class Conditions:
    """How the clients are reached."""

    participation: float = 1.0  # share of clients sampled each round
    lost_replies: float = 0.0  # share of replies that never arrive, though the client did its step and sent them
    budget_bytes: int | None = None  # most that a client may send and receive in a round, together
    averaging: Averaging = "mean"  # of what clients send; the others bear some who lie


@dataclass
class Link:
    """What the server holds of one client: for each step the slot and messages of the last complete exchange."""

    held: dict[str, tuple[int, Exchange]] = field(default_factory=dict)


class Frame(NamedTuple):
    """A message on its way, as both ends will hold it."""

    encoded: Encoded
    message: Message
    counts: dict[str, Counts]

    @classmethod
    def of(cls, encoded: Encoded, message: Message) -> Frame:
        return cls(encoded, message, wire.count_fields(message, encoded))

    def behind(self, slot: bytes) -> Frame:
        """With what goes before it."""
        encoded = Encoded(slot + self.encoded.data, self.encoded.fields)
        return Frame(encoded, self.message, self.counts | {ENVELOPE: Counts(encoded.envelope_bytes)})


class BaseFleet:
    """A fleet says where clients live (`_perform`, `_evaluate`, `_save_clients` …); everything else is here."""

    def __init__(self, home: Home, conditions: Conditions, on_progress: Callable[[str, int, int], None]) -> None:
        self.home, self.conditions, self._on_progress = home, conditions, on_progress
        self.averaging = conditions.averaging
        self.everyone: Sequence[ClientId] = range(home.task.n_clients)
        self._links: Store[Link] = Store(home.folder, "link", self._freeze, self._thaw, on_disk=home.on_disk)
        self.begin(0)

    # ------------------------------------------------------------ a round
    def begin(self, round: int) -> None:
        """A new round: who takes part, fresh streams, an empty ledger."""
        self.round, self._call = round, 0
        self.rng = stream(self.home.seed, SERVER, round)
        n_sampled = max(1, int(self.conditions.participation * len(self.everyone) + 0.5))
        chosen = stream(self.home.seed, SAMPLE, round).choice(len(self.everyone), n_sampled, replace=False)
        self.sampled: Sequence[ClientId] = sorted(map(int, chosen))
        self.ledger = Ledger()
        self.notes: dict[str, float] = {}
        self.pair_notes: dict[str, tuple[list[ClientId], NDArray[np.float64]]] = {}
        self.matrix_notes: dict[str, tuple[str, str, NDArray[np.floating[Any]]]] = {}
        self.client_notes: dict[ClientId, dict[str, float]] = {}
        self.replied: set[ClientId] = set()
        self.n_lost = 0
        self.refused: list[str] = []  # replies that were no sound messages, in words
        self.spent: Counter[ClientId] = Counter()  # bytes both ways

    def note(self, **numbers: float) -> None:
        self.notes |= {name: float(number) for name, number in numbers.items()}

    def note_pairs(self, clients: Sequence[ClientId], **matrices: NDArray[np.float64]) -> None:
        for name, matrix in matrices.items():
            if matrix.shape != (len(clients), len(clients)):
                raise ValueError(
                    f"{name} is {matrix.shape}; a row and a column for each of {len(clients)} clients are due"
                )
            self.pair_notes[name] = (list(clients), matrix)

    def note_matrix(self, down: str, across: str, **matrices: NDArray[np.floating[Any]]) -> None:
        self.matrix_notes |= {name: (down, across, matrix) for name, matrix in matrices.items()}

    def ask(
        self,
        step: Callable[[Any, M, Site], R],
        messages: Mapping[ClientId, M],
        at_least: int = 1,
        check: Callable[[M, Any], None] | None = None,
        against: Callable[[ClientId], Any] | None = None,
    ) -> dict[ClientId, R]:
        known = self._step(step)
        self._call += 1
        links = {client: self._links.get(client) or Link() for client in self._check_clients(messages)}
        sent = self._encode(known, {client: messages[client] for client in links}, links)
        requests = []
        for client, frame in sent.items():
            self._record(Hop(self.round, known.name, "down", client), frame)
            requests.append(Request(known.name, client, self.round, self._call, frame.encoded.data))
        replies: dict[ClientId, Any] = {}
        answers: dict[ClientId, Frame | Exception | None] = {}

        def read(reply: Reply) -> None:
            """As it comes, while other clients are still at work."""
            _, held = links[reply.client].held.get(known.name, (None, NONE_YET))
            try:
                base = against(reply.client) if against is not None else held.up
                answer = self._decode(known, reply.encoded.data, base)
                if check is not None and answer is not None:
                    check(messages[reply.client], answer)
                answers[reply.client] = (
                    None if answer is None else Frame.of(self._itemise(reply.encoded, answer, base), answer)
                )
            except (WireError, ValueError) as error:  # what one client sends must not stop the others
                answers[reply.client] = error

        for reply in self._gather(requests, read):
            client, link, got = reply.client, links[reply.client], answers[reply.client]
            agreed, before = link.held.get(known.name, (None, NONE_YET))
            hop = Hop(self.round, known.name, "up", client)
            if isinstance(got, Exception):
                self._refuse(hop, reply.encoded.data, str(got))
                continue
            if got is not None:
                self._record(hop, got)
            if not self._is_lost(client):
                replies[client] = answer = got and got.message
                link.held[known.name] = (free_slot(agreed), before.after(sent[client].message, answer))
                self._links.put(client, link)
        self.n_lost += len(requests) - len(replies)
        self.replied |= replies.keys()
        if len(replies) < at_least:
            raise TooFew(f"{len(replies)} of {len(requests)} clients replied to {known.name}; {at_least} are needed")
        return {client: replies[client] for client in sorted(replies)}

    def gossip(
        self,
        publish: Callable[[Any, Message, Site], M],
        absorb: Callable[[Any, dict[ClientId, M], Site], None],
        neighbours: Mapping[ClientId, Sequence[ClientId]],
    ) -> None:
        published, absorbed = self._step(publish), self._step(absorb)
        self._call += 1
        senders = self._check_clients({sender for heard in neighbours.values() for sender in heard})
        publishing = [Request(published.name, client, self.round, self._call, is_published=True) for client in senders]
        frames = {}
        for reply in self._gather(publishing):
            try:
                answer = self._decode(published, reply.encoded.data, None)
            except (WireError, ValueError) as error:
                self._refuse(Hop(self.round, published.name, "up", reply.client), reply.encoded.data, str(error))
                continue
            if answer is not None:
                frames[reply.client] = Frame.of(self._itemise(reply.encoded, answer, None), answer)
        self._call += 1
        absorbing = []
        for receiver in self._check_clients(neighbours):
            arrived = {}
            for sender in sorted(set(neighbours[receiver]) & frames.keys()):
                self._record(Hop(self.round, published.name, "peer", sender, receiver), frames[sender])
                if self._is_lost(sender, receiver):
                    self.n_lost += 1
                else:
                    arrived[sender] = frames[sender].encoded.data
            absorbing.append(Request(absorbed.name, receiver, self.round, self._call, heard=arrived))
        self.replied |= {reply.client for reply in self._gather(absorbing)}

    def evaluate(self) -> list[Score]:
        """Every client's model on its own test examples."""
        return self._watch(self._evaluate(self.everyone, self.round), "evaluate", len(self.everyone))

    # ------------------------------------------------------------ checkpoints
    def save(self) -> dict[str, dict[int, str]]:
        """The files in which links and clients are safe."""
        return {"links": self._links.save(self.round), "clients": self._save_clients(self.round)}

    def settle(self) -> None:
        self._links.settle(self.round)
        self._settle_clients(self.round)

    def open(self, files: Mapping[str, dict[int, str]], round: int) -> None:
        self._links.open(files["links"], round)
        self._open_clients(files["clients"], round)

    # ------------------------------------------------------------ where steps run
    @abstractmethod
    def _perform(self, requests: Sequence[Request]) -> Generator[Reply]:
        """Replies as they come."""

    @abstractmethod
    def _evaluate(self, clients: Sequence[ClientId], round: int) -> Generator[Score]: ...

    @abstractmethod
    def _save_clients(self, round: int) -> dict[int, str]: ...

    @abstractmethod
    def _settle_clients(self, round: int) -> None: ...

    @abstractmethod
    def _open_clients(self, files: dict[int, str], round: int) -> None: ...

    def replace_lost(self) -> None:  # a fleet without workers loses none
        """After WorkerLost: all workers are there again, but know of no client until a checkpoint is opened."""

    @abstractmethod
    def close(self) -> None: ...

    # ------------------------------------------------------------ pieces
    def _step(self, step: Callable[..., Any]) -> Step:
        owner = getattr(step, "__self__", None)
        if owner != self.home.algorithm:
            raise ValueError(f"{step!r} is no step of {self.home.algorithm!r}; pass self.some_step")
        return step_of(type(self.home.algorithm), step.__name__)

    def _check_clients(self, clients: Iterable[ClientId]) -> list[ClientId]:
        chosen = sorted(clients)
        if strangers := set(chosen) - set(self.everyone):
            raise ValueError(
                f"there are no clients {sorted(strangers)}; they are numbered 0 to {len(self.everyone) - 1}"
            )
        return chosen

    def _encode(
        self, step: Step, messages: Mapping[ClientId, Message], links: Mapping[ClientId, Link]
    ) -> dict[ClientId, Frame]:
        """A message that goes to many is encoded once, and its bytes are held once; different ones side by side."""

        def encode(message: Message, base: Message | None) -> Frame:
            if type(message) is not step.message:
                raise TypeError(
                    f"{step.name} got a {type(message).__name__}; its annotation says {step.message.__name__}"
                )
            kept = message.snapshot()
            return Frame.of(wire.encode_detailed(kept, base) if message.schema else NOTHING, kept)

        jobs, keys = {}, {}
        for client, message in messages.items():
            agreed, held = links[client].held.get(step.name, (None, NONE_YET))
            key = (id(message), id(held.down))
            keys[client], jobs[key] = (key, agreed), (message, held.down)
        with ThreadPoolExecutor(min(len(jobs), os.cpu_count() or 1) or 1) as pool:
            frames = dict(zip(jobs, pool.map(encode, *zip(*jobs.values(), strict=True)), strict=True)) if jobs else {}
        slotted = {(key, agreed): frames[key].behind(write_slot(step, agreed)) for key, agreed in set(keys.values())}
        return {client: slotted[key] for client, key in keys.items()}

    def _decode(self, step: Step, data: bytes, base: Message | None) -> Message | None:
        """WireError or ValueError for what no honest client sends."""
        if step.reply is None or (not data and step.may_be_silent):
            if data:
                raise ValueError(f"{len(data)} bytes came, none were due")
            return None
        limits = self._largest.get(step.reply)
        if limits and len(data) > limits.n_bytes:
            raise ValueError(f"{len(data)} bytes came, at most {limits.n_bytes} were due")
        answer = wire.decode(step.reply, data, base).snapshot()
        check_sound(answer, limits)
        return answer

    def _itemise(self, encoded: Encoded, answer: Message, base: Message | None) -> Encoded:
        """With the bytes of each field, which a reply from another machine does not tell."""
        if encoded.fields:
            return encoded
        again = wire.encode_detailed(answer, base)
        return again if again.data == encoded.data else encoded

    @cached_property
    def _largest(self) -> dict[type[Message], Limits]:
        return find_limits(self.home.algorithm.costliest_round(self.home.task) or ())

    def _refuse(self, hop: Hop, data: bytes, why: str) -> None:
        """What came is counted, but not against the budget: else one liar could end the run."""
        self.ledger.record(hop, wire.EMPTY, Encoded(data, {}))
        self.refused.append(f"round {hop.round}, client {hop.client}: reply to {hop.step} refused ({why})")

    def _record(self, hop: Hop, frame: Frame) -> None:
        self.ledger.record(hop, frame.message, frame.encoded, frame.counts)
        for client in (hop.client, hop.peer):
            if client is None:
                continue
            self.spent[client] += len(frame.encoded.data)
            limit = self.conditions.budget_bytes
            if limit is not None and self.spent[client] > limit:
                raise OverBudget(
                    f"round {hop.round}, client {client}: {hop.step} brings its bytes to {self.spent[client]}, "
                    f"the budget is {limit}"
                )

    def _gather(self, requests: Sequence[Request], read: Callable[[Reply], None] = lambda reply: None) -> list[Reply]:
        """By client, so that the ledger does not depend on who was first; read: of each as it comes."""
        if not requests:
            return []
        replies = self._watch(self._perform(requests), requests[0].step, len(requests), read)
        for reply in replies:
            if reply.notes:
                self.client_notes.setdefault(reply.client, {}).update(reply.notes)
        return replies

    def _watch(
        self, results: Generator[T], what: str, n_due: int, read: Callable[[T], None] = lambda result: None
    ) -> list[T]:
        """All of them in order of client; those who watch hear of each."""
        self._on_progress(what, 0, n_due)
        done = []
        with closing(results):
            for result in results:
                done.append(result)
                read(result)
                self._on_progress(what, len(done), n_due)
        return sorted(done, key=lambda result: result.client)

    def _is_lost(self, *who: ClientId) -> bool:
        rate = self.conditions.lost_replies
        return rate > 0 and bool(stream(self.home.seed, LOSS, self.round, self._call, *who).random() < rate)

    def _freeze(self, link: Link) -> bytes:
        held = {
            f"{step}/{way}": getattr(exchange, way)
            for step, (_, exchange) in link.held.items()
            for way in Exchange._fields
        }
        return freeze({"slots": {step: slot for step, (slot, _) in link.held.items()}} | held)

    def _thaw(self, _: ClientId, data: bytes) -> Link:
        frozen = Frozen(data)
        slots = frozen.thaw({"slots": dict[str, int]})["slots"]
        link = Link()
        for name, slot in slots.items():
            step = step_of(type(self.home.algorithm), name)
            kinds = {f"{name}/down": optional(step.message), f"{name}/up": optional(step.reply)}
            link.held[name] = (slot, Exchange(*(found and found.snapshot() for found in frozen.thaw(kinds).values())))
        return link
