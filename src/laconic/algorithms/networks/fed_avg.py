"""FedAvg: one network for all, the mean of what each client makes of it.

round   sampled clients get the network, train it on their own examples and send how it changed
merge   the mean change, by examples, is added
sent    down: the network, to whom lacks the latest; up: its change
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic import networks as nn
from laconic.algorithm import Algorithm, Fleet, Site, Task, on_client
from laconic.algorithms.networks.averaging import (
    Client,
    Server,
    Tested,
    Update,
    Weights,
    bring_up_to_date,
    choose_spec,
    classify,
    compose,
    find_part,
    list_messages,
    merge,
    offer,
    receive,
    start_client,
    start_server,
    tell_change,
)
from laconic.networks import Part, Spec, Training
from laconic.wire import Message


class FedAvg(Algorithm):
    training: Training = Training()
    tested: Tested = "averaged"  # with the latest mean, or as last trained, before it was averaged

    takes = "values"

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        spec = choose_spec(task, self.training)
        return start_server(spec, self.part(spec), self.training)

    def run_round(self, server: Server, fleet: Fleet) -> None:
        part = self.part(server.spec)
        updates = fleet.ask(self.train, offer(server.shared, fleet.sampled, part, self.training))
        merge(server.shared, updates, part, how=fleet.averaging)

    def deliver(self, server: Server, fleet: Fleet) -> None:
        if self.tested == "averaged":
            bring_up_to_date(server.shared, fleet, self.install, self.part(server.spec), self.training)

    def costliest_round(self, task: Task) -> list[Message]:
        spec = choose_spec(task, self.training)
        return list_messages(spec, self.part(spec), self.training, self.tested)

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        spec = choose_spec(task, self.training)
        return start_client(spec, self.part(spec), self.training)

    @on_client
    def train(self, client: Client, weights: Weights, site: Site) -> Update:
        part = self.part(client.spec)
        receive(client, weights, part)
        network = compose(client, part)
        nn.fit(network, site.train, site.rng, self.training)
        return tell_change(client, network, part, len(site.train.y), self.training, self.tested)

    @on_client
    def install(self, client: Client, weights: Weights, site: Site) -> None:
        receive(client, weights, self.part(client.spec))

    def predict(self, client: Client, x: NDArray[Any]) -> NDArray[np.int64]:
        return classify(client, x, self.part(client.spec))

    # ---------------------------------------------------------------- pieces
    def part(self, spec: Spec) -> Part:
        return find_part(spec, statistics=self.training.statistics == "shared")
