"""seedhead: a linear head that all train, on features that both ends make from a seed.

paper   none: Laconic's own, see docs/methods/seedhead.md; the control of clausepool
round   all sampled get the head's rows of their classes, train these on their own examples and send back the change
merge   rows: mean change over those who hold the class, with momentum
sent    up: signs of what stands out in the change of a linear head; down: the head, in 5 bits a number
guess   logits of the head, and the log of the client's own class shares
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from laconic import banks, linear
from laconic.aggregate import Averaging, clip_long
from laconic.algorithm import Algorithm, ClientId, Examples, Fleet, Site, Task, on_client
from laconic.algorithms.settings import check_at_least, check_share
from laconic.models import seeds as models
from laconic.wire import EMPTY, Bits, Count, Due, Expected, Ints, Message


class Hello(Message):
    holds: Bits  # [class]
    n_examples: Count


class Head(Message):
    holds: Bits  # [class] those that have rows
    rows: Ints  # [such class, 1 + feature]
    exponents: Ints  # [such class]


class Change(Message):
    holds: Bits | None  # [class] those held now; None: those that the head has rows of
    rows: Ints  # as the head's
    exponents: Ints


@dataclass
class Member:
    holds: NDArray[np.bool_]  # [class]
    n_examples: int


@dataclass
class Server:
    head: linear.Matrix  # [class, 1 + feature]
    speed: linear.Matrix  # likewise; momentum
    members: dict[ClientId, Member] = field(default_factory=dict)


@dataclass
class Client:
    bank: banks.Choice
    holds: NDArray[np.bool_]  # [class]
    log_shares: linear.Matrix  # [held class]
    head: linear.Matrix  # [held class, 1 + feature] as it came, or of its own
    left_over: linear.Matrix  # likewise: of changes, what was not told yet


def expect_change(head: Head) -> Expected:
    fields = {"rows": head.rows, "exponents": head.exponents}
    same = {name: Due(array.shape, item_bytes=array.itemsize) for name, array in fields.items()}
    return same | {"holds": Due(head.holds.shape, may_lack=True)}


class SeedHead(Algorithm):
    name = "seedhead"
    takes = "bytes"
    averagings = ("mean", "clipped")
    budget_knob = "n_seed"

    n_seed: int = 480  # features of the bank
    bank: str = ""  # package.module:function, one of your own; "": made from public photographs
    steps: int = 20  # gradient steps on the head a round
    rate: float = 170.0  # of these steps, shared out among the features
    decay: float = 1e-4  # pulls the head's weights to zero
    momentum: float = 0.6  # share of the last change in the next
    precision: Literal["signs", "fine", "coarse"] = "signs"  # bits of head and change: 5 and signs, 6 and 4, or 4 and 3
    share: bool = True  # False: a private head on 4000 features, trained once, and nothing is sent
    own_steps: int = 100  # on the private head

    def __post_init__(self) -> None:
        check_at_least(self, n_seed=1, steps=1, rate=0, decay=0, own_steps=1)
        check_share(self, "momentum")

    @property
    def limits(self) -> linear.Limits:
        return linear.LIMITS[self.precision]

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        nothing = np.zeros((task.n_classes, 1 + self.n_seed))
        return Server(nothing, nothing)

    def run_round(self, server: Server, fleet: Fleet) -> None:
        if not self.share:
            fleet.ask(self.learn_alone, dict.fromkeys(fleet.sampled, EMPTY), at_least=0)
            return
        strangers = [client for client in fleet.sampled if client not in server.members]
        expected = {"holds": Due((len(server.head),))}
        for client, hello in fleet.ask(self.join, dict.fromkeys(strangers, EMPTY), at_least=0, expect=expected).items():
            server.members[client] = Member(hello.holds, hello.n_examples)
        heads = {client: self.tell_head(server, client) for client in fleet.sampled if client in server.members}
        changes = fleet.ask(self.improve, heads, at_least=0, expect=expect_change, check=self.check_change)
        self.merge(server, changes, fleet.averaging)

    def tell_head(self, server: Server, client: ClientId) -> Head:
        holds = server.members[client].holds
        return Head(holds, *linear.quantise(server.head[holds], self.limits.head))

    def check_change(self, head: Head, change: Change) -> None:
        linear.check_quantised(change.rows, change.exponents, self.limits.change)

    def merge(self, server: Server, changes: Mapping[ClientId, Change], averaging: Averaging = "mean") -> None:
        rows = [linear.dequantise(change.rows, change.exponents) for change in changes.values()]
        rows = clip_long(rows) if averaging == "clipped" else rows
        blocks = [((server.members[client].holds,), mine) for client, mine in zip(changes, rows, strict=True)]
        sizes = [server.members[client].n_examples for client in changes]
        mean, is_held = linear.average_blocks(server.head.shape, blocks, sizes)
        server.speed = np.where(is_held, self.momentum * server.speed + mean, server.speed)
        server.head = server.head + np.where(is_held, server.speed, 0)
        for client, change in changes.items():
            if change.holds is not None:
                server.members[client].holds = change.holds

    def costliest_round(self, task: Task) -> list[Message]:
        if not self.share:
            return []
        per_class = np.zeros(task.n_classes, np.int8)
        rows = np.zeros((task.n_classes, 1 + self.n_seed), np.int8)
        head = Head(per_class > 0, rows, per_class).limited(rows=self.limits.head)
        change = Change(per_class > 0, rows, per_class).limited(rows=self.limits.change)
        return [Hello(per_class > 0, 0), head, change]

    def check_task(self, task: Task) -> None:
        super().check_task(task)
        self.choose(task).open()

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        holds = linear.find_classes(site.train.y, task.n_classes)
        bank = self.choose(task)
        nothing = np.zeros((np.count_nonzero(holds), 1 + bank.open().n_features))
        return Client(bank, holds, linear.log_shares(site.train.y, np.flatnonzero(holds)), nothing, nothing)

    @on_client
    def join(self, client: Client, _: Message, site: Site) -> Hello:
        return Hello(client.holds, len(site.train.y))

    @on_client
    def improve(self, client: Client, sent: Head, site: Site) -> Change:
        lesson = self.prepare(client, site.train)
        client.head = linear.move_rows(linear.dequantise(sent.rows, sent.exponents), sent.holds, client.holds)
        trained = linear.train(client.head, lesson, steps=self.steps, rate=self.rate, decay=self.decay)
        change = trained - client.head + client.left_over
        rows, exponents = linear.quantise(linear.move_rows(change, client.holds, sent.holds), self.limits.change)
        told = linear.move_rows(linear.dequantise(rows, exponents), sent.holds, client.holds)
        client.left_over = change - told
        return Change(None if np.array_equal(client.holds, sent.holds) else client.holds, rows, exponents)

    @on_client
    def learn_alone(self, client: Client, _: Message, site: Site) -> None:
        """The other control, trained anew whenever it is asked."""
        lesson = self.prepare(client, site.train)
        client.head = linear.train_wide(lesson, steps=self.own_steps, rate=self.rate, decay=self.decay)

    def personal_model(self, client: Client) -> models.SeedHead:
        return models.SeedHead(client.bank, client.head, client.holds, client.log_shares)

    # ---------------------------------------------------------------- pieces
    def choose(self, task: Task) -> banks.Choice:
        return banks.Choice(task.input_shape, self.n_seed if self.share else 0, self.bank)

    def prepare(self, client: Client, examples: Examples) -> linear.Lesson:
        """A lesson of the classes that the client holds now, if these are others than before."""
        holds, before = linear.find_classes(examples.y, len(client.holds)), client.holds
        client.holds, client.log_shares = holds, linear.log_shares(examples.y, np.flatnonzero(holds))
        client.left_over = linear.move_rows(client.left_over, before, holds)
        places = np.searchsorted(np.flatnonzero(holds), examples.y)
        return linear.Lesson(linear.as_features(client.bank.read(examples.x)), places, client.log_shares)
