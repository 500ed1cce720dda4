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
from laconic.algorithm import Algorithm, ClientId, Fleet, Site, Task, on_client
from laconic.algorithms.tsetlin.machines import check_at_least, choose_shape
from laconic.wire import EMPTY, Bits, Ints, Message

CHANGE_LIMIT, HEAD_LIMIT = 7, 31  # a change travels in 4 bits a number, the head in 6, before they are packed
BLENDS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)  # tried on validation examples


class Offer(Message):
    clauses: Bits  # [clause, literal]
    holds: Bits  # [class]
    n_examples: int


class Clauses(Message):
    is_new: Bits  # [slot of the pool]
    clauses: Bits  # [new slot, literal]


class Head(Message):
    rows: Ints  # [held class, 1 + slot]
    exponents: Ints  # [held class]
    blend: float


class Change(Message):
    rows: Ints  # [held class, 1 + slot]
    exponents: Ints  # [held class]
    n_right: Ints  # [blend] validation examples guessed right with each of BLENDS


@dataclass
class Member:
    holds: NDArray[np.bool_]  # [class]
    n_examples: int
    offered: int  # round of its last offer
    informed: int = 0  # round from which it has the whole pool


@dataclass
class Server:
    clauses: NDArray[np.bool_]  # [slot, literal]
    owners: NDArray[np.int64]  # [slot]
    written: NDArray[np.int64]  # [slot] round
    head: linear.Matrix  # [class, 1 + slot]
    speed: linear.Matrix  # likewise; momentum
    blend: float = 1.0
    members: dict[ClientId, Member] = field(default_factory=dict)


