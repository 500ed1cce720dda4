"""What fleets of real nodes share: each client keeps its states in files of its own (node.py), and may refuse."""

from __future__ import annotations

from collections.abc import Callable

from threadpoolctl import threadpool_limits

from laconic.algorithm import ClientId
from laconic.fleets.base import BaseFleet, Conditions
from laconic.fleets.host import Home, Request, Score
from laconic.fleets.node import Node, Stage
from laconic.fleets.notes import write_notes
from laconic.fleets.session import ServerEnd


class RemoteFleet(BaseFleet):
    def __init__(self, home: Home, conditions: Conditions, on_progress: Callable[[str, int, int], None]) -> None:
        super().__init__(home, conditions, on_progress)
        self._settled = -1
        self._limits = threadpool_limits(1)  # the server's sums must not depend on cores

    def _save_clients(self, round: int) -> dict[int, str]:
        return {}  # they are safe where they are

    def _settle_clients(self, round: int) -> None:
        self._settled = round

    def _open_clients(self, files: dict[int, str], round: int) -> None:
        self._settled = round

    def close(self) -> None:
        self._limits.restore_original_limits()

    def _refuse_answer(self, client: ClientId, step: str, error: ValueError) -> None:
        self.refused.append(f"round {self.round}, client {client}: reply to {step} refused ({error})")

    def _refuse_reply(self, client: ClientId, step: str, error: ValueError) -> None:
        self._refuse_answer(client, step, error)
        self._ends.put(client, ServerEnd())  # it may hold less than we think: begin anew


def perform(node: Node, request: Request, stage: Stage, *, sends_notes: bool) -> tuple[bytes, bytes]:
    """At a node: its reply and, if its owner lets them go, what the method noted for the record."""
    with threadpool_limits(1):  # nor must a client's
        reply = node.perform(request, stage)
    noted = reply.notes if sends_notes else {}
    return reply.encoded.data, write_notes(noted, node.home.algorithm.client_notes, node.home.task.n_classes)


def evaluate(node: Node, round: int, stage: Stage) -> Score:
    with threadpool_limits(1):
        return node.evaluate(round, stage)
