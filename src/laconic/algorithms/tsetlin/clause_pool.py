"""clausepool: clients put their best clauses side by side and learn together what each clause says of every class.

round   a client met for the first time trains a machine of its own and offers its best clauses of each class it holds;
        all sampled get the clauses they lack and the head's rows of their classes, and send back a change of these rows
merge   clauses: none, they are kept as they came; rows: mean change over those who hold the class, with momentum
guess   the head's logits + log of the client's own class shares + so many votes of its own machine as served all best
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from laconic import linear
from laconic import tsetlin as tm
from laconic.aggregate import Averaging, clip_long
from laconic.algorithm import Algorithm, ClientId, Examples, Fleet, Site, Task, check_shape, count_affordable, on_client
from laconic.algorithms.settings import check_at_least
from laconic.algorithms.tsetlin.machines import choose_shape
from laconic.algorithms.tsetlin.pool import Pool, choose_news, empty_pool, write_offer
from laconic.wire import EMPTY, Bits, Ints, Message

CHANGE_LIMIT, HEAD_LIMIT = 7, 31  # a change travels in 4 bits a number, the head in 6, before they are packed
EXPONENT_LIMIT = 2 * linear.GRID_BITS  # of a change's scale; beyond it there is nothing to learn
BLENDS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)  # tried on validation examples
LEAST_TOLD = 20  # clauses a round; with fewer, a pool would take too long to arrive
LEAST_GAIN = 0.001  # share of validation examples; less is no progress


class Offer(Message):
    clauses: Bits  # [clause, literal]
    holds: Bits  # [class]
    n_examples: int
    n_val: int


class Clauses(Message):
    is_new: Bits  # [slot of the pool]
    clauses: Bits  # [new slot, literal]


class Head(Message):
    slots: Bits | None  # [slot] those that have columns; None: all
    rows: Ints  # [held class, 1 + such slot]
    exponents: Ints  # [held class]
    blend: float


class Change(Message):
    rows: Ints  # [held class, 1 + slot of the head]
    exponents: Ints  # [held class]
    n_right: Ints  # [blend] validation examples guessed right with each of BLENDS


@dataclass
class Member:
    holds: NDArray[np.bool_]  # [class]
    n_examples: int
    n_val: int
    offered: int  # round from which its offer ages
    told: int = 0  # serial up to which it has the pool
    heard: int = 0  # round of its last change
    n_right: Ints = field(default_factory=lambda: np.zeros(len(BLENDS), np.int64))  # [blend] then


@dataclass
class Server:
    pool: Pool
    n_known: int  # slots that a client may get to know
    n_told: int  # of these in one round
    head: linear.Matrix  # [class, 1 + slot]
    speed: linear.Matrix  # likewise; momentum
    blend: float = 1.0
    best: float = 0.0  # share of all validation examples guessed right, when it last rose
    best_round: int = 0
    members: dict[ClientId, Member] = field(default_factory=dict)

    def check_offer(self, _: Message, offer: Offer) -> None:
        check_shape("clauses", offer.clauses, (len(offer.clauses), self.pool.clauses.shape[1]))
        check_shape("holds", offer.holds, (len(self.head),))


@dataclass
class Client:
    machine: tm.Machine
    holds: NDArray[np.bool_]  # [class]
    log_shares: linear.Matrix  # [held class]
    clauses: NDArray[np.bool_]  # [slot, literal]
    slots: NDArray[np.bool_]  # [slot] those that have columns
    head: linear.Matrix  # [held class, 1 + such slot]
    blend: float = 1.0  # weight of the own machine's votes
    is_trained: bool = False


class ClausePool(Algorithm):
    n_clauses: int = 300  # per class, of a client's own machine
    threshold: int = 150  # T: votes beyond which a class needs no more training
    specificity: float = 5.0  # s: the larger, the more literals a clause keeps
    patch: int | None = None  # side of the square patches; 0: the whole image; unset: 10, or the whole if it is small
    epochs: int = 30  # of a client's own machine, before it offers clauses
    n_offered: int = 2  # clauses that a client offers of each class
    min_examples: int = 10  # of a class, to offer clauses of it
    steps: int = 10  # gradient steps on the head a round
    rate: float = 170.0  # of these steps, shared out among the clauses of the pool
    decay: float = 1e-4  # pulls the head's weights to zero
    momentum: float = 0.8  # share of the last change in the next
    refresh_every: int = 0  # rounds until a client trains on and its offer is replaced, for data that drift; 0: never
    patience: int = 0  # rounds without progress after which those who have the head are left in peace; 0: never
    budget_bytes: int = 0  # real bytes per client and round; filled in by the run's budget
    share: bool = True  # False: the control; the same head on the client's own clauses alone, and nothing is sent

    budget_knob = "n_offered"

    def __post_init__(self) -> None:
        check_at_least(self, n_clauses=1, threshold=1, specificity=1, patch=0, epochs=1, n_offered=1, min_examples=1)
        check_at_least(self, steps=1, rate=0, decay=0, refresh_every=0, patience=0, budget_bytes=0)
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
        due = [client for client in fleet.sampled if self.is_due(server.members.get(client), fleet.round)]
        offers = fleet.ask(self.offer, dict.fromkeys(due, EMPTY), at_least=0, check=server.check_offer)
        for client, offer in offers.items():
            self.take_offer(server, client, offer, fleet.round)
        known = [client for client in fleet.sampled if client not in due or client in offers]
        asked = [client for client in known if self.is_wanted(server, client, fleet.round)]
        news = self.find_news(server, asked)
        for client in fleet.ask(self.take_clauses, news, at_least=0):
            server.members[client].told = int(server.pool.serials[news[client].is_new].max())
        heads = {client: self.tell_head(server, client) for client in asked}
        changes = fleet.ask(self.improve, heads, at_least=0, check=check_change)
        self.merge(server, changes, fleet.averaging)
        self.see_progress(server, changes, fleet.round)
        fleet.note(n_pooled=len(server.pool.clauses), blend=server.blend, n_asked=len(asked), share_right=server.best)

    def is_wanted(self, server: Server, client: ClientId, round: int) -> bool:
        """While there is progress; afterwards until it has had its last head."""
        end = server.best_round + self.patience
        return not self.patience or round <= end or server.members[client].heard < end

    def see_progress(self, server: Server, changes: Mapping[ClientId, Change], round: int) -> None:
        """By what everyone guessed right when last heard of, so that it does not matter who takes part."""
        for client, change in changes.items():
            server.members[client].n_right, server.members[client].heard = change.n_right, round
        heard = [member for member in server.members.values() if member.heard]
        n_right = np.sum([member.n_right for member in heard], axis=0).max(initial=0)
        share = float(n_right / max(1, sum(member.n_val for member in heard)))
        if share > server.best + LEAST_GAIN:
            server.best, server.best_round = share, round

    def is_due(self, member: Member | None, round: int) -> bool:
        return member is None or 0 < self.refresh_every <= round - member.offered

    def take_offer(self, server: Server, client: ClientId, offer: Offer, round: int) -> None:
        """What the head knew of its slots is forgotten, and all go on: there is something new to learn."""
        slots = write_offer(server.pool, client, offer.clauses)
        n_more = 1 + len(server.pool.owners) - server.head.shape[1]
        server.head, server.speed = (np.pad(old, ((0, 0), (0, n_more))) for old in (server.head, server.speed))
        server.head[:, 1 + slots] = server.speed[:, 1 + slots] = 0
        known = server.members.get(client)
        # those who came together are refreshed apart, or the head would have to begin anew
        offered = round if known else round - client % max(1, self.refresh_every)
        told = known.told if known else 0
        server.members[client] = Member(offer.holds, offer.n_examples, offer.n_val, offered, told)
        server.best, server.best_round = 0.0, round

    def find_news(self, server: Server, clients: list[ClientId]) -> dict[ClientId, Clauses]:
        """For those who lack some and may know more: the next in the order of writing."""
        told, pool = {client: server.members[client].told for client in clients}, server.pool
        masks = {serial: choose_news(pool, serial, server.n_told, server.n_known) for serial in set(told.values())}
        news = {serial: Clauses(mask, pool.clauses[mask]) for serial, mask in masks.items() if mask.any()}
        return {client: news[serial] for client, serial in told.items() if serial in news}

    def tell_head(self, server: Server, client: ClientId) -> Head:
        rows, exponents = linear.quantise(server.head[self.find_mine(server, client)], HEAD_LIMIT)
        slots = server.pool.serials <= server.members[client].told
        return Head(None if slots.all() else slots, rows, exponents, server.blend)

    def find_mine(self, server: Server, client: ClientId) -> linear.Block:
        """The classes that it holds and the slots that it knows, in the head."""
        member = server.members[client]
        return np.ix_(member.holds, np.append(True, server.pool.serials <= member.told))

    def merge(self, server: Server, changes: Mapping[ClientId, Change], how: Averaging = "mean") -> None:
        rows = [linear.dequantise(change.rows, change.exponents) for change in changes.values()]
        rows = clip_long(rows) if how == "clipped" else rows
        blocks = [(self.find_mine(server, client), mine) for client, mine in zip(changes, rows, strict=True)]
        sizes = [server.members[client].n_examples for client in changes]
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
        rows, slots = np.zeros((task.n_classes, 1 + n_known), np.int8), np.zeros(n_slots, np.bool_)
        return [
            Offer(np.zeros((n_mine, n_literals), np.bool_), per_class > 0, 0, 0),
            Clauses(slots, np.zeros((n_told, n_literals), np.bool_)),
            Head(slots, rows, per_class, 0.0),
            Change(rows, per_class, np.zeros(len(BLENDS), np.int64)),
        ]

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        shape = choose_shape(task, self.patch)
        machine = tm.build(
            shape, task.n_classes, self.n_clauses, threshold=self.threshold, specificity=self.specificity
        )
        holds, clauses = np.zeros(task.n_classes, np.bool_), np.zeros((0, shape.n_literals), np.bool_)
        client = Client(machine, holds, np.zeros(0), clauses, np.zeros(0, np.bool_), np.zeros((0, 1)))
        look_around(client, site)
        return client

    @on_client
    def offer(self, client: Client, _: Message, site: Site) -> Offer:
        self.train_machine(client, site)
        labels, counts = np.unique(site.train.y, return_counts=True)
        is_offered = (counts >= self.min_examples) & (len(labels) > 1)  # of one class there is nothing to tell apart
        clauses = tm.pick_clauses(client.machine, *site.train, labels[is_offered], self.n_offered)
        return Offer(clauses, client.holds, len(site.train.y), len(site.val.y))

    @on_client
    def take_clauses(self, client: Client, news: Clauses, site: Site) -> None:
        clauses = news.clauses  # as it came, if it is the whole: clients of one process then hold one pool together
        if not news.is_new.all():
            clauses = np.zeros((len(news.is_new), client.clauses.shape[1]), np.bool_)
            clauses[: len(client.clauses)] = client.clauses
            clauses[news.is_new] = news.clauses
        client.clauses, client.slots = clauses, np.pad(client.slots, (0, len(clauses) - len(client.slots)))

    @on_client
    def improve(self, client: Client, sent: Head, site: Site) -> Change:
        client.is_trained = False  # the offer has arrived; should another be wanted, the machine trains on
        client.head, client.blend = linear.dequantise(sent.rows, sent.exponents), sent.blend
        n_told = len(client.clauses)  # the pool may have grown since; of later slots it has no columns
        client.slots = np.ones(n_told, np.bool_) if sent.slots is None else sent.slots[:n_told]
        changed = self.train_head(client, site)
        rows, exponents = linear.quantise(changed - client.head, CHANGE_LIMIT)
        return Change(rows, exponents, self.count_right(client, site.val))

    @on_client
    def learn_alone(self, client: Client, _: Message, site: Site) -> None:
        """The control: a head of its own on all clauses of its own machine."""
        if not client.is_trained:
            self.train_machine(client, site)
            client.clauses = np.concatenate(tm.include_bits(client.machine)[client.holds])
            client.slots = np.ones(len(client.clauses), np.bool_)
            client.head = np.zeros((len(client.head), 1 + len(client.clauses)))
        client.head = self.train_head(client, site)
        client.blend = BLENDS[int(self.count_right(client, site.val).argmax())]

    def predict(self, client: Client, x: NDArray[np.uint8]) -> NDArray[np.int64]:
        return self.guess(client, x, [client.blend])[0]

    # ---------------------------------------------------------------- pieces
    def train_machine(self, client: Client, site: Site) -> None:
        """Once for each offer, however often that is lost on its way."""
        if not client.is_trained:
            look_around(client, site)
            tm.fit(client.machine, *site.train, site.rng, epochs=self.epochs, negatives=np.unique(site.train.y))
            client.is_trained = True

    def train_head(self, client: Client, site: Site) -> linear.Matrix:
        held = np.flatnonzero(client.holds)
        is_mine = np.isin(site.train.y, held)
        places = np.searchsorted(held, site.train.y[is_mine])
        client.log_shares = linear.log_shares(site.train.y, held)
        lesson = linear.Lesson(look(client, site.train.x[is_mine]), places, client.log_shares)
        return linear.train(client.head, lesson, steps=self.steps, rate=self.rate, decay=self.decay)

    def count_right(self, client: Client, examples: Examples) -> NDArray[np.int64]:
        """[blend] examples guessed right."""
        guesses = self.guess(client, examples.x, BLENDS)
        return np.array([np.count_nonzero(guess == examples.y) for guess in guesses])

    def guess(self, client: Client, x: NDArray[np.uint8], blends: Sequence[float]) -> list[NDArray[np.int64]]:
        """[example] the held class that scores best, for each of the blends."""
        held = np.flatnonzero(client.holds)
        chances = linear.log_chances(client.head, look(client, x), client.log_shares)
        votes = tm.class_sums(client.machine, x)[:, held] / self.threshold
        return [held[(chances + blend * votes).argmax(axis=1)] for blend in blends]


def check_change(head: Head, change: Change) -> None:
    check_shape("rows", change.rows, head.rows.shape)
    check_shape("exponents", change.exponents, head.exponents.shape)
    check_shape("n_right", change.n_right, (len(BLENDS),))
    for name, numbers, limit in (("rows", change.rows, CHANGE_LIMIT), ("exponents", change.exponents, EXPONENT_LIMIT)):
        if np.any((numbers < -limit) | (numbers > limit)):
            raise ValueError(f"{name} reach from {numbers.min()} to {numbers.max()}, ±{limit} were due")


def look_around(client: Client, site: Site) -> None:
    """Notes the classes that the client holds now; the head's rows are of these."""
    client.holds = np.bincount(site.train.y, minlength=client.machine.n_classes) > 0
    held = np.flatnonzero(client.holds)
    client.log_shares, client.head = (
        linear.log_shares(site.train.y, held),
        np.zeros((len(held), 1 + np.count_nonzero(client.slots))),
    )


def look(client: Client, x: NDArray[np.uint8]) -> linear.Matrix:
    """[example, 1 + slot of the head] what the pool's clauses say."""
    return linear.as_features(tm.fire_clauses(client.machine.shape, client.clauses[client.slots], x))
