"""Clients on machines of their own, reached through Flower: `ask` as messages of a Grid, our bytes in a record.

What a client keeps lies in its own files (node.py), so that nothing is lost with one of Flower's processes; a message
that is answered by an error is sent once more, for a step that was already carried out is not carried out again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flwr.app import ConfigRecord, RecordDict
from flwr.app import Message as Letter
from flwr.serverapp import Grid
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects

from laconic.algorithm import ClientId
from laconic.fleets.base import Conditions
from laconic.fleets.frames import check_score
from laconic.fleets.host import Home, Reply, Request, Score
from laconic.fleets.node import Node, Stage
from laconic.fleets.remote import RemoteFleet, evaluate, perform
from laconic.wire import Encoded, WireError

RECORD = "laconic"
POLL_SECONDS = 0.5
SENDINGS = 3  # of a message that is answered by an error
RETURN_SECONDS = 240.0  # for a node that died to be back: Flower holds its place for a minute


@dataclass(frozen=True)
class Post:
    """How letters reach the clients."""

    grid: Grid
    nodes: Mapping[ClientId, int]  # Flower's ids
    attempt: int  # how often the server has started this run
    wait_seconds: float  # for replies to one request; who takes longer is lost
    say: Callable[[str], None]
    weighed: Callable[[dict[str, Any]], object] = lambda row: None  # told of each exchange, see Scales


class Scales:
    """Flower's bytes of one exchange, letters that were sent again and errors among them."""

    def __init__(self) -> None:
        self.n_letters = self.down_bytes = self.up_bytes = 0

    def send(self, letter: Letter) -> None:
        self.n_letters, self.down_bytes = self.n_letters + 1, self.down_bytes + weigh(letter)

    def receive(self, answer: Letter) -> None:
        self.n_letters, self.up_bytes = self.n_letters + 1, self.up_bytes + weigh(answer)


class FlowerFleet(RemoteFleet):
    def __init__(
        self, home: Home, conditions: Conditions, on_progress: Callable[[str, int, int], None], post: Post
    ) -> None:
        if missing := sorted(set(range(home.task.n_clients)) - post.nodes.keys()):
            raise ValueError(f"no node is registered for clients {missing}; there are to be {home.task.n_clients}")
        super().__init__(home, conditions, on_progress)
        self.post = post
        self._away: set[ClientId] = set()  # not asked again before their nodes are back

    def _perform(self, requests: Sequence[Request]) -> Generator[Reply]:
        asked = {request.client: request for request in requests}
        for client, record in self._exchange("train", {client: write_request(r) for client, r in asked.items()}):
            try:
                yield read_reply(asked[client], record)
            except ValueError as error:
                self._refuse_reply(client, asked[client].step, error)

    def _evaluate(self, clients: Sequence[ClientId], round: int) -> Generator[Score]:
        for client, record in self._exchange("evaluate", {client: {"client": client} for client in clients}):
            try:
                yield read_score(client, record)
            except ValueError as error:
                self._refuse_answer(client, "evaluate", error)

    def _exchange(
        self, kind: str, contents: Mapping[ClientId, dict[str, Any]]
    ) -> Generator[tuple[ClientId, ConfigRecord]]:
        """Records that come back in time; replies belong to the message that they answer, whoever signs them."""
        scales = Scales()
        try:
            yield from self._correspond(kind, contents, scales)
        finally:
            self.post.weighed({"round": self.round, "kind": kind} | vars(scales))

    def _correspond(
        self, kind: str, contents: Mapping[ClientId, dict[str, Any]], scales: Scales
    ) -> Generator[tuple[ClientId, ConfigRecord]]:
        stage = Stage(self.post.attempt, self._settled)._asdict() | {"round": self.round}
        deadline, n_sent = time.monotonic() + self.post.wait_seconds, dict.fromkeys(contents, 0)
        waiting: dict[str, ClientId] = {}
        self._await_anyone(set(contents), deadline)
        self._away -= self._find_online()
        to_send = dict.fromkeys(set(contents) - self._away, 0.0)  # client -> until when its node may be away
        while to_send or waiting:
            left = deadline - time.monotonic()
            if left <= 0:
                self.post.say(
                    f"{kind}: no reply within {self.post.wait_seconds:g} s from clients {[*waiting.values()]}"
                )
                return
            for client in self._choose_ready(to_send):
                n_sent[client] += 1
                content = RecordDict({RECORD: ConfigRecord(contents[client] | stage)})
                letter = Letter(content, self.post.nodes[client], kind, ttl=left, group_id=str(self.round))
                scales.send(letter)
                (letter_id,) = self.post.grid.push_messages([letter])
                if letter_id:
                    waiting[letter_id] = client
                else:
                    self.post.say(f"{kind}: the letter to client {client} was not taken; is its node registered?")
            for answer in self.post.grid.pull_messages(list(waiting)) if waiting else ():
                scales.receive(answer)
                addressee = waiting.pop(answer.metadata.reply_to_message_id, None)
                if addressee is None:
                    continue
                if answer.has_error():
                    self.post.say(f"{kind}: client {addressee}: error {answer.error.code} {answer.error.reason}")
                    if n_sent[addressee] < SENDINGS:
                        to_send[addressee] = time.monotonic() + RETURN_SECONDS
                elif isinstance(record := answer.content.get(RECORD), ConfigRecord):
                    yield addressee, record
                else:
                    self._refuse_answer(addressee, kind, ValueError(f"no record called {RECORD} in it"))
            time.sleep(POLL_SECONDS)

    def _await_anyone(self, clients: set[ClientId], deadline: float) -> None:
        """Without anybody to ask, a run would end in void rounds before a network is back."""
        if not clients & self._find_online():
            self.post.say(f"none of the nodes of {len(clients)} clients is there; waiting")
            while not clients & self._find_online() and time.monotonic() < deadline - self.post.wait_seconds / 2:
                time.sleep(POLL_SECONDS)

    def _choose_ready(self, to_send: dict[ClientId, float]) -> list[ClientId]:
        """Takes out those to write to now, and those whose node did not return in time."""
        if not to_send:
            return []
        online, now = self._find_online(), time.monotonic()
        ready = [client for client, until in to_send.items() if client in online or not until]
        gone = {client for client, until in to_send.items() if client not in ready and now > until}
        if gone:
            self.post.say(f"the nodes of clients {sorted(gone)} have gone; they are asked again once they are back")
        self._away |= gone
        for client in [*ready, *gone]:
            del to_send[client]
        return sorted(ready)

    def _find_online(self) -> set[ClientId]:
        online = set(self.post.grid.get_node_ids())
        return {client for client, node in self.post.nodes.items() if node in online}


