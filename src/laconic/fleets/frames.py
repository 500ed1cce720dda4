"""What travels between a server and a node over MQTT: a head of about ten bytes, then what the ledger counts.

    request   run, kind, attempt, round, call, lag | body
    reply     run, attempt, round, call, outcome and to what, bytes on the socket | body

A run is two bytes of its id, an outcome one; all other numbers take a byte while they are below 128.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from laconic.algorithm import ClientId
from laconic.fleets.host import Request, Score
from laconic.wire.message import MOST_COUNT

BEGIN, END, EVALUATE, SKETCH, THRESHOLDS = range(5)  # kinds of requests; steps of the method come behind them
STEP, FIRST_STEP = 7, 8  # what a reply calls all steps
ASKED, PUBLISHED, HEARD = range(3)  # what a step gets: a message, nothing, or what its neighbours published
MOST_FURTHER, MOST_NAME = 20, 40  # predictions that a client is also tested on; characters of the name of one
MOST_WORDS = 300  # characters of what a node says


class Outcome(IntEnum):
    DONE = 0
    REFUSED = 1  # this request; why, in words
    UNKNOWN = 2  # the node has not heard of the run, or not all of it
    UNFIT = 3  # the node cannot take part in the run at all; why, in words


class Sent(NamedTuple):
    """Bytes of a node's socket."""

    up: int = 0
    down: int = 0

    def plus(self, other: Sent) -> Sent:
        return Sent(self.up + other.up, self.down + other.down)

    def minus(self, other: Sent) -> Sent:
        return Sent(self.up - other.up, self.down - other.down)


class Head(NamedTuple):
    """Of a request."""

    run: int
    kind: int
    attempt: int
    round: int
    call: int
    lag: int  # rounds since the last one that the server will never take back

    @property
    def place(self) -> tuple[int, int, int, int, int]:
        """What its reply repeats: run, attempt, round, call, and to what it is a reply."""
        return (self.run, self.attempt, self.round, self.call, min(self.kind, STEP))

    def write(self) -> bytes:
        return _write_run(self.run) + write_numbers(self[1:])

    @classmethod
    def read(cls, data: bytes) -> tuple[Head, bytes]:
        numbers, body = read_numbers(data[2:], 5)
        return cls(_read_run(data), *numbers), body


class Answer(NamedTuple):
    """A reply, and what the node's messages, connecting and staying connected took since the one before."""

    run: int
    attempt: int
    round: int
    call: int
    kind: int  # of the request, or STEP
    outcome: Outcome
    exchanged: Sent
    body: bytes
    linked: Sent = Sent()
    idle: Sent = Sent()

    def is_to(self, head: Head) -> bool:
        return self[:5] == head.place

    def write(self) -> bytes:
        news = (*self.linked, *self.idle)
        flag = 0x80 if any(news) else 0
        told = write_numbers((*self.exchanged, *news) if flag else self.exchanged)
        outcome = bytes([self.outcome | self.kind << 2 | flag])
        return _write_run(self.run) + write_numbers(self[1:4]) + outcome + told + self.body

    @classmethod
    def read(cls, data: bytes) -> Answer:
        """ValueError for what no sound node sends."""
        (attempt, number, call), rest = read_numbers(data[2:], 3)
        if not rest or rest[0] & 0x60:
            raise ValueError(f"its outcome is {rest[:1].hex() or 'missing'}; bits 5 and 6 of it are expected to be 0")
        told, body = read_numbers(rest[1:], 6 if rest[0] & 0x80 else 2)
        sent = [Sent(*told[at : at + 2]) for at in range(0, len(told), 2)]
        place, outcome = (_read_run(data), attempt, number, call, rest[0] >> 2 & 7), Outcome(rest[0] & 3)
        return cls(*place, outcome, sent[0], body, *sent[1:])


