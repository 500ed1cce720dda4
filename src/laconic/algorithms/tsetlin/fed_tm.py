"""FedTM: one Tsetlin Machine for all, merged clause by clause.

paper   FedTM: Memory and Communication Efficient Federated Learning with Tsetlin Machine, 2023
round   sampled clients train; all send their clause weights, the clients richest in a class its include bits too
merge   weights: mean by examples, blended with the old ones; include bits: OR of the two richest clients'
sent    up: clause weights, and include bits of the clients richest in a class; down: the merged ones, to everyone, from
        which each rebuilds its automata
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from laconic import tsetlin as tm
from laconic.aggregate import EVERY_AVERAGING, Averaging, average_weights, find_donors, unite_states
from laconic.algorithm import ClientId, Fleet, Site, Task, on_client
from laconic.algorithms.tsetlin.machines import LARGEST_VOTE, Merged, MergedMethod, paper_state_bits
from laconic.models.machines import Ballot
from laconic.wire import EMPTY, Bits, CountArray, Due, Expected, Ints, Message


class Holdings(Message, paper_bits={"per_class": 0}):
    per_class: CountArray  # [class] training examples


class Order(Message, paper_bits={"send_states": 0}):
    send_states: Bits  # [class] whose include bits are wanted


class Update(Message, paper_bits={"weights": 32, "states": paper_state_bits, "per_class": 0}):
    weights: Ints  # [class, clause]
    states: Bits | None  # [class asked for, clause, literal]
    per_class: CountArray


@dataclass
class Server:
    weights: NDArray[np.int32]  # [class, clause]
    states: NDArray[np.bool_]  # [class, clause, literal]
    is_merged: NDArray[np.bool_]  # [class] once in any round
    holdings: dict[ClientId, Ints] = field(default_factory=dict)  # [class] examples

    def expect_update(self, order: Order) -> Expected:
        states = Due(self.states[order.send_states].shape) if order.send_states.any() else None
        counts, weights = Due(self.is_merged.shape), Due(self.weights.shape, LARGEST_VOTE)
        return {"weights": weights, "states": states, "per_class": counts}


@dataclass
class Client:
    machine: tm.Machine
    holds: NDArray[np.bool_]  # [class] has examples of it


class FedTM(MergedMethod):
    name = "fedtm"
    averagings = EVERY_AVERAGING
    budget_knob = "n_clauses"

    epochs: int = 100  # local epochs a round

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
        updates = fleet.ask(self.train, orders, expect=server.expect_update)
        server.holdings |= {client: update.per_class for client, update in updates.items()}
        self.merge_weights(server, list(updates.values()), fleet.averaging)
        self.merge_states(server, {client: (wanted[client], update) for client, update in updates.items()})
        fleet.ask(self.install, dict.fromkeys(fleet.everyone, Merged(server.weights, server.states)), at_least=0)

    def costliest_round(self, task: Task) -> list[Message]:
        """Of a client met for the first time, who is donor of every class."""
        machine, per_class = self.build(task), np.zeros(task.n_classes, np.int64)
        weights, states = machine.weights, tm.include_bits(machine)
        update, merged = Update(weights, states, per_class), Merged(weights, states)
        return [Holdings(per_class), Order(per_class > 0), update, merged]

    def choose_donors(self, server: Server, sampled: Sequence[ClientId]) -> dict[ClientId, NDArray[np.bool_]]:
        """[class] of each client: whether its include bits of the class are wanted."""
        known = {client: server.holdings[client] for client in sampled if client in server.holdings}
        nothing = np.zeros(len(server.weights), np.bool_)
        return dict.fromkeys(sampled, nothing) | find_donors(known, self.n_donors)

    def merge_weights(self, server: Server, updates: list[Update], averaging: Averaging = "mean") -> None:
        classes = {"is_new": ~server.is_merged, "is_held": np.any([update.per_class > 0 for update in updates], axis=0)}
        weights, sizes = [update.weights for update in updates], [int(update.per_class.sum()) for update in updates]
        server.weights = average_weights(
            server.weights, weights, sizes, blend=self.blend, averaging=averaging, **classes
        )
        server.is_merged |= classes["is_held"]

    def merge_states(self, server: Server, sent: dict[ClientId, tuple[NDArray[np.bool_], Update]]) -> None:
        """Classes whose donors were all lost keep their include bits."""
        arrived = [(classes, update.states) for classes, update in sent.values() if update.states is not None]
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
        states = tm.include_bits(machine)[order.send_states] if order.send_states.any() else None
        return Update(machine.weights, states, per_class)

    @on_client
    def install(self, client: Client, merged: Merged, site: Site) -> None:
        self.rebuild(client.machine, merged)
        self.mask_weights(client)

    def personal_model(self, client: Client) -> Ballot:
        return Ballot(client.machine)

    # ---------------------------------------------------------------- pieces
    def count_holdings(self, site: Site, n_classes: int) -> NDArray[np.int64]:
        return np.bincount(site.train.y, minlength=n_classes)

    def mask_weights(self, client: Client) -> None:
        if self.mask:
            client.machine.weights[~client.holds] = 0
