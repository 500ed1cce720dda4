"""Flower's messages without its processes: a grid that hands every message to its node at once."""

from collections.abc import Callable, Iterable
from uuid import uuid4

import pytest
from flwr.app import Error, Message
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

FIRST_NODE = 100


class Loop(Grid):
    """`meddle` may put something else in place of the reply."""

    def __init__(self, n_nodes: int, reply: Callable[[Message], Message]) -> None:
        self.n_nodes, self.reply = n_nodes, reply
        self.offline: set[int] = set()
        self.meddle: Callable[[Message, Message], Message] = lambda letter, reply: reply
        self.replies: dict[str, Message] = {}

    def set_run(self, run: object) -> None: ...

    @property
    def run(self) -> object:
        return None

    def create_message(self, *args: object, **options: object) -> Message:
        raise NotImplementedError  # abstract, and called by nobody

    def get_node_ids(self) -> list[int]:
        return [node for node in range(FIRST_NODE, FIRST_NODE + self.n_nodes) if node not in self.offline]

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        ids = []
        for letter in messages:
            letter.metadata.__dict__["_message_id"] = uuid4().hex
            letter.metadata.__dict__["_src_node_id"] = 1
            ids.append(letter.metadata.message_id)
            if letter.metadata.dst_node_id in self.offline:
                reply = Message(Error(5, "node unavailable"), reply_to=letter)
            else:
                reply = self.meddle(letter, self.reply(letter))
            self.replies[letter.metadata.message_id] = reply
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        return [self.replies.pop(each) for each in message_ids if each in self.replies]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        return self.pull_messages(self.push_messages(messages))


def pretend_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Flower's processes set before an app starts."""
    for name in ("run_id", "node_id", "task_id"):
        monkeypatch.setattr(TaskIdentity, f"_{name}", 1)
