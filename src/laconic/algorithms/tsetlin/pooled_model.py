"""What a client guesses by: a pool's clauses under a head that all train, beside the model of its own."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from laconic import linear
from laconic import tsetlin as tm
from laconic.algorithm import Examples
from laconic.algorithms.tsetlin.own_model import OwnModel, look
from laconic.algorithms.tsetlin.pool import BLENDS, Clauses, empty_pool
from laconic.algorithms.tsetlin.pool_server import PoolServer
from laconic.algorithms.tsetlin.seeds import Seeds
from laconic.models.background import UNKNOWN, Background
from laconic.models.machines import ClauseHead, ClauseHeads
from laconic.models.seeds import SeededHeads
from laconic.wire import Ints


@dataclass
class PooledModel:
    own: OwnModel
    clauses: NDArray[np.bool_]  # [slot, literal]
    scales: Ints  # [slot, 2]
    slots: NDArray[np.bool_]  # [slot] those that have columns
    head: linear.Matrix  # [held class, 1 + seed feature + such slot]
    blend: float = 1.0  # weight of the own head
    is_trained: bool = False  # the own model, for an offer that has yet to arrive
    seeds: Seeds | None = field(default=None, metadata={"later": True})
    # [held class, column] of changes, what was not told yet; None: all of it always is
    left_over: linear.Matrix | None = field(default=None, metadata={"later": True})

    @property
    def columns(self) -> NDArray[np.bool_]:
        """[column of bias, seed features and all slots] those that the head has."""
        n_seed = self.seeds.n_features if self.seeds else 0
        return np.append(np.ones(1 + n_seed, np.bool_), self.slots)

    def bits(self, x: NDArray[np.uint8]) -> NDArray[np.uint8]:
        return x if self.seeds is None else self.seeds.bits(x)

    def own_examples(self, examples: Examples) -> Examples:
        """As the clauses see them."""
        return Examples(self.bits(examples.x), examples.y)

    def take_clauses(self, news: Clauses) -> None:
        if news.is_new.all():  # kept as it came: clients of one process then hold one pool together
            self.clauses, self.scales = news.clauses, news.scales
        else:
            more = ((0, len(news.is_new) - len(self.clauses)), (0, 0))
            self.clauses, self.scales = np.pad(self.clauses, more), np.pad(self.scales, more)
            self.clauses[news.is_new], self.scales[news.is_new] = news.clauses, news.scales
        self.slots = np.pad(self.slots, (0, len(self.clauses) - len(self.slots)))
        if self.left_over is not None:  # of slots that say something else now
            self.left_over = self.left_over[:, : len(self.columns) - len(self.slots)]

    def take_head(
        self, rows: linear.Matrix, holds: NDArray[np.bool_], slots: NDArray[np.bool_] | None, blend: float
    ) -> None:
        """Rows of the classes `holds`, columns of the slots; None: all that the client knows."""
        self.head, self.blend = linear.move_rows(rows, holds, self.own.holds), blend
        n_told = len(self.clauses)  # the pool may have grown since; of later slots it has no columns
        self.slots = np.ones(n_told, np.bool_) if slots is None else slots[:n_told]

    def take_classes(self, before: NDArray[np.bool_]) -> None:
        """Those that it holds now, in place of others."""
        self.head = linear.move_rows(self.head, before, self.own.holds)
        if self.left_over is not None:
            self.left_over = linear.move_rows(self.left_over, before, self.own.holds)

    def add_left_over(self, change: linear.Matrix) -> linear.Matrix:
        if self.left_over is None:
            return change
        n_more = len(self.columns) - self.left_over.shape[1]
        return change + np.pad(self.left_over, ((0, 0), (0, n_more)))[:, self.columns]

    def keep_left_over(self, untold: linear.Matrix) -> None:
        if self.left_over is not None:
            self.left_over = np.zeros((len(untold), len(self.columns)))
            self.left_over[:, self.columns] = untold

    def look_around(self, x: NDArray[np.uint8]) -> linear.Matrix:
        """[example, 1 + seed feature + slot of the head] what the bank and the pool's clauses say."""
        known = tm.Clauses(self.clauses[self.slots], self.scales[self.slots])
        spoken = tm.read_clauses(self.own.machine.shape, known, self.bits(x))
        if self.seeds is not None:
            spoken = np.concatenate([self.seeds.read(x), spoken], axis=1)
        return linear.as_features(spoken)

    def think_alone(self, x: NDArray[np.uint8]) -> linear.Matrix:
        """[example, held class] logits of the own heads: the mean, if there are two."""
        on_clauses = look(self.own, self.bits(x)) @ self.own.head.T + self.own.log_shares
        on_seeds = self.seeds.logits(x) if self.seeds else None
        return on_clauses if on_seeds is None else (on_clauses + on_seeds + self.own.log_shares) / 2

    def guess(self, x: NDArray[np.uint8], blends: Sequence[float]) -> list[NDArray[np.int64]]:
        """[example] the held class that scores best, for each of the blends; without a pool, by the own model alone."""
        own, alone = self.own, self.think_alone(x)
        if self.head.shape[1] == 1:
            return [own.classes[alone.argmax(axis=1)]] * len(blends)
        together = self.look_around(x) @ self.head.T + own.log_shares
        return [own.classes[(together + blend * alone).argmax(axis=1)] for blend in blends]

    def as_model(self) -> ClauseHeads | SeededHeads:
        """What is needed to guess by, and no more."""
        own, pooled = ClauseHead(self.own.machine, self.own.scales, self.own.head), None
        n_fixed = len(self.columns) - len(self.slots)
        if self.slots.any():
            known = tm.hold_clauses(self.own.machine.shape, self.clauses[self.slots])
            columns = (
                self.head[:, n_fixed - 1 :] if self.seeds is None else np.pad(self.head[:, n_fixed:], ((0, 0), (1, 0)))
            )
            pooled = ClauseHead(known, self.scales[self.slots], columns)
        heads = ClauseHeads(own, pooled, self.blend, self.own.holds, self.own.log_shares)
        if self.seeds is None:
            return heads
        together = self.head[:, :n_fixed] if self.head.shape[1] > 1 else None
        return SeededHeads(heads, self.seeds.bank, self.seeds.byte_layers, together, self.seeds.head)

    def count_right(self, examples: Examples) -> NDArray[np.int64]:
        """[blend] examples guessed right."""
        return np.array([np.count_nonzero(guess == examples.y) for guess in self.guess(examples.x, BLENDS)])


def start_pooled(own: OwnModel, seeds: Seeds | None, *, keeps_untold: bool) -> PooledModel:
    """Before it was told of any clause."""
    nothing, no_rows = empty_pool(own.machine.shape.n_literals), np.zeros((len(own.classes), 1))
    left_over = no_rows[:, :0] if keeps_untold else None
    no_slots = np.zeros(0, np.bool_)
    return PooledModel(own, nothing.clauses, nothing.scales, no_slots, no_rows, seeds=seeds, left_over=left_over)


def trace_clauses(server: PoolServer, client: PooledModel) -> Background:
    """Who offered the clauses under the client's head, and how many were told of them."""
    slots, pool = np.flatnonzero(client.slots), server.pool
    nobody = np.zeros(len(slots), np.int64)
    n_holders = sum((server.find_known(each)[slots] for each in server.members.by_id), nobody)
    is_current = (pool.clauses[slots] == client.clauses[slots]).all(axis=1)  # else its owner has replaced it
    owners = np.where(is_current, pool.owners[slots], UNKNOWN)
    return Background(owners, np.where(is_current, n_holders, UNKNOWN))