@dataclass
class Client:
    machine: tm.Machine
    holds: NDArray[np.bool_]  # [class]
    log_shares: linear.Matrix  # [held class]
    clauses: NDArray[np.bool_]  # [slot, literal]
    head: linear.Matrix  # [held class, 1 + slot]
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
    share: bool = True  # False: the control; the same head on the client's own clauses alone, and nothing is sent

    budget_knob = "n_offered"

    def __post_init__(self) -> None:
        check_at_least(self, n_clauses=1, threshold=1, specificity=1, patch=0, epochs=1, n_offered=1, min_examples=1)
        check_at_least(self, steps=1, rate=0, decay=0, refresh_every=0)
        if not 0 <= self.momentum < 1:
            raise ValueError(f"method.momentum = {self.momentum} must be at least 0 and below 1")

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        clauses = np.zeros((0, choose_shape(task, self.patch).n_literals), np.bool_)
        nobody, bias_only = np.zeros(0, np.int64), np.zeros((task.n_classes, 1))
        return Server(clauses, nobody, nobody, bias_only, bias_only)

    def run_round(self, server: Server, fleet: Fleet) -> None:
        if not self.share:
            fleet.ask(self.learn_alone, dict.fromkeys(fleet.sampled, EMPTY), at_least=0)
            return
        due = [client for client in fleet.sampled if self.is_due(server.members.get(client), fleet.round)]
        offers = fleet.ask(self.offer, dict.fromkeys(due, EMPTY), at_least=0)
        for client, offer in offers.items():
            self.take_offer(server, client, offer, fleet.round)
        known = [client for client in fleet.sampled if client not in due or client in offers]
        behind = self.find_news(server, known)
        for client in fleet.ask(self.take_clauses, behind, at_least=0):
            server.members[client].informed = fleet.round
        lost = self.find_news(server, known)
        heads = {client: self.tell_head(server, client) for client in known if client not in lost}
        changes = fleet.ask(self.improve, heads, at_least=0)
        self.merge(server, changes)
        fleet.note(n_pooled=len(server.clauses), blend=server.blend)

    def is_due(self, member: Member | None, round: int) -> bool:
        return member is None or 0 < self.refresh_every <= round - member.offered

    def take_offer(self, server: Server, client: ClientId, offer: Offer, round: int) -> None:
        """In the client's old slots, if it has any, and in new ones; slots left over fall silent."""
        slots = np.flatnonzero(server.owners == client)
        n_more = max(0, len(offer.clauses) - len(slots))
        slots = np.append(slots, len(server.owners) + np.arange(n_more))
        server.clauses = np.concatenate([server.clauses, np.zeros((n_more, server.clauses.shape[1]), np.bool_)])
        server.owners, server.written = (np.pad(old, (0, n_more)) for old in (server.owners, server.written))
        server.head, server.speed = (np.pad(old, ((0, 0), (0, n_more))) for old in (server.head, server.speed))
        server.clauses[slots] = False
        server.clauses[slots[: len(offer.clauses)]] = offer.clauses
        server.owners[slots], server.written[slots] = client, round
        server.head[:, 1 + slots] = server.speed[:, 1 + slots] = 0
        informed = server.members[client].informed if client in server.members else 0
        server.members[client] = Member(offer.holds, offer.n_examples, round, informed)

    def find_news(self, server: Server, clients: list[ClientId]) -> dict[ClientId, Clauses]:
        """For those who lack some: what was written since they last had the whole pool."""
        dates = {client: server.members[client].informed for client in clients}
        is_new = {date: server.written > date for date in set(dates.values())}
        news = {date: Clauses(mask, server.clauses[mask]) for date, mask in is_new.items() if mask.any()}
        return {client: news[date] for client, date in dates.items() if date in news}

    def tell_head(self, server: Server, client: ClientId) -> Head:
        rows, exponents = linear.quantise(server.head[server.members[client].holds], HEAD_LIMIT)
        return Head(rows, exponents, server.blend)

    def merge(self, server: Server, changes: Mapping[ClientId, Change]) -> None:
        total, weight = np.zeros_like(server.head), np.zeros((len(server.head), 1))
        n_right = np.zeros(len(BLENDS), np.int64)
        for client, change in changes.items():
            member = server.members[client]
            total[member.holds] += member.n_examples * linear.dequantise(change.rows, change.exponents)
            weight[member.holds] += member.n_examples
            n_right += change.n_right
        is_held = weight > 0  # rows that nobody spoke of keep their speed for later, and rest
        mean = np.divide(total, weight, out=np.zeros_like(total), where=is_held)
        server.speed = np.where(is_held, self.momentum * server.speed + mean, server.speed)
        server.head = server.head + np.where(is_held, server.speed, 0)
        if n_right.any():
            server.blend = BLENDS[int(n_right.argmax())]

    def costliest_round(self, task: Task) -> list[Message]:
        """Of a client met when all others have offered, if everyone holds every class."""
        if not self.share:
            return []
        n_literals, n_mine = choose_shape(task, self.patch).n_literals, task.n_classes * self.n_offered
        n_slots, per_class = n_mine * task.n_clients, np.zeros(task.n_classes, np.int8)
        rows = np.zeros((task.n_classes, 1 + n_slots), np.int8)
        return [
            Offer(np.zeros((n_mine, n_literals), np.bool_), per_class > 0, 0),
            Clauses(np.zeros(n_slots, np.bool_), np.zeros((n_slots, n_literals), np.bool_)),
            Head(rows, per_class, 0.0),
            Change(rows, per_class, np.zeros(len(BLENDS), np.int64)),
        ]

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        shape = choose_shape(task, self.patch)
        machine = tm.build(
            shape, task.n_classes, self.n_clauses, threshold=self.threshold, specificity=self.specificity
        )
        holds, clauses = np.zeros(task.n_classes, np.bool_), np.zeros((0, shape.n_literals), np.bool_)
        client = Client(machine, holds, np.zeros(0), clauses, np.zeros((0, 1)))
        look_around(client, site)
        return client

    @on_client
    def offer(self, client: Client, _: Message, site: Site) -> Offer:
        self.train_machine(client, site)
        counts = np.bincount(site.train.y, minlength=len(client.holds))
        outputs, includes = tm.clause_outputs(client.machine, site.train.x), tm.include_bits(client.machine)
        chosen = [includes[0, :0]]
        if client.holds.sum() > 1:  # else there is nothing it could tell apart
            for label in np.flatnonzero(counts >= self.min_examples):
                best = tm.choose_clauses(outputs[:, label], site.train.y, int(label), self.n_offered)
                chosen.append(includes[label, best])
        return Offer(np.concatenate(chosen), client.holds, len(site.train.y))

    @on_client
    def take_clauses(self, client: Client, news: Clauses, site: Site) -> None:
        if news.is_new.all():
            client.clauses = news.clauses  # as it came: clients of one process then hold one pool, not one each
        else:
            clauses = np.zeros((len(news.is_new), client.clauses.shape[1]), np.bool_)
            clauses[: len(client.clauses)] = client.clauses
            clauses[news.is_new] = news.clauses
            client.clauses = clauses
        client.head = np.pad(client.head, ((0, 0), (0, 1 + len(client.clauses) - client.head.shape[1])))

    @on_client
    def improve(self, client: Client, sent: Head, site: Site) -> Change:
        client.is_trained = False  # the offer has arrived; should another be wanted, the machine trains on
        client.head, client.blend = linear.dequantise(sent.rows, sent.exponents), sent.blend
        changed = self.train_head(client, site)
        rows, exponents = linear.quantise(changed - client.head, CHANGE_LIMIT)
        return Change(rows, exponents, self.try_blends(client, site))

    @on_client
    def learn_alone(self, client: Client, _: Message, site: Site) -> None:
        """The control: a head of its own on all clauses of its own machine."""
        if not client.is_trained:
            self.train_machine(client, site)
            client.clauses = np.concatenate(tm.include_bits(client.machine)[client.holds])
            client.head = np.zeros((len(client.head), 1 + len(client.clauses)))
        client.head = self.train_head(client, site)
        client.blend = BLENDS[int(self.try_blends(client, site).argmax())]

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

    def try_blends(self, client: Client, site: Site) -> NDArray[np.int64]:
        """[blend] validation examples guessed right."""
        n_right = np.array([np.count_nonzero(guess == site.val.y) for guess in self.guess(client, site.val.x, BLENDS)])
        if len(site.val.y):  # settings can be chosen by it, and the test examples left alone
            site.note(validation_accuracy=n_right[BLENDS.index(client.blend)] / len(site.val.y))
        return n_right

    def guess(self, client: Client, x: NDArray[np.uint8], blends: Sequence[float]) -> list[NDArray[np.int64]]:
        """[example] the held class that scores best, for each of the blends."""
        held = np.flatnonzero(client.holds)
        chances = linear.log_chances(client.head, look(client, x), client.log_shares)
        votes = tm.class_sums(client.machine, x)[:, held] / self.threshold
        return [held[(chances + blend * votes).argmax(axis=1)] for blend in blends]


def look_around(client: Client, site: Site) -> None:
    """Notes the classes that the client holds now; the head's rows are of these."""
    client.holds = np.bincount(site.train.y, minlength=client.machine.n_classes) > 0
    held = np.flatnonzero(client.holds)
    client.log_shares, client.head = (
        linear.log_shares(site.train.y, held),
        np.zeros((len(held), 1 + len(client.clauses))),
    )


def look(client: Client, x: NDArray[np.uint8]) -> linear.Matrix:
    """[example, 1 + slot] what the pool's clauses say."""
    return linear.as_features(tm.fire_clauses(client.machine.shape, client.clauses, x))
