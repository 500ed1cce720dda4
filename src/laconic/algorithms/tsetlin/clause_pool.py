"""clausepool: clients put their best clauses side by side and learn together what each clause says of every class.

round   a client met for the first time trains a machine of its own and offers its best clauses of each class it holds;
        all sampled get the clauses they lack and the head's rows of their classes, and send back a change of these rows
merge   clauses: none, they are kept as they came; rows: mean change over those who hold the class, with momentum
guess   logits of the head + so much of those of a private head on the client's own clauses as served all best; to both
        the log of the client's own class shares is added
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from laconic import linear
from laconic import tsetlin as tm
from laconic.aggregate import Averaging, clip_long
from laconic.algorithm import Algorithm, ClientId, Examples, Fleet, Site, Task, check_shape, count_affordable, on_client
from laconic.algorithms.settings import check_at_least
from laconic.algorithms.tsetlin.machines import choose_shape
from laconic.algorithms.tsetlin.members import Member, Members
from laconic.algorithms.tsetlin.own_model import OwnModel, build_own, find_classes, look, train_own
from laconic.algorithms.tsetlin.pool import Pool, choose_news, empty_pool, write_offer
from laconic.tsetlin.clauses import MAX_SPREAD
from laconic.wire import EMPTY, Bits, Ints, Message

EXPONENT_LIMIT = 2 * linear.GRID_BITS  # of a change's scale; beyond it there is nothing to learn
BLENDS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)  # tried on validation examples
LEAST_TOLD = 20  # clauses a round; with fewer, a pool would take too long to arrive


class Limits(NamedTuple):
    """Of the whole numbers that travel, both ways from zero."""

    head: int
    change: int


LIMITS = {"fine": Limits(head=31, change=7), "coarse": Limits(head=7, change=3)}  # 6 and 4 bits, or 4 and 3


class Offer(Message):
    clauses: Bits  # [clause, literal]
    scales: Ints  # [clause, 2] what is much for it, see tsetlin.clauses
    holds: Bits  # [class]
    n_examples: int
    n_val: int


class Clauses(Message):
    is_new: Bits  # [slot of the pool]
    clauses: Bits  # [new slot, literal]
    scales: Ints  # [new slot, 2]


class Head(Message):
    holds: Bits  # [class] those that have rows
    slots: Bits | None  # [slot] those that have columns; None: all
    rows: Ints  # [such class, 1 + such slot]
    exponents: Ints  # [such class]
    blend: float


class Change(Message):
    holds: Bits | None  # [class] those held now; None: those that the head has rows of
    rows: Ints  # as the head's
    exponents: Ints
    n_right: Ints  # [blend] validation examples guessed right with each of BLENDS


@dataclass
class Server:
    pool: Pool
    n_known: int  # slots that a client may get to know
    n_told: int  # of these in one round
    head: linear.Matrix  # [class, 1 + slot]
    speed: linear.Matrix  # likewise; momentum
    blend: float = 1.0
    members: Members = field(default_factory=Members)

    def check_offer(self, _: Message, offer: Offer) -> None:
        check_shape("clauses", offer.clauses, (len(offer.clauses), self.pool.clauses.shape[1]))
        check_shape("scales", offer.scales, (len(offer.clauses), 2))
        check_shape("holds", offer.holds, (len(self.head),))
        if np.any((offer.scales < 0) | (offer.scales > np.array([127, MAX_SPREAD]))):
            raise ValueError(f"scales reach from {offer.scales.min(axis=0)} to {offer.scales.max(axis=0)}")


@dataclass
class Client:
    own: OwnModel
    clauses: NDArray[np.bool_]  # [slot, literal]
    scales: Ints  # [slot, 2]
    slots: NDArray[np.bool_]  # [slot] those that have columns
    head: linear.Matrix  # [held class, 1 + such slot]
    blend: float = 1.0  # weight of the own head
    is_trained: bool = False


class ClausePool(Algorithm):
    n_clauses: int = 300  # per class, of a client's own machine
    threshold: int = 150  # T: votes beyond which a class needs no more training
    specificity: float = 5.0  # s: the larger, the more literals a clause keeps
    patch: int | None = None  # side of the square patches; 0: the whole image; unset: 10, or the whole if it is small
    epochs: int = 30  # of a client's own machine, before it offers clauses
    n_offered: int = 2  # clauses that a client offers of each class
    min_examples: int = 10  # of a class, to offer clauses of it
    own_steps: int = 100  # gradient steps on the head of its own clauses, whenever its machine has trained
    steps: int = 20  # on the federated head a round
    rate: float = 170.0  # of these steps, shared out among the clauses of the pool
    decay: float = 1e-4  # pulls the head's weights to zero
    momentum: float = 0.8  # share of the last change in the next
    refresh_every: int = 0  # rounds until a client trains on and its offer is replaced, for data that drift; 0: never
    patience: int = 0  # rounds without progress after which those who have the head are left in peace; 0: never
    precision: Literal["fine", "coarse"] = "fine"  # of the head and its changes: 6 and 4 bits a number, or 4 and 3
    budget_bytes: int = 0  # real bytes per client and round; filled in by the run's budget
    share: bool = True  # False: the control; the head of the client's own clauses alone, and nothing is sent

    budget_knob = ("precision", "n_offered")

    @property
    def limits(self) -> Limits:
        return LIMITS[self.precision]

    def __post_init__(self) -> None:
        check_at_least(self, n_clauses=1, threshold=1, specificity=1, patch=0, epochs=1, n_offered=1, min_examples=1)
        check_at_least(self, own_steps=1, steps=1, rate=0, decay=0, refresh_every=0, patience=0, budget_bytes=0)
        if not 0 <= self.momentum < 1:
            raise ValueError(f"method.momentum = {self.momentum} must be at least 0 and below 1")

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        bias_only = np.zeros((task.n_classes, 1))
        pool = empty_pool(choose_shape(task, self.patch).n_literals)
        return Server(pool, *self.plan(task), bias_only, bias_only)

    def run_round(self, server: Server, fleet: Fleet) -> None:
        if not self.share:
            fleet.ask(self.learn_alone, dict.fromkeys(fleet.sampled, EMPTY), at_least=0)
            return
        members, now = server.members, fleet.round
        due = [client for client in fleet.sampled if members.is_due(client, now, self.refresh_every)]
        offers = fleet.ask(self.offer, dict.fromkeys(due, EMPTY), at_least=0, check=server.check_offer)
        for client, offer in offers.items():
            self.take_offer(server, client, offer, now)
        known = [client for client in fleet.sampled if client not in due or client in offers]
        asked = [client for client in known if members.is_wanted(client, now, self.patience)]
        news = self.find_news(server, asked)
        for client in fleet.ask(self.take_clauses, news, at_least=0):
            members.by_id[client].told = int(server.pool.serials[news[client].is_new].max())
        heads = {client: self.tell_head(server, client) for client in asked}
        changes = fleet.ask(self.improve, heads, at_least=0, check=self.check_change)
        self.merge(server, changes, fleet.averaging)
        for client, change in changes.items():
            member = members.by_id[client]
            member.n_right, member.heard = change.n_right, now
            member.holds = member.holds if change.holds is None else change.holds
        members.see_progress(now)
        fleet.note(n_pooled=len(server.pool.clauses), blend=server.blend, n_asked=len(asked), share_right=members.best)

    def take_offer(self, server: Server, client: ClientId, offer: Offer, round: int) -> None:
        """What the head knew of its slots is forgotten."""
        slots = write_offer(server.pool, client, tm.Clauses(offer.clauses, offer.scales))
        n_more = 1 + len(server.pool.owners) - server.head.shape[1]
        server.head, server.speed = (np.pad(old, ((0, 0), (0, n_more))) for old in (server.head, server.speed))
        server.head[:, 1 + slots] = server.speed[:, 1 + slots] = 0
        known = server.members.by_id.get(client)
        # those who came together are refreshed apart, or the head would have to begin anew
        offered = round if known else round - client % max(1, self.refresh_every)
        told = known.told if known else 0
        server.members.add(client, Member(offer.holds, offer.n_examples, offer.n_val, offered, told), round)

    def find_news(self, server: Server, clients: list[ClientId]) -> dict[ClientId, Clauses]:
        """For those who lack some and may know more: the next in the order of writing."""
        told, pool = {client: server.members.by_id[client].told for client in clients}, server.pool
        masks = {serial: choose_news(pool, serial, server.n_told, server.n_known) for serial in set(told.values())}
        news = {
            serial: Clauses(mask, pool.clauses[mask], pool.scales[mask]) for serial, mask in masks.items() if mask.any()
        }
        return {client: news[serial] for client, serial in told.items() if serial in news}

    def tell_head(self, server: Server, client: ClientId) -> Head:
        rows, exponents = linear.quantise(server.head[self.find_mine(server, client)], self.limits.head)
        member = server.members.by_id[client]
        slots = server.pool.serials <= member.told
        return Head(member.holds, None if slots.all() else slots, rows, exponents, server.blend)

    def find_mine(self, server: Server, client: ClientId) -> linear.Block:
        """The classes that it holds and the slots that it knows, in the head."""
        member = server.members.by_id[client]
        return np.ix_(member.holds, np.append(True, server.pool.serials <= member.told))

    def merge(self, server: Server, changes: Mapping[ClientId, Change], how: Averaging = "mean") -> None:
        rows = [linear.dequantise(change.rows, change.exponents) for change in changes.values()]
        rows = clip_long(rows) if how == "clipped" else rows
        blocks = [(self.find_mine(server, client), mine) for client, mine in zip(changes, rows, strict=True)]
        sizes = [server.members.by_id[client].n_examples for client in changes]
        mean, is_held = linear.average_blocks(server.head.shape, blocks, sizes)
        # what nobody spoke of keeps its speed for later, and rests
        server.speed = np.where(is_held, self.momentum * server.speed + mean, server.speed)
        server.head = server.head + np.where(is_held, server.speed, 0)
        n_right = sum((change.n_right for change in changes.values()), np.zeros(len(BLENDS), np.int64))
        if n_right.any():
            server.blend = BLENDS[int(n_right.argmax())]

    def costliest_round(self, task: Task) -> list[Message]:
        """Of a client met when all others have offered, if everyone holds every class."""
        return self.list_messages(task, *self.plan(task)) if self.share else []

    def plan(self, task: Task) -> tuple[int, int]:
        """Slots that a client may know, and be told in a round: all, or what a budget leaves.

        The pool arrives in as many rounds as that takes. Only where one clause of each class and client is still too
        much are the latest left out.
        """
        n_slots = task.n_classes * self.n_offered * task.n_clients
        if not self.budget_bytes:
            return n_slots, n_slots
        n_known, least = n_slots, min(LEAST_TOLD, n_slots)
        sizes = range(least + 1, n_slots + 1)
        if self.n_offered == 1:
            n_known = least + count_affordable(self.budget_bytes, sizes, lambda n: self.list_messages(task, n, least))
        n_told = least + count_affordable(self.budget_bytes, sizes, lambda n: self.list_messages(task, n_known, n))
        return n_known, min(n_known, n_told)

    def list_messages(self, task: Task, n_known: int, n_told: int) -> list[Message]:
        n_literals, n_mine = choose_shape(task, self.patch).n_literals, task.n_classes * self.n_offered
        n_slots, per_class = n_mine * task.n_clients, np.zeros(task.n_classes, np.int8)
        holds, slots = per_class > 0, np.zeros(n_slots, np.bool_)
        rows = np.zeros((task.n_classes, 1 + n_known), np.int8)
        return [
            Offer(np.zeros((n_mine, n_literals), np.bool_), np.zeros((n_mine, 2), np.int8), holds, 0, 0),
            Clauses(slots, np.zeros((n_told, n_literals), np.bool_), np.zeros((n_told, 2), np.int8)),
            Head(holds, slots, rows, per_class, 0.0).limited(rows=self.limits.head),
            Change(holds, rows, per_class, np.zeros(len(BLENDS), np.int64)).limited(rows=self.limits.change),
        ]

    def check_change(self, head: Head, change: Change) -> None:
        if change.holds is not None:
            check_shape("holds", change.holds, head.holds.shape)
        check_shape("rows", change.rows, head.rows.shape)
        check_shape("exponents", change.exponents, head.exponents.shape)
        check_shape("n_right", change.n_right, (len(BLENDS),))
        for name, limit in (("rows", self.limits.change), ("exponents", EXPONENT_LIMIT)):
            numbers = getattr(change, name)
            if np.any((numbers < -limit) | (numbers > limit)):
                raise ValueError(f"{name} reach from {numbers.min()} to {numbers.max()}, ±{limit} were due")

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        shape, holds = choose_shape(task, self.patch), find_classes(site.train.y, task.n_classes)
        n_held = int(np.count_nonzero(holds))
        machine = tm.build(shape, n_held, self.n_clauses, threshold=self.threshold, specificity=self.specificity)
        nothing = empty_pool(shape.n_literals)
        own, head = build_own(machine, holds, site.train.y), np.zeros((n_held, 1))
        return Client(own, nothing.clauses, nothing.scales, np.zeros(0, np.bool_), head)

    @on_client
    def offer(self, client: Client, _: Message, site: Site) -> Offer:
        self.learn_at_home(client, site, is_due=not client.is_trained)
        client.is_trained = True  # once for each offer, however often that is lost on its way
        own, places = client.own, client.own.places(site.train.y)
        counts = np.bincount(places)
        is_offered = (counts >= self.min_examples) & (len(counts) > 1)  # of one class there is nothing to tell apart
        best = tm.pick_clauses(own.machine, site.train.x, places, np.flatnonzero(is_offered), self.n_offered)
        return Offer(*best, own.holds, len(site.train.y), len(site.val.y))

    @on_client
    def take_clauses(self, client: Client, news: Clauses, site: Site) -> None:
        if news.is_new.all():  # kept as it came: clients of one process then hold one pool together
            client.clauses, client.scales = news.clauses, news.scales
        else:
            more = ((0, len(news.is_new) - len(client.clauses)), (0, 0))
            client.clauses, client.scales = np.pad(client.clauses, more), np.pad(client.scales, more)
            client.clauses[news.is_new], client.scales[news.is_new] = news.clauses, news.scales
        client.slots = np.pad(client.slots, (0, len(client.clauses) - len(client.slots)))

    @on_client
    def improve(self, client: Client, sent: Head, site: Site) -> Change:
        self.learn_at_home(client, site, is_due=False)
        client.is_trained = False  # the offer has arrived; should another be wanted, the machine trains on
        holds, rows = client.own.holds, linear.dequantise(sent.rows, sent.exponents)
        client.head, client.blend = linear.move_rows(rows, sent.holds, holds), sent.blend
        n_told = len(client.clauses)  # the pool may have grown since; of later slots it has no columns
        client.slots = np.ones(n_told, np.bool_) if sent.slots is None else sent.slots[:n_told]
        trained = self.train(client.head, client, site, look_around(client, site.train.x), self.steps)
        change = linear.quantise(linear.move_rows(trained - client.head, holds, sent.holds), self.limits.change)
        news = None if np.array_equal(holds, sent.holds) else holds
        return Change(news, *change, self.count_right(client, site.val))

    @on_client
    def learn_alone(self, client: Client, _: Message, site: Site) -> None:
        """The control: nothing but the own model, whose head goes on learning."""
        if client.is_trained:
            self.train_own_head(client, site)
        self.learn_at_home(client, site, is_due=not client.is_trained)
        client.is_trained = True

    def predict(self, client: Client, x: NDArray[np.uint8]) -> NDArray[np.int64]:
        return self.guess(client, x, [client.blend])[0]

    # ---------------------------------------------------------------- pieces
    def learn_at_home(self, client: Client, site: Site, *, is_due: bool) -> None:
        """If that is due, or if the client has come to hold other classes than before."""
        own, before = client.own, client.own.holds
        if is_due or not np.array_equal(before, find_classes(site.train.y, len(before))):
            train_own(own, site.train, site.rng, epochs=self.epochs)
            self.train_own_head(client, site)
            client.head = linear.move_rows(client.head, before, own.holds)

    def train_own_head(self, client: Client, site: Site) -> None:
        own = client.own
        own.head = self.train(own.head, client, site, look(own, site.train.x), self.own_steps)

    def train(
        self, head: linear.Matrix, client: Client, site: Site, features: linear.Matrix, steps: int
    ) -> linear.Matrix:
        lesson = client.own.lesson(site.train, features)
        return linear.train(head, lesson, steps=steps, rate=self.rate, decay=self.decay)

    def count_right(self, client: Client, examples: Examples) -> NDArray[np.int64]:
        """[blend] examples guessed right."""
        guesses = self.guess(client, examples.x, BLENDS)
        return np.array([np.count_nonzero(guess == examples.y) for guess in guesses])

    def guess(self, client: Client, x: NDArray[np.uint8], blends: Sequence[float]) -> list[NDArray[np.int64]]:
        """[example] the held class that scores best, for each of the blends; without a pool, by the own model alone."""
        own = client.own
        alone = look(own, x) @ own.head.T + own.log_shares
        if not client.slots.any():
            return [own.classes[alone.argmax(axis=1)]] * len(blends)
        together = look_around(client, x) @ client.head.T + own.log_shares
        return [own.classes[(together + blend * alone).argmax(axis=1)] for blend in blends]


def look_around(client: Client, x: NDArray[np.uint8]) -> linear.Matrix:
    """[example, 1 + slot of the head] what the pool's clauses say."""
    known = tm.Clauses(client.clauses[client.slots], client.scales[client.slots])
    return linear.as_features(tm.read_clauses(client.own.machine.shape, known, x))
