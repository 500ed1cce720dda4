"""FedBABU: one body for all, learned under a head that never changes; each client tunes both before it is tested.

round   sampled clients get the body, train it under the head that all started with and send how it changed
merge   the mean change, by examples, is added
test    every client gets the body and trains a copy of the network, body and head, to be tested with
sent    down: the body, to whom lacks the latest; up: its change
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


class FedBABU(Algorithm):
    training: Training = Training()
    tune_epochs: int = 10  # before a test

    takes = "values"

    def __post_init__(self) -> None:
        check_at_least(self, tune_epochs=1)

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        spec = choose_spec(task, self.training)
        return averaging.start_server(spec, self.part(spec), self.training)

    def run_round(self, server: Server, fleet: Fleet) -> None:
        part = self.part(server.spec)
        updates = fleet.ask(self.train, averaging.offer(server.shared, fleet.sampled, part, self.training))
        averaging.merge(server.shared, updates, part, how=fleet.averaging)

    def deliver(self, server: Server, fleet: Fleet) -> None:
        part = self.part(server.spec)
        news = averaging.offer(server.shared, fleet.everyone, part, self.training)
        averaging.mark_held(server.shared, fleet.ask(self.tune, news, at_least=0))

    def costliest_round(self, task: Task) -> list[Message]:
        spec = choose_spec(task, self.training)
        return averaging.list_messages(spec, self.part(spec), self.training)

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Twofold:
        spec = choose_spec(task, self.training)
        return averaging.start_twofold(spec, self.part(spec), self.training)

    @on_client
    def train(self, client: Twofold, weights: Weights, site: Site) -> Update:
        part = self.part(client.common.spec)
        averaging.receive(client.common, weights, part)
        network = averaging.compose(client.common, part)
        nn.fit(network, site.train, site.rng, self.training, part="body")
        return averaging.tell_change(client.common, network, part, len(site.train.y), self.training)

    @on_client
    def tune(self, client: Twofold, weights: Weights, site: Site) -> None:
        part = self.part(client.common.spec)
        averaging.receive(client.common, weights, part)
        client.own = averaging.compose(client.common, part)
        nn.fit(client.own, site.train, site.rng, self.training, epochs=self.tune_epochs)

    def predict(self, client: Twofold, x: NDArray[Any]) -> NDArray[np.int64]:
        return nn.classify(client.own, x)

    # ---------------------------------------------------------------- pieces
    def part(self, spec: Spec) -> Part:
        return find_part(spec, head=False, statistics=self.training.statistics == "shared")