# ---------------------------------------------------------------- letters
def weigh(letter: Letter) -> int:
    """Bytes of what Flower makes of it, before its own requests, polling and TLS."""
    return sum(len(each.deflate()) for each in get_all_nested_objects(letter).values())


def write_request(request: Request) -> dict[str, Any]:
    """Round and stage are added on sending."""
    content = {"client": request.client, "call": request.call, "step": request.step, "frame": request.frame}
    if request.heard is not None:
        content |= {"senders": list(request.heard), "heard": list(request.heard.values())}
    return content | ({"is_published": True} if request.is_published else {})


def read_request(record: Mapping[str, Any]) -> tuple[Request, Stage]:
    heard = dict(zip(record["senders"], record["heard"], strict=True)) if "heard" in record else None
    place = (record["step"], record["client"], record["round"], record["call"])
    request = Request(*place, record["frame"], heard, record.get("is_published", False))
    return request, Stage(record["attempt"], record["settled"])


def write_reply(request: Request, data: bytes, notes: bytes) -> dict[str, Any]:
    content = {"round": request.round, "call": request.call, "data": data}
    return content | ({"notes": notes} if notes else {})


def read_reply(request: Request, record: Mapping[str, Any]) -> Reply:
    """ValueError for what no sound node sends."""
    if "error" in record:
        raise ValueError(f"the node says: {record['error']!s:.300}")
    place = (record.get("round"), record.get("call"))
    if place != (request.round, request.call):
        raise ValueError(f"it answers round and call {place}, {(request.round, request.call)} were expected; replayed?")
    data = record.get("data")
    if not isinstance(data, bytes):
        raise ValueError(f"data is a {type(data).__name__}, bytes were expected")
    return Reply(request.client, Encoded(data, {}), {}, record.get("notes", b""))


def write_score(score: Score) -> dict[str, Any]:
    content = {"n_test": score.n_test, "n_correct": score.n_correct}
    further = {"names": [name for name, _ in score.also], "also": [n_correct for _, n_correct in score.also]}
    return content | (further if score.also else {})


def read_score(client: ClientId, record: Mapping[str, Any]) -> Score:
    if "error" in record:
        raise ValueError(f"the node says: {record['error']!s:.300}")
    n_test, n_correct, names, also = (record.get(key, []) for key in ("n_test", "n_correct", "names", "also"))
    if not isinstance(names, list) or not isinstance(also, list) or len(names) != len(also):
        raise ValueError("as many numbers as names were expected for further predictions")
    return check_score(Score(client, n_test, n_correct, tuple(zip(names, also, strict=True))))


# ---------------------------------------------------------------- a node's half
def answer(letter: Letter, home: Home, client: ClientId, folder: Path, *, sends_notes: bool = False) -> Letter:
    """What the node of this client says to a letter; folder: of its states in this run.

    sends_notes: what the method notes for the record goes with its replies, else it stays in that folder.
    """
    record = letter.content[RECORD]
    assert isinstance(record, ConfigRecord)
    try:
        if record["client"] != client:
            raise ValueError(f"this is the node of client {client}, not of {record['client']!r}")
        node = Node(home, client, folder)
        if letter.metadata.message_type == "evaluate":
            stage = Stage(record["attempt"], record["settled"])
            content = write_score(evaluate(node, record["round"], stage))
        else:
            request, stage = read_request(record)
            content = write_reply(request, *perform(node, request, stage, sends_notes=sends_notes))
    except (ValueError, WireError) as error:
        content = {"error": str(error)}
    return Letter(RecordDict({RECORD: ConfigRecord(content)}), reply_to=letter)
