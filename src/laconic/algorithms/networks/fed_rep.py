"""FedRep: one body for all, a head for each, trained one after the other.

round   sampled clients get the body, fit their own head to it, then the body to the head, and send how the body changed
merge   the mean change, by examples, is added
sent    down: the body, to whom lacks the latest; up: its change
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic import networks as nn
from laconic.algorithm import Algorithm, Fleet, Site, Task, on_client
from laconic.algorithms.networks import averaging
from laconic.algorithms.networks.averaging import Client, Server, Update, Weights, choose_spec, find_part
from laconic.algorithms.settings import check_at_least
from laconic.networks import Part, Spec, Training
from laconic.wire import Message


class FedRep(Algorithm):
    training: Training = Training()  # its epochs are the body's
    head_epochs: int = 10  # of the head, with the body as received

    takes = "values"

    def __post_init__(self) -> None:
        check_at_least(self, head_epochs=1)

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        spec = choose_spec(task, self.training)
        return averaging.start_server(spec, self.part(spec), self.training)

    def run_round(self, server: Server, fleet: Fleet) -> None:
        part = self.part(server.spec)
        updates = fleet.ask(self.train, averaging.offer(server.shared, fleet.sampled, part, self.training))
        averaging.merge(server.shared, updates, part, how=fleet.averaging)

    def deliver(self, server: Server, fleet: Fleet) -> None:
        averaging.bring_up_to_date(server.shared, fleet, self.install, self.part(server.spec), self.training)

    def costliest_round(self, task: Task) -> list[Message]:
        spec = choose_spec(task, self.training)
        return averaging.list_messages(spec, self.part(spec), self.training)

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        spec = choose_spec(task, self.training)
        return averaging.start_client(spec, self.part(spec), self.training)

    @on_client
    def train(self, client: Client, weights: Weights, site: Site) -> Update:
        part = self.part(client.spec)
        averaging.receive(client, weights, part)
        network = averaging.compose(client, part)
        nn.fit(network, site.train, site.rng, self.training, part="head", epochs=self.head_epochs)
        nn.fit(network, site.train, site.rng, self.training, part="body")
        return averaging.tell_change(client, network, part, len(site.train.y), self.training)

    @on_client
    def install(self, client: Client, weights: Weights, site: Site) -> None:
        averaging.receive(client, weights, self.part(client.spec))

    def predict(self, client: Client, x: NDArray[Any]) -> NDArray[np.int64]:
        return averaging.classify(client, x, self.part(client.spec))

    # ---------------------------------------------------------------- pieces
    def part(self, spec: Spec) -> Part:
        return find_part(spec, head=False, statistics=self.training.statistics == "shared")