# ---------------------------------------------------------------- bodies
def write_request(request: Request, steps: Sequence[str]) -> tuple[int, bytes]:
    """Kind and body."""
    form, body = (PUBLISHED if request.is_published else ASKED), request.frame
    if request.heard is not None:
        form, body = HEARD, write_numbers([len(request.heard)])
        for sender, frame in request.heard.items():
            body += write_numbers((sender, len(frame))) + frame
    return FIRST_STEP + 3 * steps.index(request.step) + form, body


def read_request(head: Head, body: bytes, steps: Sequence[str], client: ClientId) -> Request:
    number, form = divmod(head.kind - FIRST_STEP, 3)
    if not 0 <= number < len(steps):
        raise ValueError(
            f"it asks for kind {head.kind}, but the method has {len(steps)} steps; is its version another?"
        )
    place = (steps[number], client, head.round, head.call)
    if form != HEARD:
        return Request(*place, body, is_published=form == PUBLISHED)
    (n_heard,), rest = read_numbers(body, 1)
    heard: dict[ClientId, bytes] = {}
    for _ in range(n_heard):
        (sender, n_bytes), rest = read_numbers(rest, 2)
        heard[sender], rest = rest[:n_bytes], rest[n_bytes:]
    return Request(*place, heard=heard)


def write_reply(data: bytes, notes: bytes) -> bytes:
    return write_numbers([len(notes)]) + notes + data


def read_reply(body: bytes) -> tuple[bytes, bytes]:
    """Data and notes."""
    (n_notes,), rest = read_numbers(body, 1)
    return rest[n_notes:], rest[:n_notes]


def write_score(score: Score) -> bytes:
    body = write_numbers((score.n_test, score.n_correct))
    for name, n_correct in score.also:
        body += write_numbers((n_correct, len(name))) + name.encode()
    return body


def read_score(client: ClientId, body: bytes) -> Score:
    """ValueError for what no sound node sends."""
    (n_test, n_correct), rest = read_numbers(body, 2)
    also = []
    while rest:
        (right, n_letters), rest = read_numbers(rest, 2)
        also.append((rest[:n_letters].decode("ascii", "replace"), right))
        rest = rest[n_letters:]
    return check_score(Score(client, n_test, n_correct, tuple(also)))


def check_score(score: Score) -> Score:
    """ValueError for one beyond belief."""
    if len(score.also) > MOST_FURTHER:
        raise ValueError(f"{len(score.also)} further predictions came, at most {MOST_FURTHER} were expected")
    if not all(isinstance(name, str) and name.isidentifier() and len(name) <= MOST_NAME for name, _ in score.also):
        raise ValueError("a further prediction has no name of letters, digits and _")
    for right in (score.n_correct, *(n_correct for _, n_correct in score.also)):
        if (
            not isinstance(score.n_test, int)
            or not isinstance(right, int)
            or not 0 <= right <= score.n_test <= MOST_COUNT
        ):
            raise ValueError(
                f"{right} right of {score.n_test} test examples; whole numbers up to {MOST_COUNT} were expected"
            )
    return score


# ---------------------------------------------------------------- numbers
def write_numbers(numbers: Sequence[int]) -> bytes:
    """Seven bits a byte, the lowest first; the eighth says that more follow."""
    data = bytearray()
    for rest in numbers:
        while rest > 0x7F:
            data.append(rest & 0x7F | 0x80)
            rest >>= 7  # noqa: PLW2901
        data.append(rest)
    return bytes(data)


def read_numbers(data: bytes, n_numbers: int) -> tuple[list[int], bytes]:
    """And what follows them."""
    numbers, at = [], 0
    for _ in range(n_numbers):
        number = shift = 0
        while True:
            if at >= len(data) or shift > 56:
                raise ValueError(f"{len(data)} bytes came, which end in the midst of a number; is it cut short?")
            number |= (data[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if data[at - 1] < 0x80:
                break
        numbers.append(number)
    return numbers, data[at:]


def _write_run(run: int) -> bytes:
    return run.to_bytes(2, "big")


def _read_run(data: bytes) -> int:
    return int.from_bytes(data[:2], "big")
