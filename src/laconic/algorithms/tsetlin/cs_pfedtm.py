"""CS-pFedTM: a private and a shared Tsetlin Machine each; the more alike the clients, the more clauses are shared.

paper   CS-pFedTM: Communication-Efficient and Similarity-Based Personalized Federated Learning with Tsetlin Machine
start   sampled clients train a small reference machine and say which clauses it uses: the split follows from these
round   sampled clients train both machines and send the shared one's weights, the two best its include bits too
merge   weights: mean by examples, blended with the old; include bits: OR of the two; everyone gets the shared machine
sent    up: weights of the shared machine, from the two best clients its include bits too; down: the merged one; at the
        start, up: which clauses of the reference machine are used
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from laconic import tsetlin as tm
from laconic.aggregate import EVERY_AVERAGING, Averaging, average_weights, find_donors, highest, unite_states
from laconic.algorithm import ClientId, Fleet, Site, Task, on_client
from laconic.algorithms.tsetlin.machines import LARGEST_VOTE, Merged, held_out, paper_state_bits, resize
from laconic.algorithms.tsetlin.splitting import SplitMethod
from laconic.algorithms.tsetlin.two_machines import Classes, Sums, TwoMachines
from laconic.models.machines import Composite
from laconic.wire import Bits, Count, CountArray, Due, Ints, Message, Share


class Order(Message):
    n_shared: int  # clauses per class


class Update(Message, paper_bits={"weights": 32, "per_class": 0}):
    weights: Ints  # [class, clause]
    n_examples: Count
    accuracy: Share  # on examples set aside
    per_class: CountArray | None  # examples; left out where masked weights tell all that is needed

    def find_held(self) -> Classes:
        """[class] that the client has examples of; masked weights tell, for others never fall below 1."""
        return np.any(self.weights != 0, axis=1) if self.per_class is None else self.per_class > 0


class Wanted(Message, paper_bits={"classes": 0}):
    classes: Bits  # [class] whose include bits are wanted


class States(Message, paper_bits={"states": paper_state_bits}):
    states: Bits  # [class wanted, clause, literal]


@dataclass
class Server:
    task: Task
    shared: tm.Machine | None  # None: nothing is shared
    is_merged: Classes  # once in any round
    similarity: float = 0.0  # of the clients that last took part in a reference round
    accuracy: dict[ClientId, float] = field(default_factory=dict)  # when last heard of


class CSpFedTM(SplitMethod):
    name = "cs-pfedtm"
    client_notes = ("private_accuracy", "shared_accuracy", "both_accuracy", "is_gated")
    averagings = EVERY_AVERAGING

    threshold: int = 150  # T: votes beyond which a class needs no more training
    mask: bool = True  # clients zero the weights of classes they lack, before sending and after receiving
    blend: float = 0.5  # delta: share of the new mean in the merged weights
    holders_only: bool = False  # who lacks a class has no part in its mean weights; else their zeros do
    donors: Literal["performance", "samples"] = "performance"  # whose include bits: of the best, or richest in a class
    normaliser: Literal["dataset", "sample"] = "dataset"  # a machine's sums are divided by their span over these
    present_only: bool = True  # clients predict classes they hold; else a masked class beats all that are negative
    gate: bool = False  # a client uses the shared machine only if that helps on its examples set aside
    tested: Literal["merged", "trained"] = "merged"  # with the shared machine that came, or the one it last trained

    @property
    def tells_counts(self) -> bool:
        """Else masked weights tell all that is needed."""
        return self.donors == "samples" or not self.mask

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        server = Server(task, None, np.zeros(task.n_classes, np.bool_))
        self.split(server, fleet)
        return server

    def run_round(self, server: Server, fleet: Fleet) -> None:
        if self.reestimate_every and fleet.round % self.reestimate_every == 0:
            self.split(server, fleet)
        n_shared = server.shared.n_clauses if server.shared else 0
        self.note_split(server.task, fleet, n_shared, server.similarity)
        weights = Due((server.task.n_classes, n_shared), LARGEST_VOTE)
        expected = {"weights": weights, "per_class": Due((server.task.n_classes,)) if self.tells_counts else None}
        replies = fleet.ask(self.train, dict.fromkeys(fleet.sampled, Order(n_shared)), expect=expected)
        if server.shared is None:
            return
        updates = {client: reply for client, reply in replies.items() if reply is not None}
        wanted = self.choose_donors(server, updates)
        if self.donors == "performance":
            fleet.note(**{f"donor_{place}": client for place, client in enumerate(wanted, start=1)})
        before, orders = tm.include_bits(server.shared), {client: Wanted(classes) for client, classes in wanted.items()}
        sent = fleet.ask(self.give_states, orders, expect=lambda order: {"states": Due(before[order.classes].shape)})
        server.accuracy |= {client: update.accuracy for client, update in updates.items()}
        self.merge_weights(server, server.shared, list(updates.values()), fleet.averaging)
        arrived = [(wanted[client], reply.states) for client, reply in sent.items()]
        states = unite_states(before, arrived)
        tm.load_include_bits(server.shared, states)
        fleet.ask(self.install, dict.fromkeys(fleet.everyone, Merged(server.shared.weights, states)), at_least=0)

    def split(self, server: Server, fleet: Fleet) -> None:
        """Decides how many clauses are shared; a machine that stays keeps its first ones."""
        n_shared = self.n_shared
        if n_shared is None:
            n_shared, server.similarity = self.estimate_split(server.task, fleet, server.similarity)
        server.shared = resize(server.shared or self.build(server.task, n_shared), n_shared) if n_shared else None

    def choose_donors(self, server: Server, updates: Mapping[ClientId, Update]) -> dict[ClientId, Classes]:
        """[class] whose include bits are wanted, of each donor; the best come first, ties go to the lower id."""
        is_held: Classes = np.any([update.find_held() for update in updates.values()], axis=0)
        if self.donors == "performance":  # whoever is new is ranked by how it does now
            ranks = {client: server.accuracy.get(client, update.accuracy) for client, update in updates.items()}
            return dict[ClientId, Classes].fromkeys(highest(ranks, self.n_donors), is_held)
        counts = {client: update.per_class for client, update in updates.items() if update.per_class is not None}
        return {client: classes for client, classes in find_donors(counts, self.n_donors).items() if classes.any()}

    def merge_weights(
        self, server: Server, shared: tm.Machine, updates: list[Update], averaging: Averaging = "mean"
    ) -> None:
        held = [update.find_held() for update in updates]
        classes = {"is_new": ~server.is_merged, "is_held": np.any(held, axis=0)}
        sizes = [u.n_examples * (mine if self.holders_only else 1) for u, mine in zip(updates, held, strict=True)]
        weights = [update.weights for update in updates]
        shared.weights[...] = average_weights(
            shared.weights, weights, sizes, blend=self.blend, averaging=averaging, **classes
        )
        server.is_merged |= classes["is_held"]

    def list_messages(self, task: Task, n_shared: int) -> list[Message]:
        """What a donor of every class gets and sends, in a round that begins with a reference round."""
        messages: list[Message] = [Order(n_shared)]
        if self.n_shared is None:
            messages.append(self.describe(self.build(task, self.n_reference)))
        if n_shared:
            machine, per_class = self.build(task, n_shared), np.zeros(task.n_classes, np.int64)
            weights, states = machine.weights, tm.include_bits(machine)
            asked = [Update(weights, 0, 0.0, per_class), Wanted(per_class > 0), States(states)]
            messages += [*asked, Merged(weights, states)]
        return messages

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> TwoMachines:
        holds = np.bincount(site.train.y, minlength=task.n_classes) > 0
        return TwoMachines(task, {"private": self.build(task)}, holds, {"private": 1.0})

    @on_client
    def train(self, client: TwoMachines, order: Order, site: Site) -> Update | None:
        sizes = {"private": self.n_clauses - order.n_shared, "shared": order.n_shared}
        per_class = client.prepare(site.train.y, self.build, **sizes)
        client.machines.pop("trained", None)
        for machine in client.machines.values():
            tm.fit(machine, *site.train, site.rng, epochs=self.epochs)
        accuracy = self.mask_and_judge(client, site)
        if not order.n_shared:
            return None
        if self.tested == "trained":
            client.keep_trained()
        weights, counts = client.machines["shared"].weights, per_class if self.tells_counts else None
        return Update(weights, len(site.train.y), float(np.float16(accuracy)), counts)  # fine enough to rank by

    @on_client
    def give_states(self, client: TwoMachines, wanted: Wanted, site: Site) -> States:
        return States(tm.include_bits(client.machines["shared"])[wanted.classes])

    @on_client
    def install(self, client: TwoMachines, shared: Merged, site: Site) -> None:
        n_shared = shared.weights.shape[1]
        client.prepare(site.train.y, self.build, private=self.n_clauses - n_shared, shared=n_shared)
        self.rebuild(client.machines["shared"], shared)
        self.mask_and_judge(client, site)

    def personal_model(self, client: TwoMachines) -> Composite:
        in_use = {name: each for name, each in client.list_voters().items() if name == "private" or not client.is_gated}
        return Composite(in_use, self.find_spans(client, in_use), client.holds if self.present_only else None)

    # ---------------------------------------------------------------- pieces
    def mask_and_judge(self, client: TwoMachines, site: Site) -> float:
        """Shuts the gate if need be; the accuracy of what the client then uses."""
        if self.mask:
            client.mask_weights()
        scores = client.judge(held_out(site), lambda sums: self.choose(client, sums))
        client.is_gated = self.gate and "private" in scores and scores["both"] <= scores["private"]
        gate = {"is_gated": float(client.is_gated)} if self.gate else {}
        site.note(**{f"{name}_accuracy": each for name, each in scores.items()}, **gate)
        return scores["private" if client.is_gated else "both"]

    def choose(self, client: TwoMachines, sums: Sums) -> NDArray[np.int64]:
        """[example] classes, by the sums of these machines together."""
        return tm.elect(list(sums.values()), self.find_spans(client, sums), client.holds if self.present_only else None)

    def find_spans(self, client: TwoMachines, names: Iterable[str]) -> tuple[float, ...] | None:
        return tuple(client.spans[name] for name in names) if self.normaliser == "dataset" else None
