"""clausepool: clients put their best clauses side by side and learn together what each clause says of every class.

paper   none: Laconic's own, see docs/methods/clausepool.md
round   a client met for the first time trains a machine of its own and offers its best clauses of each class it holds;
        all sampled get the clauses they lack and the head's rows of their classes, and send back a change of these rows
merge   clauses: none, they are kept as they came; rows: mean change over those who hold the class, with momentum
sent    up: a few clauses once, then 4-bit changes of a linear head; down: everyone's clauses once, then the head
guess   logits of the head + so much of those of a private head on the client's own clauses as served all best; to both
        the log of the client's own class shares is added. With n_seed, features made from a seed join the pool
"""

from collections.abc import Mapping
from functools import partial
from typing import Literal

import numpy as np

from laconic import linear
from laconic.aggregate import Averaging, clip_long
from laconic.algorithm import ClientId, Fleet, Site, Takes, Task, on_client
from laconic.algorithms.settings import check_at_least
from laconic.algorithms.tsetlin.machines import MachineMethod, choose_shape
from laconic.algorithms.tsetlin.own_model import build_own, train_own
from laconic.algorithms.tsetlin.pool import (  # fmt: skip
    BLENDS,
    Change,
    Clauses,
    Head,
    Offer,
    empty_pool,
    expect_change,
    list_largest,
    plan_telling,
)
from laconic.algorithms.tsetlin.pool_server import PoolServer
from laconic.algorithms.tsetlin.pooled_model import PooledModel, start_pooled, trace_clauses
from laconic.algorithms.tsetlin.seeds import start_seeds
from laconic.models.background import Background
from laconic.models.machines import ClauseHeads
from laconic.models.seeds import SeededHeads
from laconic.wire import EMPTY, Message


