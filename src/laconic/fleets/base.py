"""What all fleets share: who takes part, random streams, encode → ledger → decode, lost replies, the byte budget."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from laconic import wire
from laconic.aggregate import Averaging
from laconic.algorithm import ClientId, Coded, Expect, M, R, Site, Step, TooFew, step_of
from laconic.fleets.host import LOSS, SAMPLE, SERVER, Home, Reply, Request, Score, stream
from laconic.fleets.notes import check_notes, read_notes
from laconic.fleets.session import Frame, ServerEnd, encode_requests
from laconic.fleets.store import Store
from laconic.wire import NOTES, Counts, Encoded, Expected, Hop, Ledger, Message

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


class BaseFleet(ABC):
    """A fleet says where clients live (`_perform`, `_evaluate`, `_save_clients` …); everything else is here."""

    def __init__(self, home: Home, conditions: Conditions, on_progress: Callable[[str, int, int], None]) -> None:
        self.home, self.conditions, self._on_progress = home, conditions, on_progress
        self.task, self.averaging = home.task, conditions.averaging
        self.everyone: Sequence[ClientId] = range(home.task.n_clients)
        self.barred: set[ClientId] = set()  # who spoiled a round, and is not asked again
        thaw = partial(ServerEnd.thaw, type(home.algorithm))
        self._ends: Store[ServerEnd] = Store(home.folder, "link", ServerEnd.freeze, thaw, on_disk=home.on_disk)
        self.begin(0)

    # ------------------------------------------------------------ a round
    def begin(self, round: int) -> None:
        """A new round: who takes part, fresh streams, an empty ledger."""
        self.round, self._call = round, 0
        self.rng = stream(self.home.seed, SERVER, round)
        candidates = self._list_candidates()
        n_sampled = min(max(1, int(self.conditions.participation * len(self.everyone) + 0.5)), len(candidates))
        chosen = stream(self.home.seed, SAMPLE, round).choice(len(candidates), n_sampled, replace=False)
        self.sampled: Sequence[ClientId] = sorted(candidates[number] for number in chosen)
        self.ledger = Ledger()
        self.notes: dict[str, float] = {}
        self.pair_notes: dict[str, tuple[list[ClientId], NDArray[np.float64]]] = {}
        self.matrix_notes: dict[str, tuple[str, str, NDArray[np.floating[Any]]]] = {}
        self.client_notes: dict[ClientId, dict[str, float]] = {}
        self.dropped: list[str] = []  # notes of clients that were no sound ones, in words
        self.replied: set[ClientId] = set()
        self.n_lost = 0
        self.refused: list[str] = []  # replies that were no sound messages, in words
        self.heard: list[tuple[str, dict[ClientId, Any]]] = []  # replies to each call, by step
        self.spent: Counter[ClientId] = Counter()  # bytes both ways
        self.unreached: set[ClientId] = set()  # by the last requests: real nodes that were away

    def note(self, **numbers: float) -> None:
        self.notes |= {name: float(number) for name, number in numbers.items()}

    def note_pairs(self, clients: Sequence[ClientId], **matrices: NDArray[np.float64]) -> None:
        for name, matrix in matrices.items():
            if matrix.shape != (len(clients), len(clients)):
                raise ValueError(
                    f"{name} is {matrix.shape}; a row and a column for each of {len(clients)} clients were expected"
                )
            self.pair_notes[name] = (list(clients), matrix)

    def note_matrix(self, down: str, across: str, **matrices: NDArray[np.floating[Any]]) -> None:
        self.matrix_notes |= {name: (down, across, matrix) for name, matrix in matrices.items()}

    def ask(
        self,
        step: Callable[[Any, M, Site], R | Coded[R]],
        messages: Mapping[ClientId, M],
        at_least: int = 1,
        expect: Expect[M] | None = None,
        check: Callable[[M, Any], None] | None = None,
        against: Callable[[ClientId], Any] | None = None,
    ) -> dict[ClientId, R]:
        known = self._step(step)
        self._call += 1
        asked = [client for client in self._check_clients(messages) if client not in self.barred]
        ends, first_row = {client: self._ends.get(client) or ServerEnd() for client in asked}, len(self.ledger)
        sent = encode_requests(known, {client: messages[client] for client in ends}, ends)
        for client, frame in sent.items():
            self._record(Hop(self.round, known.name, "down", client), frame)
        requests = [
            Request(known.name, client, self.round, self._call, frame.encoded.data) for client, frame in sent.items()
        ]
        answers: dict[ClientId, Frame | Exception | None] = {}

        def read(reply: Reply) -> None:
            """As it comes, while other clients are still at work. What one client sends must not stop the others."""
            client = reply.client
            try:
                base = ends[client].last(known).up if against is None else against(client)
                expected = expect(messages[client]) if callable(expect) else expect
                answers[client] = frame = self._read(known, reply.encoded, base, expected)
                if check is not None and frame is not None:
                    check(messages[client], frame.message)
            except Exception as error:
                answers[client] = error

        replies: dict[ClientId, Any] = {}
        gathered = self._gather(requests, read)
        self._take_back(first_row)
        for reply in gathered:
            client, answer = reply.client, answers[reply.client]
            hop = Hop(self.round, known.name, "up", client)
            if isinstance(answer, Exception):
                self._refuse(hop, reply.encoded.data, str(answer))
                continue
            if answer is not None:
                self._record(hop, answer)
            if not self._is_lost(client):
                replies[client] = told = answer and answer.message
                ends[client].complete(known, sent[client].message, told)
                self._ends.put(client, ends[client])
        self.n_lost += len(requests) - len(replies)
        self.replied |= replies.keys()
        self.heard.append((known.name, replies))
        if len(replies) < at_least:
            raise TooFew(f"{len(replies)} of {len(requests)} clients replied to {known.name}; {at_least} are needed")
        return {client: replies[client] for client in sorted(replies)}

    def gossip(
        self,
        publish: Callable[[Any, Message, Site], M],
        absorb: Callable[[Any, dict[ClientId, M], Site], None],
        neighbours: Mapping[ClientId, Sequence[ClientId]],
        expect: Expected | None = None,
        check: Callable[[M], None] | None = None,
    ) -> None:
        published, absorbed = self._step(publish), self._step(absorb)
        self._call += 1
        senders = self._check_clients({sender for heard in neighbours.values() for sender in heard})
        publishing = [Request(published.name, client, self.round, self._call, is_published=True) for client in senders]
        frames = {}
        for reply in self._gather(publishing):
            try:
                frame = self._read(published, reply.encoded, None, expect)
                if check is not None and frame is not None:
                    check(cast(M, frame.message))
            except Exception as error:
                self._refuse(Hop(self.round, published.name, "up", reply.client), reply.encoded.data, str(error))
                continue
            if frame is not None:
                frames[reply.client] = frame
        self._call += 1
        absorbing, first_row = [], len(self.ledger)
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
        self._take_back(first_row)

    def evaluate(self) -> list[Score]:
        """Every client's model on its own test examples."""
        return self._watch(self._evaluate(self.everyone, self.round), "evaluate", len(self.everyone))

    # ------------------------------------------------------------ checkpoints
    def save(self) -> dict[str, dict[int, str]]:
        """The files in which links and clients are safe."""
        return {"links": self._ends.save(self.round), "clients": self._save_clients(self.round)}

    def settle(self) -> None:
        self._ends.settle(self.round)
        self._settle_clients(self.round)

    def open(self, files: Mapping[str, dict[int, str]], round: int) -> None:
        self._ends.open(files["links"], round)
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

    def replace_lost(self) -> None:  # noqa: B027  # a fleet without workers loses none
        """After WorkerLost: all workers are there again, but know of no client until a checkpoint is opened."""

    @abstractmethod
    def close(self) -> None: ...

    # ------------------------------------------------------------ pieces
    def _list_candidates(self) -> Sequence[ClientId]:
        """Of whom some are sampled for a round."""
        return self.everyone

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

    def _read(self, step: Step, encoded: Encoded, base: Message | None, expected: Expected | None) -> Frame | None:
        """None: the client had nothing to say. WireError or ValueError for what no honest client sends."""
        data = encoded.data
        if step.reply is None or (not data and step.may_be_silent):
            if data:
                raise ValueError(f"{len(data)} bytes came, none were expected")
            return None
        most_bytes = wire.most_bytes(step.reply, expected or {})
        if len(data) > most_bytes:
            raise ValueError(f"{len(data)} bytes came, at most {most_bytes:.0f} were expected")
        is_itemised = bool(encoded.fields)  # a reply from another machine does not tell the bytes of each field
        message, detailed = wire.decode_detailed(
            step.reply, data, base, expected=expected, must_be_finite=True, itemise=not is_itemised
        )
        return Frame.of(encoded if is_itemised else detailed, message.snapshot())

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

    def _take_back(self, first_row: int) -> None:
        """What was addressed to who was away all the time has cost nobody anything."""
        if self.unreached:
            self.spent.subtract(self.ledger.strike(self.unreached, first_row))

    def _gather(self, requests: Sequence[Request], read: Callable[[Reply], None] = lambda reply: None) -> list[Reply]:
        """By client, so that the ledger does not depend on who was first; read: of each as it comes."""
        if not requests:
            return []
        replies = self._watch(self._perform(requests), requests[0].step, len(requests), read)
        for reply in replies:
            self._take_notes(Hop(self.round, requests[0].step, "up", reply.client), reply)
        return replies

    def _take_notes(self, hop: Hop, reply: Reply) -> None:
        """What the method declares. Those that travelled are counted; unsound ones are dropped, not their reply."""
        declared, n_classes, carried = self.home.algorithm.client_notes, self.task.n_classes, reply.carried_notes
        if not reply.notes and carried == b"":
            return
        if isinstance(carried, bytes) and carried:
            self.ledger.record(hop, wire.EMPTY, Encoded(b"", {}), {NOTES: Counts(len(carried))})
        try:
            check_notes(reply.notes, declared, n_classes)
            notes = reply.notes | read_notes(carried, declared, n_classes)
            if carried and self.conditions.budget_bytes is not None:
                raise ValueError("the byte budget leaves no room for them")
        except ValueError as error:
            self.dropped.append(f"round {hop.round}, client {hop.client}: notes of {hop.step} dropped ({error})")
            return
        if carried:
            self.spent[reply.client] += len(carried)
        self.client_notes.setdefault(reply.client, {}).update(notes)

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
