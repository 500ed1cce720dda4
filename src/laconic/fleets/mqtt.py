"""Clients on machines of their own, reached through an MQTT broker: `ask` as a message to each node's own topic.

A node has two topics to speak and one to listen: l/NODE/q requests, l/NODE/r replies, l/NODE/s whether it is there.
Who is away gets nothing; at its birth message it is asked again whatever is still open. That is safe, for a node does
no step twice (node.py). A broker that comes back keeps nothing, and all are born anew. A refusal is an answer.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from laconic import wire
from laconic.algorithm import ClientId, M, steps_of
from laconic.fleets.base import Conditions
from laconic.fleets.frames import (
    END,
    EVALUATE,
    MOST_WORDS,
    Answer,
    Head,
    Outcome,
    read_reply,
    read_score,
    write_request,
)
from laconic.fleets.host import Home, Reply, Request, Score
from laconic.fleets.link import Link
from laconic.fleets.remote import RemoteFleet
from laconic.wire import Encoded, Expected, Hop, Ledger, Message

HERE, GONE, ASLEEP = b"\1", b"\0", b"\2"  # what a node's third topic says
LOOK_SECONDS = 0.5  # between looks at who has been away for too long
MOST_UNREAD = 4  # answers of one client; an honest one has two: one that is late, and one that is due
MOST_ODD = 20  # answers that nobody asked for which are named, of each client in a run
PARTING_SECONDS = 3.0  # for nodes to hear that a run is done
MOST_BYTES = 268_435_455  # of a message of MQTT


class Event(NamedTuple):
    """payload None: the node was born, or left."""

    client: ClientId
    payload: bytes | None = None


@dataclass
class Board:
    """Who is there, and what came in; filled by the connection's thread, read by the one that drives the run.

    Whatever nodes send while nobody reads, of each no more than a few messages are kept.
    """

    n_clients: int
    here: set[ClientId] = field(default_factory=set)
    left: dict[ClientId, float] = field(default_factory=dict)  # when, by time.monotonic
    asleep: set[ClientId] = field(default_factory=set)
    started: float = field(default_factory=time.monotonic)
    _events: queue.SimpleQueue[Event] = field(default_factory=queue.SimpleQueue)
    _unread: Counter[tuple[ClientId, bool]] = field(default_factory=Counter)  # births and answers of each client
    _surplus: Counter[ClientId] = field(default_factory=Counter)  # answers that were not kept
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def hear(self, topic: str, payload: bytes) -> None:
        _, name, way = topic.split("/")
        if not name.isdigit() or not (client := int(name)) < self.n_clients:
            return
        if way == "r":
            self._put(Event(client, payload), MOST_UNREAD)
            return
        (self.here.add if payload == HERE else self.here.discard)(client)
        (self.asleep.add if payload == ASLEEP else self.asleep.discard)(client)
        if payload != HERE:
            self.left[client] = time.monotonic()
        self._put(Event(client), 1)  # whoever reads it looks at what is so by then

    def _put(self, event: Event, most: int) -> None:
        is_answer = event.payload is not None
        with self._lock:
            if self._unread[event.client, is_answer] >= most:
                self._surplus[event.client] += is_answer
                return
            self._unread[event.client, is_answer] += 1
        self._events.put(event)

    def take(self, wait_seconds: float = 0) -> Event | None:
        """The next event; None if there is none in time."""
        try:
            event = self._events.get(timeout=wait_seconds)
        except queue.Empty:
            return None
        with self._lock:
            self._unread[event.client, event.payload is not None] -= 1
        return event

    def take_surplus(self) -> dict[ClientId, int]:
        """How many answers of whom were not kept, since the last look."""
        with self._lock:
            surplus, self._surplus = self._surplus, Counter()
        return {client: n_answers for client, n_answers in sorted(surplus.items()) if n_answers}

    def empty(self) -> set[ClientId]:
        """Who answered, though nobody waits for it; it is forgotten."""
        strays = {*self.take_surplus()}
        while (event := self.take()) is not None:
            if event.payload is not None:
                strays.add(event.client)
        return strays

    def lose_broker(self) -> None:
        """Who is there is not known any more; nobody is to blame for being away meanwhile."""
        self.left |= dict.fromkeys(self.here, math.inf)
        self.here.clear()

    def find_broker(self) -> None:
        """Births that it retained follow."""
        now = time.monotonic()
        self.left = {client: min(since, now) for client, since in self.left.items()}


@dataclass(frozen=True)
class Post:
    """How requests reach the clients."""

    link: Link
    board: Board
    run: int  # two bytes of its id
    attempt: int  # how often the server has started this run
    describe: Callable[[], list[tuple[int, bytes]]]  # kinds and bodies of what a node must know of the run
    wait_seconds: float  # for a node that is there to reply; who takes longer is lost
    absent_seconds: float  # for a node that has left to return; who stays away longer is not waited for
    say: Callable[[str], None]
    most_bytes: int = MOST_BYTES  # that an answer in this run may have
    weighed: Callable[[int, ClientId, Answer], object] = lambda number, client, answer: None
    counted: Callable[[Ledger], object] = lambda ledger: None  # of a round that is over
    prelude: Callable[[MqttFleet], object] = lambda fleet: None  # what is asked before the method starts


class MqttFleet(RemoteFleet):
    def __init__(
        self, home: Home, conditions: Conditions, on_progress: Callable[[str, int, int], None], post: Post
    ) -> None:
        self.post, self._steps = post, [step.name for step in steps_of(type(home.algorithm))]
        self._silent: set[ClientId] = set()  # there, but did not reply in time: not waited for until heard of
        self._told = set(range(home.task.n_clients)) if post.attempt > 1 else set()  # what the run is
        self._unfit: set[ClientId] = set()  # who could not take part when last heard of
        self._fit: set[ClientId] = set()  # who could; the run goes on for them, here or away
        self._odd: Counter[ClientId] = Counter()  # answers that nobody asked for
        self._last: dict[ClientId, int] = {}  # hash of what each answered last
        self._is_open = False
        super().__init__(home, conditions, on_progress)
        self._is_open = True

    def _list_candidates(self) -> Sequence[ClientId]:
        """Of thousands of nodes few may be there."""
        return [client for client in self.everyone if self._is_expected(client)] or self.everyone

    def _perform(self, requests: Sequence[Request]) -> Generator[Reply]:
        step = requests[0].step
        bodies = {request.client: write_request(request, self._steps) for request in requests}
        for client, body in self._exchange(step, bodies, requests[0].call):
            try:
                data, notes = read_reply(body)
            except ValueError as error:
                self._refuse_answer(client, step, error)
            else:
                yield Reply(client, Encoded(data, {}), {}, notes)

    def _evaluate(self, clients: Sequence[ClientId], round: int) -> Generator[Score]:
        for client, body in self._exchange("evaluate", dict.fromkeys(clients, (EVALUATE, b"")), 0):
            try:
                yield read_score(client, body)
            except ValueError as error:
                self._refuse_answer(client, "evaluate", error)

    def begin(self, round: int) -> None:
        if self._is_open:
            self.post.counted(self.ledger)
        super().begin(round)
        if round == 0 and self._is_open:
            self.post.prelude(self)

    def survey(self, kind: int, what: str, reply: type[M], expected: Expected) -> dict[ClientId, M]:
        """What everyone says to a question that is no step of the method; in the ledger it is as one."""
        replies: dict[ClientId, M] = {}
        for client, body in self._exchange(what, dict.fromkeys(self.everyone, (kind, b"")), 0):
            try:
                message, encoded = wire.decode_detailed(reply, body, expected=expected, must_be_finite=True)
            except ValueError as error:
                self._refuse_answer(client, what, error)
            else:
                self.ledger.record(Hop(self.round, what, "up", client), message, encoded)
                replies[client] = message
        return dict(sorted(replies.items()))

    def announce(self, kind: int, what: str, message: Message) -> None:
        """To everyone who knows of the run and is there; who does not will be told with the rest of it."""
        encoded = wire.encode_detailed(message)
        head = Head(self.post.run, kind, self.post.attempt, self.round, 0, self.round - self._settled)
        for client in sorted(self._told & self.post.board.here):
            self.ledger.record(Hop(self.round, what, "down", client), message, encoded)
            self.post.link.publish(f"l/{client:03d}/q", head.write() + encoded.data)

    def part(self) -> None:
        """The run is done: who is there hears of it, and tells what its last messages cost."""
        self.post.counted(self.ledger)
        here = dict.fromkeys(self.post.board.here, (END, b""))
        with suppress(ValueError):  # nothing that a node says now undoes a run
            for _ in self._exchange("end", here, 0, PARTING_SECONDS):
                pass

    # ------------------------------------------------------------ one exchange
    def _exchange(
        self, what: str, bodies: Mapping[ClientId, tuple[int, bytes]], call: int, wait_seconds: float = 0
    ) -> Generator[tuple[ClientId, bytes]]:
        """Bodies of replies as they come; who refuses is named. ValueError if nobody can take part in the run."""
        post, waiting = self.post, set(bodies)
        deadline, next_look = time.monotonic() + (wait_seconds or post.wait_seconds), 0.0
        place = (post.attempt, self.round, call, self.round - self._settled)
        heads = {client: Head(post.run, kind, *place) for client, (kind, _) in bodies.items()}
        reached: set[ClientId] = set()
        outcomes: dict[ClientId, Outcome] = {}
        words: dict[ClientId, str] = {}

        def send(clients: set[ClientId]) -> None:
            for client in sorted(clients & waiting & post.board.here):
                for kind, body in [] if client in self._told else post.describe():
                    post.link.publish(f"l/{client:03d}/q", Head(post.run, kind, *place).write() + body)
                self._told.add(client)
                reached.add(client)
                post.link.publish(f"l/{client:03d}/q", heads[client].write() + bodies[client][1])

        self._forget_events()
        send(waiting)
        while waiting:
            if time.monotonic() >= next_look or waiting.isdisjoint(post.board.here):
                if self._is_over(what, waiting, deadline, has_answers=bool(outcomes)):
                    break
                next_look = time.monotonic() + LOOK_SECONDS
            event = post.board.take(LOOK_SECONDS)
            if event is None:
                continue
            client, payload = event
            if payload is None:
                send({client})
                continue
            try:
                answer = self._read_answer(client, payload)
            except ValueError as error:
                if client in waiting:  # whoever was not asked is not heard, however often it talks
                    waiting.discard(client)
                    self._refuse_answer(client, what, error)
                continue
            if client not in waiting or not answer.is_to(heads[client]):
                self._tell_odd(what, client, answer)
            elif answer.outcome is Outcome.UNKNOWN and client not in outcomes:
                outcomes[client] = Outcome.UNKNOWN
                self._told.discard(client)
                send({client})
            else:
                waiting.discard(client)
                outcomes[client] = answer.outcome
                is_unfit = answer.outcome is Outcome.UNFIT
                (self._unfit.add if is_unfit else self._unfit.discard)(client)
                (self._fit.discard if is_unfit else self._fit.add)(client)
                if answer.outcome is Outcome.DONE:
                    yield client, answer.body
                else:
                    words[client] = answer.body.decode("utf-8", "replace")[:MOST_WORDS]
                    self._refuse_reply(client, what, ValueError(f"the node says: {words[client]}"))
        self.unreached = bodies.keys() - reached
        if outcomes and not self._fit and {*outcomes, *post.board.here} <= self._unfit:
            said = "; ".join(f"client {client}: {why}" for client, why in sorted(words.items())[:3])
            raise ValueError(f"none of the {len(words)} nodes that answered can take part: {said}")

    def _forget_events(self) -> None:
        """Of before this exchange: who is there is known, and nobody waits for what came late."""
        while (event := self.post.board.take()) is not None:
            if event.payload is not None:
                with suppress(ValueError):
                    self._tell_odd("between requests", event.client, self._read_answer(event.client, event.payload))
        for client, n_answers in self.post.board.take_surplus().items():
            self._leave_aside(client, f"client {client} sent {n_answers} answers before {MOST_UNREAD} others were read")

    def _read_answer(self, client: ClientId, payload: bytes) -> Answer:
        """ValueError for what no sound node sends. What it says of its socket counts, once."""
        self._silent.discard(client)
        if len(payload) > self.post.most_bytes:
            raise ValueError(f"{len(payload)} bytes came, no answer in this run has more than {self.post.most_bytes}")
        answer = Answer.read(payload)
        if hash(payload) != self._last.get(client):  # one that was under way as a connection broke may come twice
            self._last[client] = hash(payload)
            self.post.weighed(self.round, client, answer)
        return answer

    def _tell_odd(self, what: str, client: ClientId, answer: Answer) -> None:
        """Late, replayed, of another run."""
        asked = f"round {answer.round}, call {answer.call}"
        if answer.run != self.post.run:
            asked += f" of run {answer.run:04x}, and this is {self.post.run:04x}"
        elif answer.attempt != self.post.attempt:
            asked += f" of start {answer.attempt} of the server, and this is start {self.post.attempt}"
        self._leave_aside(client, f"{what}: client {client} answers {asked}, which nobody waits for")

    def _leave_aside(self, client: ClientId, words: str) -> None:
        """Named, but not without end."""
        self._odd[client] += 1
        if self._odd[client] <= MOST_ODD:
            last = "; no more is said of such" if self._odd[client] == MOST_ODD else ""
            self.post.say(f"{words}; left aside{last}")

    def _is_over(self, what: str, waiting: set[ClientId], deadline: float, *, has_answers: bool) -> bool:
        """Whether it is time to go on without those who have not answered."""
        expected = [client for client in waiting if self._is_expected(client)]
        if time.monotonic() < deadline and (expected or not has_answers):
            return False
        self._silent |= waiting & self.post.board.here
        missing = sorted(waiting)
        names = ", ".join(map(str, missing[:10])) + (f" and {len(missing) - 10} others" if missing[10:] else "")
        self.post.say(f"{what}: no reply from clients {names}; asked again once they are heard of")
        return True

    def _is_expected(self, client: ClientId) -> bool:
        """Whether it is worth waiting for: it is there, or has not been away for long."""
        board = self.post.board
        if client in board.here:
            return client not in self._silent
        return time.monotonic() < board.left.get(client, board.started) + self.post.absent_seconds
