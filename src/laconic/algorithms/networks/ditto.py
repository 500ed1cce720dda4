"""Ditto: FedAvg, and beside it a network for each client that is pulled towards the common one.

round   sampled clients get the common network, train their own one, pulled to what came, then the common one, and send
        how that changed
merge   the mean change, by examples, is added
sent    down: the common network, to whom lacks the latest; up: its change
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic import networks as nn
from laconic.algorithm import Algorithm, Fleet, Site, Task, on_client
from laconic.algorithms.networks import averaging
from laconic.algorithms.networks.averaging import Server, Twofold, Update, Weights, choose_spec, find_part
from laconic.algorithms.settings import check_at_least
from laconic.networks import Part, Spec, Training
from laconic.wire import Message


class Ditto(Algorithm):
    training: Training = Training()
    pull: float = 0.1  # of the common network on the client's own (mu, lambda in the paper)

    takes = "values"

    def __post_init__(self) -> None:
        check_at_least(self, pull=0)

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        spec = choose_spec(task, self.training)
        return averaging.start_server(spec, self.part(spec), self.training)

    def run_round(self, server: Server, fleet: Fleet) -> None:
        part = self.part(server.spec)
        updates = fleet.ask(self.train, averaging.offer(server.shared, fleet.sampled, part, self.training))
        averaging.merge(server.shared, updates, part, how=fleet.averaging)

    def costliest_round(self, task: Task) -> list[Message]:
        spec = choose_spec(task, self.training)
        return averaging.list_messages(spec, self.part(spec), self.training)[:2]  # a test needs nothing new

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Twofold:
        spec = choose_spec(task, self.training)
        return averaging.start_twofold(spec, self.part(spec), self.training)

    @on_client
    def train(self, client: Twofold, weights: Weights, site: Site) -> Update:
        part = self.part(client.common.spec)
        averaging.receive(client.common, weights, part)
        network = averaging.compose(client.common, part)
        nn.fit(client.own, site.train, site.rng, self.training, adjust=nn.pull_to(network.vector, self.pull))
        nn.fit(network, site.train, site.rng, self.training)
        return averaging.tell_change(client.common, network, part, len(site.train.y), self.training)

    def predict(self, client: Twofold, x: NDArray[Any]) -> NDArray[np.int64]:
        return nn.classify(client.own, x)

    # ---------------------------------------------------------------- pieces
    def part(self, spec: Spec) -> Part:
        return find_part(spec, statistics=self.training.statistics == "shared")
