"""FedTM: one Tsetlin Machine for all, merged clause by clause.

paper   FedTM: Memory and Communication Efficient Federated Learning with Tsetlin Machine, 2023
round   sampled clients train; all send their clause weights, the clients richest in a class its include bits too
merge   weights: mean by examples, blended with the old ones; include bits: OR of the two richest clients'
ours    merging = "lend": a clause comes whole from one of the donors, a class's weights are the mean of its holders'
sent    up: clause weights, and include bits of the clients richest in a class; down: the merged ones, to everyone, from
        which each rebuilds its automata
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from laconic import tsetlin as tm
from laconic.aggregate import EVERY_AVERAGING, Averaging, average_weights, deal_parts, find_donors, unite_states
from laconic.algorithm import ClientId, Fleet, Site, Task, on_client
from laconic.algorithms.tsetlin.machines import LARGEST_VOTE, Merged, MergedMethod, paper_state_bits
from laconic.models.machines import Ballot
from laconic.wire import EMPTY, Bits, CountArray, Due, Expected, Ints, Message


class Holdings(Message, paper_bits={"per_class": 0}):
    per_class: CountArray  # [class] training examples


class Order(Message, paper_bits={"send_states": 0}):
    send_states: Bits  # [class] whose include bits are wanted; where clauses are lent [class, part]


class Update(Message, paper_bits={"weights": 32, "states": paper_state_bits, "per_class": 0}):
    weights: Ints  # [class, clause]
    states: Bits | None  # [class asked for, clause, literal]; where clauses are lent [clause asked for, literal]
    per_class: CountArray


@dataclass
class Server:
    weights: NDArray[np.int32]  # [class, clause]
    states: NDArray[np.bool_]  # [class, clause, literal]
    is_merged: NDArray[np.bool_]  # [class] once in any round
    holdings: dict[ClientId, Ints] = field(default_factory=dict)  # [class] examples


@dataclass
class Client:
    machine: tm.Machine
    holds: NDArray[np.bool_]  # [class] has examples of it


class FedTM(MergedMethod):
    name = "fedtm"
    averagings = EVERY_AVERAGING
    budget_knob = "n_clauses"

    epochs: int = 100  # local epochs a round
    merging: Literal["or", "lend"] = "or"  # include bits: OR of a class's donors; or each clause from one of them

    @property
    def is_lending(self) -> bool:
        return self.merging == "lend"

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        machine = self.build(task)
        return Server(machine.weights, tm.include_bits(machine), np.zeros(task.n_classes, np.bool_))

    def run_round(self, server: Server, fleet: Fleet) -> None:
        unknown = [client for client in fleet.sampled if client not in server.holdings]
        counts = {"per_class": Due(server.is_merged.shape)}
        told = fleet.ask(self.tell_holdings, dict.fromkeys(unknown, EMPTY), at_least=0, expect=counts)
        server.holdings |= {client: reply.per_class for client, reply in told.items()}
        wanted = self.choose_donors(server, fleet.sampled)
        orders = {client: Order(classes) for client, classes in wanted.items()}
        updates = fleet.ask(self.train, orders, expect=lambda order: self.expect_update(server, order))
        server.holdings |= {client: update.per_class for client, update in updates.items()}
        self.merge_weights(server, list(updates.values()), fleet.averaging)
        self.merge_states(server, [(orders[client], update) for client, update in updates.items()])
        fleet.ask(self.install, dict.fromkeys(fleet.everyone, Merged(server.weights, server.states)), at_least=0)

    def costliest_round(self, task: Task) -> list[Message]:
        """Of a client met for the first time, who is donor of every class."""
        machine, per_class = self.build(task), np.zeros(task.n_classes, np.int64)
        weights, states = machine.weights, tm.include_bits(machine)
        order = Order(np.ones(self.shape_order(task.n_classes), np.bool_))
        update, merged = Update(weights, states[self.find_clauses(order)], per_class), Merged(weights, states)
        return [Holdings(per_class), order, update, merged]

    def choose_donors(self, server: Server, sampled: Sequence[ClientId]) -> dict[ClientId, NDArray[np.bool_]]:
        """Of each client: whose include bits are wanted of it, see Order."""
        known = {client: server.holdings[client] for client in sampled if client in server.holdings}
        nothing = np.zeros(self.shape_order(len(server.weights)), np.bool_)
        choose = deal_parts if self.is_lending else find_donors
        return dict.fromkeys(sampled, nothing) | choose(known, self.n_donors)

    def expect_update(self, server: Server, order: Order) -> Expected:
        states = Due(server.states[self.find_clauses(order)].shape) if order.send_states.any() else None
        counts, weights = Due(server.is_merged.shape), Due(server.weights.shape, LARGEST_VOTE)
        return {"weights": weights, "states": states, "per_class": counts}

    def merge_weights(self, server: Server, updates: list[Update], averaging: Averaging = "mean") -> None:
        classes = {"is_new": ~server.is_merged, "is_held": np.any([update.per_class > 0 for update in updates], axis=0)}
        counts, weights = [update.per_class for update in updates], [update.weights for update in updates]
        sizes = counts if self.is_lending else [int(each.sum()) for each in counts]
        whole = np.rint if self.is_lending else np.trunc
        server.weights = average_weights(
            server.weights, weights, sizes, blend=self.blend, averaging=averaging, whole=whole, **classes
        )
        server.is_merged |= classes["is_held"]

    def merge_states(self, server: Server, sent: Iterable[tuple[Order, Update]]) -> None:
        """Classes whose donors were all lost, and clauses whose lender was, keep their include bits."""
        arrived = [(self.find_clauses(order), update.states) for order, update in sent if update.states is not None]
        server.states = unite_states(server.states, arrived)

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        return Client(self.build(task), self.count_holdings(site, task.n_classes) > 0)

    @on_client
    def tell_holdings(self, client: Client, _: Message, site: Site) -> Holdings:
        return Holdings(self.count_holdings(site, client.machine.n_classes))

    @on_client
    def train(self, client: Client, order: Order, site: Site) -> Update:
        machine, per_class = client.machine, self.count_holdings(site, client.machine.n_classes)
        client.holds = per_class > 0
        tm.fit(machine, *site.train, site.rng, epochs=self.epochs)
        self.mask_weights(client)
        states = tm.include_bits(machine)[self.find_clauses(order)] if order.send_states.any() else None
        return Update(machine.weights, states, per_class)

    @on_client
    def install(self, client: Client, merged: Merged, site: Site) -> None:
        self.rebuild(client.machine, merged)
        self.mask_weights(client)

    def personal_model(self, client: Client) -> Ballot:
        return Ballot(client.machine)

    # ---------------------------------------------------------------- pieces
    def shape_order(self, n_classes: int) -> tuple[int, ...]:
        return (n_classes, self.n_donors) if self.is_lending else (n_classes,)

    def find_clauses(self, order: Order) -> NDArray[np.bool_]:
        """[class], or [class, clause] where they are lent: a part has as many for as against, whose turns alternate."""
        parts = np.arange(self.n_clauses) // 2 % self.n_donors
        return order.send_states[:, parts] if self.is_lending else order.send_states

    def count_holdings(self, site: Site, n_classes: int) -> NDArray[np.int64]:
        return np.bincount(site.train.y, minlength=n_classes)

    def mask_weights(self, client: Client) -> None:
        if self.mask:
            client.machine.weights[~client.holds] = 0
