"""What a client guesses by: a pool's clauses under a head that all train, beside the model of its own."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from laconic import linear
from laconic import tsetlin as tm
from laconic.algorithm import Examples
from laconic.algorithms.tsetlin.own_model import OwnModel, look
from laconic.algorithms.tsetlin.pool import Clauses, empty_pool
from laconic.algorithms.tsetlin.pool_server import PoolServer
from laconic.models.background import UNKNOWN, Background
from laconic.models.machines import ClauseHead, ClauseHeads
from laconic.wire import Ints

BLENDS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)  # tried on validation examples


@dataclass
class PooledModel:
    own: OwnModel
    clauses: NDArray[np.bool_]  # [slot, literal]
    scales: Ints  # [slot, 2]
    slots: NDArray[np.bool_]  # [slot] those that have columns
    head: linear.Matrix  # [held class, 1 + such slot]
    blend: float = 1.0  # weight of the own head
    is_trained: bool = False  # the own model, for an offer that has yet to arrive

    def take_clauses(self, news: Clauses) -> None:
        if news.is_new.all():  # kept as it came: clients of one process then hold one pool together
            self.clauses, self.scales = news.clauses, news.scales
        else:
            more = ((0, len(news.is_new) - len(self.clauses)), (0, 0))
            self.clauses, self.scales = np.pad(self.clauses, more), np.pad(self.scales, more)
            self.clauses[news.is_new], self.scales[news.is_new] = news.clauses, news.scales
        self.slots = np.pad(self.slots, (0, len(self.clauses) - len(self.slots)))

    def take_head(
        self, rows: linear.Matrix, holds: NDArray[np.bool_], slots: NDArray[np.bool_] | None, blend: float
    ) -> None:
        """Rows of the classes `holds`, columns of the slots; None: all that the client knows."""
        self.head, self.blend = linear.move_rows(rows, holds, self.own.holds), blend
        n_told = len(self.clauses)  # the pool may have grown since; of later slots it has no columns
        self.slots = np.ones(n_told, np.bool_) if slots is None else slots[:n_told]

    def look_around(self, x: NDArray[np.uint8]) -> linear.Matrix:
        """[example, 1 + slot of the head] what the pool's clauses say."""
        known = tm.Clauses(self.clauses[self.slots], self.scales[self.slots])
        return linear.as_features(tm.read_clauses(self.own.machine.shape, known, x))

    def guess(self, x: NDArray[np.uint8], blends: Sequence[float]) -> list[NDArray[np.int64]]:
        """[example] the held class that scores best, for each of the blends; without a pool, by the own model alone."""
        own = self.own
        alone = look(own, x) @ own.head.T + own.log_shares
        if not self.slots.any():
            return [own.classes[alone.argmax(axis=1)]] * len(blends)
        together = self.look_around(x) @ self.head.T + own.log_shares
        return [own.classes[(together + blend * alone).argmax(axis=1)] for blend in blends]

    def as_heads(self) -> ClauseHeads:
        """What is needed to guess by, and no more."""
        own = ClauseHead(self.own.machine, self.own.scales, self.own.head)
        pooled = None
        if self.slots.any():
            known = tm.hold_clauses(self.own.machine.shape, self.clauses[self.slots])
            pooled = ClauseHead(known, self.scales[self.slots], self.head)
        return ClauseHeads(own, pooled, self.blend, self.own.holds, self.own.log_shares)

    def count_right(self, examples: Examples) -> NDArray[np.int64]:
        """[blend] examples guessed right."""
        return np.array([np.count_nonzero(guess == examples.y) for guess in self.guess(examples.x, BLENDS)])


def start_pooled(own: OwnModel) -> PooledModel:
    """Before it was told of any clause."""
    nothing = empty_pool(own.machine.shape.n_literals)
    return PooledModel(own, nothing.clauses, nothing.scales, np.zeros(0, np.bool_), np.zeros((len(own.classes), 1)))


def trace_clauses(server: PoolServer, client: PooledModel) -> Background:
    """Who offered the clauses under the client's head, and how many were told of them."""
    slots, pool = np.flatnonzero(client.slots), server.pool
    nobody = np.zeros(len(slots), np.int64)
    n_holders = sum((server.find_known(each)[slots] for each in server.members.by_id), nobody)
    is_current = (pool.clauses[slots] == client.clauses[slots]).all(axis=1)  # else its owner has replaced it
    owners = np.where(is_current, pool.owners[slots], UNKNOWN)
    return Background(owners, np.where(is_current, n_holders, UNKNOWN))
