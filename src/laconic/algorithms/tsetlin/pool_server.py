"""What a server keeps of a pool of clauses: who offered and knows what, and the head that all train on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from laconic import linear
from laconic import tsetlin as tm
from laconic.algorithm import ClientId, check_shape
from laconic.algorithms.tsetlin.members import Member, Members
from laconic.algorithms.tsetlin.pool import Clauses, Offer, Pool, choose_news, write_offer
from laconic.tsetlin.clauses import MAX_SPREAD
from laconic.wire import Due, Expected, Message, UpTo


@dataclass
class PoolServer:
    pool: Pool
    n_known: int  # slots that a client may get to know
    n_told: int  # of these in one round
    head: linear.Matrix  # [class, 1 + seed feature + slot]
    speed: linear.Matrix  # likewise; momentum
    blend: float = 1.0
    members: Members = field(default_factory=Members)

    @property
    def n_fixed(self) -> int:
        """Columns of the head that everyone knows: the bias, and features from a seed."""
        return int(self.head.shape[1]) - len(self.pool.owners)

    def expect_offer(self, n_offered: int) -> Expected:
        n_classes, n_literals = len(self.head), self.pool.clauses.shape[1]
        most = UpTo(n_offered * n_classes)
        return {"clauses": Due((most, n_literals)), "scales": Due((most, 2), 127), "holds": Due((n_classes,))}

    def check_offer(self, _: Message, offer: Offer) -> None:
        check_shape("scales", offer.scales, (len(offer.clauses), 2))
        if np.any((offer.scales < 0) | (offer.scales > np.array([127, MAX_SPREAD]))):
            raise ValueError(f"scales reach from {offer.scales.min(axis=0)} to {offer.scales.max(axis=0)}")

    def take_offer(self, client: ClientId, offer: Offer, *, round: int, refresh_every: int = 0) -> None:
        """What the head knew of its slots is forgotten."""
        n_fixed = self.n_fixed
        slots = write_offer(self.pool, client, tm.Clauses(offer.clauses, offer.scales))
        n_more = n_fixed + len(self.pool.owners) - self.head.shape[1]
        self.head, self.speed = (np.pad(old, ((0, 0), (0, n_more))) for old in (self.head, self.speed))
        self.head[:, n_fixed + slots] = self.speed[:, n_fixed + slots] = 0
        known = self.members.by_id.get(client)
        # those who came together are refreshed apart, or the head would have to begin anew
        offered = round if known else round - client % max(1, refresh_every)
        told = known.told if known else 0
        self.members.add(client, Member(offer.holds, offer.n_examples, offer.n_val, offered, told), round)

    def find_news(self, clients: Sequence[ClientId]) -> dict[ClientId, Clauses]:
        """For those who lack some and may know more: the next in the order of writing."""
        told, pool = {client: self.members.by_id[client].told for client in clients}, self.pool
        masks = {serial: choose_news(pool, serial, self.n_told, self.n_known) for serial in set(told.values())}
        news = {
            serial: Clauses(mask, pool.clauses[mask], pool.scales[mask]) for serial, mask in masks.items() if mask.any()
        }
        return {client: news[serial] for client, serial in told.items() if serial in news}

    def mark_told(self, client: ClientId, news: Clauses) -> None:
        self.members.by_id[client].told = int(self.pool.serials[news.is_new].max())

    def find_known(self, client: ClientId) -> NDArray[np.bool_]:
        """[slot] whether the client was told of it."""
        return self.pool.serials <= self.members.by_id[client].told

    def find_block(self, client: ClientId) -> linear.Block:
        """The classes that it holds and the slots that it knows, in the head."""
        return np.ix_(
            self.members.by_id[client].holds, np.append(np.ones(self.n_fixed, np.bool_), self.find_known(client))
        )

    def move_head(self, changes: Mapping[ClientId, linear.Matrix], momentum: float) -> None:
        """By the mean over those who hold a class and know a slot, and some of the last move."""
        blocks = [(self.find_block(client), rows) for client, rows in changes.items()]
        sizes = [self.members.by_id[client].n_examples for client in changes]
        mean, is_held = linear.average_blocks(self.head.shape, blocks, sizes)
        # what nobody spoke of keeps its speed for later, and rests
        self.speed = np.where(is_held, momentum * self.speed + mean, self.speed)
        self.head = self.head + np.where(is_held, self.speed, 0)
