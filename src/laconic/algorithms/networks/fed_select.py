"""FedSelect: the parameters that training moves most become the client's own, more of them every few rounds.

paper   FedSelect: Personalized Federated Learning with Customized Selection of Parameters for Fine-Tuning, 2024
round   sampled clients train their own and their shared parameters in turn, an epoch each, and send the shared ones
merge   each parameter: mean over the clients with whom it is shared
sent    down and up: what is shared with the client; up, when it changed: which that is
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from laconic import networks as nn
from laconic import trial
from laconic.algorithm import Algorithm, ClientId, Fleet, Site, Task, check_shape, on_client
from laconic.algorithms.networks.settings import check_precision, choose_spec
from laconic.algorithms.settings import check_at_least, check_share
from laconic.models.networks import Logits
from laconic.networks import Network, Part, Spec, Training, Vector
from laconic.networks.precision import DTYPES
from laconic.networks.selection import Mask, count_due, pick_highest
from laconic.wire import Bits, Due, Floats, Message, UpTo


class Shared(Message, stateless=True):
    values: Floats | None  # [entry shared with the client, as the server knows it]; None: nothing to tell


class Update(Message, paper_bits={"is_own": 0}, stateless=True):
    is_own: Bits | None  # [entry of the part]; None: as the server knows it
    values: Floats  # [shared entry]


@dataclass
class Server:
    spec: Spec
    vector: Vector  # [entry of the part]
    is_own: dict[ClientId, Mask] = field(default_factory=dict)  # [entry of the part] of those who replied
    is_merged: bool = False


@dataclass
class Client:
    network: Network  # as last trained
    is_own: Mask  # [entry of the part]
    anchor: Vector  # [entry of the part] as trained when the last ones became its own
    n_rounds: int = 0  # that it took part in


class FedSelect(Algorithm):
    name = "fedselect"

    every: int = 3  # rounds of a client from one choice of new own parameters to the next
    growth: float = 0.25  # share of a weight tensor's shared parameters that become its own then
    limit: float = 0.8  # a tensor with a larger share of own ones loses no more
    start_shared: float = 1.0  # share of each weight tensor that is shared at first; below 1 newcomers start anew
    training: Training = Training(epochs=15, batch=32, rate=0.05, statistics="local")  # an epoch is one of each kind

    takes = "values"
    budget_knob = "start_shared"

    def __post_init__(self) -> None:
        check_at_least(self, every=1)
        check_share(self, "growth", "limit", "start_shared")
        check_precision(self.training)
        if self.training.steps:
            raise ValueError(
                f"method.training.steps = {self.training.steps}: own and shared parameters take turns by whole epochs; "
                "say method.training.epochs"
            )

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        spec = choose_spec(task, self.training)
        return Server(spec, nn.start_vector(spec, self.training.init_seed)[self.part(spec).mask])

    def run_round(self, server: Server, fleet: Fleet) -> None:
        told = {client: self.tell(server, client) for client in fleet.sampled}
        n_entries, item_bytes = server.vector.size, np.dtype(DTYPES[self.training.up]).itemsize
        values = Due((UpTo(n_entries),), nn.LARGEST, item_bytes=item_bytes)
        expected = {"is_own": Due((n_entries,), may_lack=True), "values": values}
        updates = fleet.ask(self.train, told, expect=expected, check=partial(check_update, n_entries))
        for client, update in updates.items():
            if update.is_own is not None:
                server.is_own[client] = update.is_own
            server.is_own.setdefault(client, np.zeros(server.vector.size, np.bool_))
        self.merge(server, ((server.is_own[client], update.values) for client, update in updates.items()))
        fleet.note(own=float(np.mean([server.is_own[client].mean() for client in updates])))

    def tell(self, server: Server, client: ClientId) -> Shared:
        if not server.is_merged or (client not in server.is_own and self.start_shared < 1):
            return Shared(None)
        values = server.vector[~server.is_own[client]] if client in server.is_own else server.vector
        return Shared(values.astype(DTYPES[self.training.down]))

    def merge(self, server: Server, sent: Iterable[tuple[Mask, NDArray[np.floating[Any]]]]) -> None:
        """What nobody sent stays as it was."""
        total, n_senders = np.zeros(server.vector.size), np.zeros(server.vector.size, np.int64)
        for is_own, values in sent:
            total[~is_own] += values
            n_senders += ~is_own
        merged = np.where(n_senders > 0, total / np.maximum(n_senders, 1), server.vector)
        server.vector, server.is_merged = merged.astype(np.float32), True

    def costliest_round(self, task: Task) -> list[Message]:
        spec = choose_spec(task, self.training)
        part = self.part(spec)
        n_own = sum(self.count_own_at_first(place) for place in list_weights(spec, part))
        up, down = (np.zeros(part.size - n_own, DTYPES[kept]) for kept in (self.training.up, self.training.down))
        return [Shared(down), Update(np.zeros(part.size, np.bool_), up)]

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        network = nn.build(choose_spec(task, self.training), self.training.init_seed)
        start = network.vector[self.part(network.spec).mask]
        return Client(network, np.zeros(start.size, np.bool_), start)

    @on_client
    def train(self, client: Client, shared: Shared, site: Site) -> Update:
        part = self.part(client.network.spec)
        trained, n_shared = client.network.vector[part.mask], client.is_own.size - np.count_nonzero(client.is_own)
        n_known = client.is_own.size if shared.values is None else shared.values.size
        if shared.values is not None and n_known == n_shared:  # masks only grow: as many shared are the same ones
            received = trained.copy()
            received[~client.is_own] = shared.values
            client.network.vector = part.put(received, client.network.vector)
        if client.n_rounds and client.n_rounds % self.every == 0:
            self.choose(client, trained, part)
        self.take_turns(client, part, site)
        after = client.network.vector[part.mask]
        if client.n_rounds == 0:
            for place in list_weights(client.network.spec, part):
                moved = np.abs(after[place] - client.anchor[place])
                client.is_own[place] = pick_highest(moved, self.count_own_at_first(place))
        client.n_rounds += 1
        values = after[~client.is_own].astype(DTYPES[self.training.up])
        return Update(None if values.size == n_known else client.is_own, values)

    def personal_model(self, client: Client) -> Logits:
        return Logits(client.network)

    # ---------------------------------------------------------------- pieces
    def part(self, spec: Spec) -> Part:
        return nn.find_part(spec, statistics=self.training.shares_statistics)

    def count_own_at_first(self, place: slice) -> int:
        return count_due(place.stop - place.start, 1 - self.start_shared)

    def choose(self, client: Client, trained: Vector, part: Part) -> None:
        """Those that moved most since the last choice become the client's own."""
        for place in list_weights(client.network.spec, part):
            is_own = client.is_own[place]
            if is_own.mean() <= self.limit:
                n_new = count_due(int(np.count_nonzero(~is_own)), self.growth)
                moved = np.where(is_own, -1, np.abs(trained[place] - client.anchor[place])).astype(np.float32)
                client.is_own[place] = is_own | pick_highest(moved, n_new)
        client.anchor = trained

    def take_turns(self, client: Client, part: Part, site: Site) -> None:
        network = client.network
        is_own = np.zeros(part.mask.size, np.bool_)
        is_own[part.mask] = client.is_own
        for _ in trial.first_of(range(self.training.epochs)):
            for trains in (is_own, ~is_own):
                if trains[: network.layout.n_trained].any():
                    self.train_some(network, trains, site)

    def train_some(self, network: Network, trains: Mask, site: Site) -> None:
        """One epoch; statistics of batch normalisation always move."""
        n_trained, before = network.layout.n_trained, network.vector
        moves = torch.from_numpy(trains[:n_trained].astype(np.float32))

        def freeze(_: torch.Tensor, gradient: torch.Tensor) -> None:
            gradient.mul_(moves)

        nn.fit(network, site.train, site.rng, self.training, adjust=freeze, epochs=1)
        still = np.flatnonzero(~trains[:n_trained])
        network.vector[still] = before[still]  # weight decay has no part in the gradient


def check_update(n_entries: int, told: Shared, update: Update) -> None:
    n_shared = n_entries if told.values is None else told.values.size
    if update.is_own is not None:
        n_shared = n_entries - int(np.count_nonzero(update.is_own))
    check_shape("values", update.values, (n_shared,))


def list_weights(spec: Spec, part: Part) -> list[slice]:
    """Where weights lie in the part; biases are always shared."""
    return [place for piece, place in nn.layout(spec).locate(part) if piece.name.endswith("weight")]
