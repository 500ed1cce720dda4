"""seedhead: a linear head that all train, on features that both ends make from a seed.

paper   none: Laconic's own, see docs/methods/seedhead.md; the control of clausepool
round   all sampled get the head's rows of their classes, train these on their own examples and send back the change;
        with one_shot they tell the means of their classes, once, and get everyone's
merge   rows: mean change over those who hold the class, with momentum
sent    up: signs of what stands out in the change of a linear head; down: the head, in 5 bits a number
guess   logits of the head, and the log of the client's own class shares
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from laconic import banks, linear
from laconic.aggregate import Averaging, clip_long
from laconic.algorithm import Algorithm, ClientId, Examples, Fleet, Site, Task, on_client
from laconic.algorithms.heads.one_shot import (
    MEANS_LIMIT,
    ClassMeans,
    Means,
    check_means,
    expect_means,
    find_means,
    fit_head,
)
from laconic.algorithms.heads.shared_head import Change, Head, Hello, Member, Server, expect_change
from laconic.algorithms.settings import check_at_least, check_share
from laconic.models import seeds as models
from laconic.wire import EMPTY, Due, Message


@dataclass
class Client:
    bank: banks.Choice
    holds: NDArray[np.bool_]  # [class]
    log_shares: linear.Matrix  # [held class]
    head: linear.Matrix  # [held class, 1 + feature] as it came, or of its own
    left_over: linear.Matrix  # likewise: of changes, what was not told yet


class SeedHead(Algorithm):
    name = "seedhead"
    takes = "bytes"
    averagings = ("mean", "clipped")
    budget_knob = "n_seed"

    n_seed: int = 480  # features of the bank
    bank: str = ""  # mirrored: images and mirror images as one; or package.module:function, one of your own
    steps: int = 20  # gradient steps on the head a round
    rate: float = 170.0  # of these steps, shared out among the features
    decay: float = 1e-4  # pulls the head's weights to zero
    momentum: float = 0.6  # share of the last change in the next
    precision: Literal["signs", "fine", "coarse"] = "signs"  # bits of head and change: 5 and signs, 6 and 4, or 4 and 3
    one_shot: bool = False  # class means are told once, in place of a head in every round
    ridge: float = 0.5  # one_shot: added to the variance of each feature
    share: bool = True  # False: a private head on 4000 features, trained once, and nothing is sent
    own_steps: int = 100  # on the private head

    def __post_init__(self) -> None:
        check_at_least(self, n_seed=1, steps=1, rate=0, decay=0, ridge=1e-3, own_steps=1)
        check_share(self, "momentum")

    @property
    def limits(self) -> linear.Limits:
        return linear.LIMITS[self.precision]

    def check_averaging(self, averaging: Averaging) -> None:
        super().check_averaging(averaging)
        if self.one_shot and averaging != "mean":
            raise ValueError(f'fleet.averaging = "{averaging}" is not for method.one_shot, which takes plain means')

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        nothing, no_counts = np.zeros((task.n_classes, 1 + self.n_seed)), np.zeros(task.n_classes, np.int64)
        return Server(nothing, nothing, ClassMeans(np.zeros((task.n_classes, self.n_seed)), no_counts))

    def run_round(self, server: Server, fleet: Fleet) -> None:
        if not self.share:
            fleet.ask(self.learn_alone, dict.fromkeys(fleet.sampled, EMPTY), at_least=0)
        elif self.one_shot:
            self.meet(server.means, fleet)
        else:
            self.move_on(server, fleet)

    def meet(self, means: ClassMeans, fleet: Fleet) -> None:
        """Those who were not met before tell their means, and get everyone's."""
        new, (n_classes, n_features) = [c for c in fleet.sampled if c not in means.holders], means.totals.shape
        expected = expect_means(n_classes, n_features)
        means.take(fleet.ask(self.tell_means, dict.fromkeys(new, EMPTY), 0, expected, check=check_means))
        told = {client: means.find(client) for client in new if client in means.holders}
        heads = {c: Head(means.holders[c], *linear.quantise(rows, MEANS_LIMIT)) for c, rows in told.items()}
        fleet.ask(self.take_means, heads, at_least=0)

    def move_on(self, server: Server, fleet: Fleet) -> None:
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
        server.move(changes, rows, self.momentum)

    def costliest_round(self, task: Task) -> list[Message]:
        if not self.share:
            return []
        per_class, rows = np.zeros(task.n_classes, np.int8), np.zeros((task.n_classes, 1 + self.n_seed), np.int8)
        if self.one_shot:
            means = Means(per_class > 0, per_class.astype(np.int64), rows[:, 1:], per_class)
            return [
                message.limited(rows=MEANS_LIMIT) for message in (means, Head(per_class > 0, rows[:, 1:], per_class))
            ]
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
    def tell_means(self, client: Client, _: Message, site: Site) -> Means:
        means, counts = find_means(self.prepare(client, site.train))
        return Means(client.holds, counts, *linear.quantise(means, MEANS_LIMIT))

    @on_client
    def take_means(self, client: Client, sent: Head, site: Site) -> None:
        means = linear.move_rows(linear.dequantise(sent.rows, sent.exponents), sent.holds, client.holds)
        client.head = fit_head(self.prepare(client, site.train), means, self.ridge)

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