class ClausePool(MachineMethod):
    name = "clausepool"
    averagings = ("mean", "clipped")
    budget_knob = ("precision", "n_offered")

    n_clauses: int = 300  # per class, of a client's own machine
    threshold: int = 150  # T: votes beyond which a class needs no more training
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
    precision: Literal["signs", "fine", "coarse"] = "fine"  # bits of head and change: 5 and signs, 6 and 4, or 4 and 3
    n_seed: int = 0  # features made from a seed that the head hears beside the pool's clauses
    own_seed: bool = False  # beside the private head on own clauses, one on 4000 features made from a seed
    bank: str = ""  # mirrored: images and mirror images as one; package.module:function: your own, for n_seed
    budget_bytes: int = 0  # real bytes per client and round; filled in by the run's budget
    share: bool = True  # False: the control; the head of the client's own clauses alone, and nothing is sent

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, n_offered=0 if self.n_seed else 1, min_examples=1, own_steps=1, steps=1, rate=0, decay=0)
        check_at_least(self, n_seed=0, refresh_every=0, patience=0, budget_bytes=0)
        if not 0 <= self.momentum < 1:
            raise ValueError(f"method.momentum = {self.momentum} must be at least 0 and below 1")

    @property
    def limits(self) -> linear.Limits:
        return linear.LIMITS[self.precision]

    @property
    def takes(self) -> Takes:
        return "bits+bytes" if self.n_seed or self.own_seed else "bits"

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> PoolServer:
        no_pool = np.zeros((task.n_classes, 1 + self.n_seed))
        pool = empty_pool(choose_shape(task, self.patch).n_literals)
        return PoolServer(pool, *self.plan(task), no_pool, no_pool)

    def run_round(self, server: PoolServer, fleet: Fleet) -> None:
        if not self.share:
            fleet.ask(self.learn_alone, dict.fromkeys(fleet.sampled, EMPTY), at_least=0)
            return
        members, now = server.members, fleet.round
        due = [client for client in fleet.sampled if members.is_due(client, now, self.refresh_every)]
        asked_first, expected = dict.fromkeys(due, EMPTY), server.expect_offer(self.n_offered)
        offers = fleet.ask(self.offer, asked_first, at_least=0, expect=expected, check=server.check_offer)
        for client, offer in offers.items():
            server.take_offer(client, offer, round=now, refresh_every=self.refresh_every)
        known = [client for client in fleet.sampled if client not in due or client in offers]
        asked = [client for client in known if members.is_wanted(client, now, self.patience)]
        news = server.find_news(asked)
        for client in fleet.ask(self.take_clauses, news, at_least=0):
            server.mark_told(client, news[client])
        heads = {client: self.tell_head(server, client) for client in asked}
        changes = fleet.ask(self.improve, heads, at_least=0, expect=expect_change, check=self.check_change)
        self.merge(server, changes, fleet.averaging)
        for client, change in changes.items():
            members.hear(client, now, change.n_right, change.holds)
        members.see_progress(now)
        fleet.note(n_pooled=len(server.pool.clauses), blend=server.blend, n_asked=len(asked), share_right=members.best)

    def tell_head(self, server: PoolServer, client: ClientId) -> Head:
        rows, exponents = linear.quantise(server.head[server.find_block(client)], self.limits.head)
        holds, slots = server.members.by_id[client].holds, server.find_known(client)
        return Head(holds, None if slots.all() else slots, rows, exponents, server.blend)

    def check_change(self, head: Head, change: Change) -> None:
        linear.check_quantised(change.rows, change.exponents, self.limits.change)

    def merge(self, server: PoolServer, changes: Mapping[ClientId, Change], averaging: Averaging = "mean") -> None:
        rows = [linear.dequantise(change.rows, change.exponents) for change in changes.values()]
        rows = clip_long(rows) if averaging == "clipped" else rows
        server.move_head(dict(zip(changes, rows, strict=True)), self.momentum)
        n_right = sum((change.n_right for change in changes.values()), np.zeros(len(BLENDS), np.int64))
        if n_right.any():
            server.blend = BLENDS[int(n_right.argmax())]

    def costliest_round(self, task: Task) -> list[Message]:
        """Of a client met when all others have offered, if everyone holds every class."""
        return self.list_messages(task, *self.plan(task)) if self.share else []

    def plan(self, task: Task) -> tuple[int, int]:
        """Slots that a client may know, and be told in a round."""
        n_slots = task.n_classes * self.n_offered * task.n_clients
        return plan_telling(n_slots, self.budget_bytes, partial(self.list_messages, task), may_cut=self.n_offered == 1)

    def list_messages(self, task: Task, n_known: int, n_told: int) -> list[Message]:
        n_mine, n_literals = task.n_classes * self.n_offered, choose_shape(task, self.patch).n_literals
        n_columns, n_slots = 1 + self.n_seed + n_known, n_mine * task.n_clients
        return list_largest(task.n_classes, n_literals, n_mine, n_slots, n_told, n_columns, self.limits)

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> PooledModel:
        holds = linear.find_classes(site.train.y, task.n_classes)
        machine = self.build(task, n_classes=(n_held := int(np.count_nonzero(holds))))
        seeds = start_seeds(task, n_held, n_seed=self.n_seed, bank=self.bank, own_seed=self.own_seed)
        return start_pooled(build_own(machine, holds, site.train.y), seeds, keeps_untold=self.precision == "signs")

    @on_client
    def offer(self, client: PooledModel, _: Message, site: Site) -> Offer:
        self.learn_at_home(client, site, is_due=not client.is_trained)
        client.is_trained = True  # once for each offer, however often that is lost on its way
        examples = client.own_examples(site.train)
        best = client.own.pick_best(examples, n_each=self.n_offered, min_examples=self.min_examples)
        return Offer(*best, client.own.holds, len(site.train.y), len(site.val.y))

    @on_client
    def take_clauses(self, client: PooledModel, news: Clauses, site: Site) -> None:
        client.take_clauses(news)

    @on_client
    def improve(self, client: PooledModel, sent: Head, site: Site) -> Change:
        self.learn_at_home(client, site, is_due=False)
        client.is_trained = False  # the offer has arrived; should another be wanted, the machine trains on
        client.take_head(linear.dequantise(sent.rows, sent.exponents), sent.holds, sent.slots, sent.blend)
        lesson = client.own.lesson(site.train, client.look_around(site.train.x))
        trained = linear.train(client.head, lesson, steps=self.steps, rate=self.rate, decay=self.decay)
        holds, change = client.own.holds, client.add_left_over(trained - client.head)
        rows, exponents = linear.quantise(linear.move_rows(change, holds, sent.holds), self.limits.change)
        client.keep_left_over(change - linear.move_rows(linear.dequantise(rows, exponents), sent.holds, holds))
        news = None if np.array_equal(holds, sent.holds) else holds
        return Change(news, rows, exponents, client.count_right(site.val))

    @on_client
    def learn_alone(self, client: PooledModel, _: Message, site: Site) -> None:
        """The control: nothing but the own model, whose head goes on learning."""
        if client.is_trained:
            client.own.train_head(
                client.own_examples(site.train), steps=self.own_steps, rate=self.rate, decay=self.decay
            )
        self.learn_at_home(client, site, is_due=not client.is_trained)
        client.is_trained = True

    def personal_model(self, client: PooledModel) -> ClauseHeads | SeededHeads:
        return client.as_model()

    def background(self, server: PoolServer, client: PooledModel) -> Background:
        return trace_clauses(server, client)

    # ---------------------------------------------------------------- pieces
    def learn_at_home(self, client: PooledModel, site: Site, *, is_due: bool) -> None:
        """If that is due, or if the client has come to hold other classes than before."""
        own, before = client.own, client.own.holds
        if is_due or not np.array_equal(before, linear.find_classes(site.train.y, len(before))):
            examples, how = client.own_examples(site.train), {"rate": self.rate, "decay": self.decay}
            train_own(own, examples, site.rng, epochs=self.epochs)
            own.train_head(examples, steps=self.own_steps, **how)
            if client.seeds is not None:
                client.seeds.train(site.train, own.holds, steps=self.own_steps, **how)
            client.take_classes(before)
