"""CS-pFedTM: a private and a shared Tsetlin Machine each; the more alike the clients, the more clauses are shared.

start   sampled clients train a small reference machine and say which clauses it uses: the split follows from these
round   sampled clients train both machines and send the shared one's weights, the two best its include bits too
merge   weights: mean by examples, blended with the old; include bits: OR of the two; everyone gets the shared machine
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from laconic import tsetlin as tm
from laconic.aggregate import Averaging, average_weights, highest, jaccard, mean_of_pairs, richest, unite_states
from laconic.algorithm import Algorithm, ClientId, Fleet, Site, Task, check_shape, count_affordable, on_client
from laconic.algorithms.settings import check_at_least, check_share
from laconic.algorithms.tsetlin.machines import (
    check_rebuilding,
    choose_shape,
    held_out,
    paper_clause_bytes,
    paper_state_bits,
    rebuild,
    resize,
)
from laconic.wire import EMPTY, Bits, Ints, Message

Classes = NDArray[np.bool_]  # [class]


class Reference(Message):
    used: Bits  # [class, clause] includes any literal; at bit level [class, clause, literal]


class Order(Message):
    n_shared: int  # clauses per class


class Update(Message, paper_bits={"weights": 32, "per_class": 0}):
    weights: Ints  # [class, clause]
    n_examples: int
    accuracy: float  # on examples set aside
    per_class: Ints | None  # examples; left out where masked weights tell all that is needed


class Wanted(Message, paper_bits={"classes": 0}):
    classes: Bits  # [class] whose include bits are wanted


class States(Message, paper_bits={"states": paper_state_bits}):
    states: Bits  # [class wanted, clause, literal]


class Shared(Message, paper_bits={"weights": 32, "states": paper_state_bits}):
    weights: Ints  # [class, clause]
    states: Bits  # [class, clause, literal]


@dataclass
class Server:
    task: Task
    shared: tm.Machine | None  # None: nothing is shared
    is_merged: Classes  # once in any round
    similarity: float = 0.0  # of the clients that last took part in a reference round
    accuracy: dict[ClientId, float] = field(default_factory=dict)  # when last heard of

    def check_update(self, order: Order, update: Update) -> None:
        check_shape("weights", update.weights, (self.task.n_classes, order.n_shared))
        if update.per_class is not None:
            check_shape("per_class", update.per_class, (self.task.n_classes,))


@dataclass
class Client:
    task: Task
    machines: dict[str, tm.Machine]  # "private" and "shared", those that have clauses
    holds: Classes  # has training examples of it
    spans: dict[str, float]  # of each machine's sums on examples set aside
    is_gated: bool = False  # the shared machine does not help


class CSpFedTM(Algorithm):
    n_clauses: int = 200  # per class, private and shared together
    n_shared: int | None = None  # of these; unset: by similarity, within the bytes; 0: nothing is shared
    download_bytes: int = 10_000  # tau: most that the shared machine may take in a round, by the paper's count
    budget_bytes: int = 0  # real bytes per client and round, in place of tau; filled in by the run's budget
    n_reference: int = 10  # clauses per class of the reference machine
    similarity: Literal["clause", "clause-unmasked", "bit"] = "clause"  # clauses used: of held or all classes; or bits
    reestimate_every: int = 0  # rounds from one reference round to the next; 0: the first is the only one
    threshold: int = 150  # T: votes beyond which a class needs no more training
    specificity: float = 5.0  # s: the larger, the more literals a clause keeps
    patch: int | None = None  # side of the square patches; 0: the whole image; unset: 10, or the whole if it is small
    epochs: int = 1  # local epochs a round
    mask: bool = True  # clients zero the weights of classes they lack, before sending and after receiving
    blend: float = 0.5  # delta: share of the new mean in the merged weights
    holders_only: bool = False  # who lacks a class has no part in its mean weights; else their zeros do
    donors: Literal["performance", "samples"] = "performance"  # whose include bits: of the best, or richest in a class
    n_donors: int = 2  # clients whose include bits are merged
    normaliser: Literal["dataset", "sample"] = "dataset"  # a machine's sums are divided by their span over these
    present_only: bool = True  # clients predict classes they hold; else a masked class beats all that are negative
    gate: bool = False  # a client uses the shared machine only if that helps on its examples set aside
    include_state: int = 128  # automata are rebuilt as weak includes
    exclude_state: int = 95  # and excludes well below the boundary, so that training first thins clauses out
    keep_depth: bool = False  # automata that agree with the received bit keep their own state

    def __post_init__(self) -> None:
        check_at_least(self, n_clauses=1, n_shared=0, download_bytes=0, budget_bytes=0, n_reference=1)
        check_at_least(self, reestimate_every=0, threshold=1, specificity=1, patch=0, epochs=1, n_donors=1)
        check_share(self, "blend")
        check_rebuilding(self)
        if self.n_shared is not None and self.n_shared > self.n_clauses:
            raise ValueError(f"method.n_shared = {self.n_shared} must be at most n_clauses, {self.n_clauses}")

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        server = Server(task, None, np.zeros(task.n_classes, np.bool_))
        self.split(server, fleet)
        return server

    def run_round(self, server: Server, fleet: Fleet) -> None:
        if self.reestimate_every and fleet.round % self.reestimate_every == 0:
            self.split(server, fleet)
        n_shared = server.shared.n_clauses if server.shared else 0
        fleet.note(n_shared=n_shared, n_private=self.n_clauses - n_shared)
        if self.n_shared is None:
            fleet.note(similarity=server.similarity)
            if self.budget_bytes:
                n_affordable = self.afford_by_paper(server.task)
                fleet.note(n_shared_by_paper=self.count_shared(n_affordable, server.similarity))
        replies = fleet.ask(self.train, dict.fromkeys(fleet.sampled, Order(n_shared)), check=server.check_update)
        if server.shared is None:
            return
        updates = {client: reply for client, reply in replies.items() if reply is not None}
        wanted = self.choose_donors(server, updates)
        if self.donors == "performance":
            fleet.note(**{f"donor_{place}": client for place, client in enumerate(wanted, start=1)})
        before = tm.include_bits(server.shared)
        sent = fleet.ask(
            self.give_states,
            {client: Wanted(classes) for client, classes in wanted.items()},
            check=lambda wanted, reply: check_shape("states", reply.states, before[wanted.classes].shape),
        )
        server.accuracy |= {client: update.accuracy for client, update in updates.items()}
        self.merge_weights(server, server.shared, list(updates.values()), fleet.averaging)
        arrived = [(wanted[client], reply.states) for client, reply in sent.items()]
        states = unite_states(before, arrived)
        tm.load_include_bits(server.shared, states)
        fleet.ask(self.install, dict.fromkeys(fleet.everyone, Shared(server.shared.weights, states)), at_least=0)

    def split(self, server: Server, fleet: Fleet) -> None:
        """Decides how many clauses are shared; a machine that stays keeps its first ones."""
        n_shared = self.n_shared
        if n_shared is None:
            due = self.describe(self.build(server.task, self.n_reference)).used.shape
            replies = fleet.ask(
                self.train_reference,
                dict.fromkeys(fleet.sampled, EMPTY),
                at_least=0,
                check=lambda _, reply: check_shape("used", reply.used, due),
            )
            if len(replies) > 1:
                alike = jaccard([reply.used for reply in replies.values()])
                server.similarity = mean_of_pairs(alike)
                fleet.note_pairs(list(replies), similarity=alike)
            n_affordable = self.afford(server.task)
            n_shared = self.count_shared(n_affordable, server.similarity)
            fleet.note(
                similarity=server.similarity,
                n_affordable=n_affordable,
                n_affordable_by_paper=self.afford_by_paper(server.task),
                paper_reference_bytes=self.n_reference * paper_clause_bytes(server.task, self.patch) * len(replies),
            )
        if n_shared == 0:
            server.shared = None
        else:
            server.shared = resize(server.shared or self.build(server.task, n_shared), n_shared)

    def afford(self, task: Task) -> int:
        """Most clauses per class to share: at most half, and no more than the bytes allow in the worst case."""
        if not self.budget_bytes:
            return self.afford_by_paper(task)
        sizes = range(1, self.n_clauses // 2 + 1)
        return count_affordable(self.budget_bytes, sizes, lambda n: self.list_messages(task, n))

    def afford_by_paper(self, task: Task) -> int:
        """The same by the paper's count: of tau, for the download, or of a budget, for both ways."""
        n_bytes = self.budget_bytes // 2 if self.budget_bytes else self.download_bytes
        return min(n_bytes // paper_clause_bytes(task, self.patch), self.n_clauses // 2)

    def count_shared(self, n_affordable: int, similarity: float) -> int:
        """From none, if clients have nothing in common, to all that is affordable, if they use the same clauses."""
        least_private = 1 - n_affordable / self.n_clauses
        n_private = int(self.n_clauses * least_private**similarity + 1e-9)  # 1e-9: rounding must not cost a clause
        return self.n_clauses - n_private

    def choose_donors(self, server: Server, updates: Mapping[ClientId, Update]) -> dict[ClientId, Classes]:
        """[class] whose include bits are wanted, of each donor; the best come first, ties go to the lower id."""
        is_held: Classes = np.any([find_held(update) for update in updates.values()], axis=0)
        if self.donors == "performance":  # whoever is new is ranked by how it does now
            ranks = {client: server.accuracy.get(client, update.accuracy) for client, update in updates.items()}
            return dict[ClientId, Classes].fromkeys(highest(ranks, self.n_donors), is_held)
        counts = {client: update.per_class for client, update in updates.items() if update.per_class is not None}
        chosen = [richest(counts, label, self.n_donors) for label in range(len(is_held))]
        wanted = {client: np.array([client in donors for donors in chosen]) for client in counts}
        return {client: classes for client, classes in wanted.items() if classes.any()}

    def merge_weights(self, server: Server, shared: tm.Machine, updates: list[Update], how: Averaging = "mean") -> None:
        held = [find_held(update) for update in updates]
        is_held = np.any(held, axis=0)
        shared.weights[...] = average_weights(
            shared.weights,
            [update.weights for update in updates],
            [u.n_examples * (mine if self.holders_only else 1) for u, mine in zip(updates, held, strict=True)],
            blend=self.blend,
            is_new=~server.is_merged,
            is_held=is_held,
            how=how,
        )
        server.is_merged |= is_held

    def costliest_round(self, task: Task) -> list[Message]:
        return self.list_messages(task, self.afford(task) if self.n_shared is None else self.n_shared)

    def list_messages(self, task: Task, n_shared: int) -> list[Message]:
        """What a donor of every class gets and sends, in a round that begins with a reference round."""
        messages: list[Message] = [Order(n_shared)]
        if self.n_shared is None:
            messages.append(self.describe(self.build(task, self.n_reference)))
        if n_shared:
            machine, per_class = self.build(task, n_shared), np.zeros(task.n_classes, np.int64)
            weights, states = machine.weights, tm.include_bits(machine)
            messages += [Update(weights, 0, 0.0, per_class), Wanted(per_class > 0)]
            messages += [States(states), Shared(weights, states)]
        return messages

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        holds = np.bincount(site.train.y, minlength=task.n_classes) > 0
        return Client(task, {"private": self.build(task, self.n_clauses)}, holds, {"private": 1.0})

    @on_client
    def train_reference(self, client: Client, _: Message, site: Site) -> Reference:
        machine = self.build(client.task, self.n_reference)
        machine.threshold = max(1, self.threshold * self.n_reference // self.n_clauses)
        tm.fit(machine, *site.train, site.rng, epochs=self.epochs)
        reference = self.describe(machine)
        if self.similarity == "clause":
            reference.used[np.bincount(site.train.y, minlength=client.task.n_classes) == 0] = False
        return reference

    @on_client
    def train(self, client: Client, order: Order, site: Site) -> Update | None:
        per_class = self.prepare(client, order.n_shared, site)
        for machine in client.machines.values():
            tm.fit(machine, *site.train, site.rng, epochs=self.epochs)
        self.mask_weights(client)
        accuracy = self.judge(client, site)
        if not order.n_shared:
            return None
        tells_counts = self.donors == "samples" or not self.mask
        half = float(np.float16(accuracy))  # three bytes on the wire; fine enough to rank by
        return Update(client.machines["shared"].weights, len(site.train.y), half, per_class if tells_counts else None)

    @on_client
    def give_states(self, client: Client, wanted: Wanted, site: Site) -> States:
        return States(tm.include_bits(client.machines["shared"])[wanted.classes])

    @on_client
    def install(self, client: Client, shared: Shared, site: Site) -> None:
        self.prepare(client, shared.weights.shape[1], site)
        rebuild(client.machines["shared"], shared.weights, shared.states, self)
        self.mask_weights(client)
        self.judge(client, site)

    def predict(self, client: Client, x: NDArray[np.uint8]) -> NDArray[np.int64]:
        in_use = [name for name in client.machines if name == "private" or not client.is_gated]
        return self.choose(client, {name: tm.clamped_sums(client.machines[name], x) for name in in_use})

    # ---------------------------------------------------------------- pieces
    def build(self, task: Task, n_clauses: int) -> tm.Machine:
        shape = choose_shape(task, self.patch)
        return tm.build(shape, task.n_classes, n_clauses, threshold=self.threshold, specificity=self.specificity)

    def describe(self, machine: tm.Machine) -> Reference:
        return Reference(tm.include_bits(machine) if self.similarity == "bit" else tm.clause_activity(machine))

    def prepare(self, client: Client, n_shared: int, site: Site) -> NDArray[np.int64]:
        """Splits the clauses so, and looks at what the client now has: [class] training examples."""
        sizes = {"private": self.n_clauses - n_shared, "shared": n_shared}
        client.machines = {
            name: resize(client.machines.get(name) or self.build(client.task, size), size)
            for name, size in sizes.items()
            if size
        }
        per_class = np.bincount(site.train.y, minlength=client.task.n_classes)
        client.holds = per_class > 0
        return per_class

    def mask_weights(self, client: Client) -> None:
        if self.mask:
            for machine in client.machines.values():
                machine.weights[~client.holds] = 0

    def judge(self, client: Client, site: Site) -> float:
        """Measures the machines' spans and shuts the gate if need be; the accuracy of what the client then uses."""
        examples = held_out(site)
        sums = {name: tm.clamped_sums(machine, examples.x) for name, machine in client.machines.items()}
        client.spans = {name: tm.measure_span(each) for name, each in sums.items()}
        groups = {name: {name: each} for name, each in sums.items()} | {"both": sums}
        scores = {name: float(np.mean(self.choose(client, each) == examples.y)) for name, each in groups.items()}
        client.is_gated = self.gate and "private" in sums and scores["both"] <= scores["private"]
        site.note(**{f"{name}_accuracy": each for name, each in scores.items()})
        if self.gate:
            site.note(is_gated=client.is_gated)
        return scores["private" if client.is_gated else "both"]

    def choose(self, client: Client, sums: dict[str, NDArray[np.int32]]) -> NDArray[np.int64]:
        """[example] classes, by the sums [example, class] of these machines together."""
        spans = [client.spans[name] for name in sums] if self.normaliser == "dataset" else None
        votes = tm.combine(list(sums.values()), spans)
        if self.present_only:
            votes[:, ~client.holds] = -np.inf
        best: NDArray[np.int64] = votes.argmax(axis=1)
        return best


def find_held(update: Update) -> Classes:
    """[class] that the client has examples of; masked weights tell, for others never fall below 1."""
    return np.any(update.weights != 0, axis=1) if update.per_class is None else update.per_class > 0
