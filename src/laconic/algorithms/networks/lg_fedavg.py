"""LG-FedAvg: a body for each, of any kind, and one head for all.

round   sampled clients get the head, train it together with their own body and send how the head changed
merge   the mean change, by examples, is added
sent    down: the head, to whom lacks the latest; up: its change
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic import networks as nn
from laconic.algorithm import Algorithm, ClientId, Fleet, Site, Task, on_client
from laconic.algorithms.networks import averaging
from laconic.algorithms.networks.averaging import Client, Server, Update, Weights, find_part
from laconic.algorithms.networks.prototyping import choose_specs
from laconic.networks import Part, Spec, Training
from laconic.wire import Message


class LGFedAvg(Algorithm):
    training: Training = Training()
    models: tuple[str, ...] = ()  # taken by clients in turn, e.g. ["resnet8", "mobilenetv2"]; none: training.model
    n_features: int = 0  # that the head gets from any body; 0: as many as the body makes

    takes = "values"

    def __post_init__(self) -> None:
        if len(self.models) > 1 and self.n_features < 1:
            raise ValueError(
                f"method.n_features = {self.n_features}: bodies of several kinds share a head only if all make as many "
                "features; say how many, e.g. 500"
            )

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        spec = self.choose_spec(task, 0)
        server = averaging.start_server(spec, self.part(spec), self.training)
        if self.models:  # bodies of other kinds start with other heads, so nobody has this one yet
            server.shared.version = 1
        return server

    def run_round(self, server: Server, fleet: Fleet) -> None:
        part = self.part(server.spec)
        updates = fleet.ask(self.train, averaging.offer(server.shared, fleet.sampled, part, self.training))
        averaging.merge(server.shared, updates, part, how=fleet.averaging)

    def deliver(self, server: Server, fleet: Fleet) -> None:
        averaging.bring_up_to_date(server.shared, fleet, self.install, self.part(server.spec), self.training)

    def costliest_round(self, task: Task) -> list[Message]:
        spec = self.choose_spec(task, 0)
        return averaging.list_messages(spec, self.part(spec), self.training)

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        spec = self.choose_spec(task, site.id)
        return averaging.start_client(spec, self.part(spec), self.training)

    @on_client
    def train(self, client: Client, weights: Weights, site: Site) -> Update:
        part = self.part(client.spec)
        averaging.receive(client, weights, part)
        network = averaging.compose(client, part)
        nn.fit(network, site.train, site.rng, self.training)
        return averaging.tell_change(client, network, part, len(site.train.y), self.training)

    @on_client
    def install(self, client: Client, weights: Weights, site: Site) -> None:
        averaging.receive(client, weights, self.part(client.spec))

    def predict(self, client: Client, x: NDArray[Any]) -> NDArray[np.int64]:
        return averaging.classify(client, x, self.part(client.spec))

    # ---------------------------------------------------------------- pieces
    def choose_spec(self, task: Task, client: ClientId) -> Spec:
        return choose_specs(task, self.training, self.models, self.n_features, client)

    def part(self, spec: Spec) -> Part:
        return find_part(spec, body=False, statistics=False)
