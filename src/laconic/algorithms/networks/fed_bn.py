"""FedBN: one network for all, but for its batch normalisations, which fit each client's own inputs.

round   sampled clients get all else, train everything and send how all else changed
merge   the mean change, by examples, is added
sent    down: what is no batch normalisation, to whom lacks the latest; up: its change
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic import networks as nn
from laconic.algorithm import Algorithm, Fleet, Site, Task, on_client
from laconic.algorithms.networks import averaging
from laconic.algorithms.networks.averaging import Client, Server, Tested, Update, Weights, choose_spec, find_part
from laconic.networks import Part, Spec, Training
from laconic.wire import Message


class FedBN(Algorithm):
    training: Training = Training(model="resnet-small")
    tested: Tested = "averaged"  # with the latest mean, or as last trained, before it was averaged

    takes = "values"

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        spec = choose_spec(task, self.training)
        if not any(piece.is_norm for piece in nn.layout(spec).pieces):
            raise ValueError(
                f'method.training.model = "{self.training.model}" has no batch normalisation, so fedbn would be '
                "fedavg; choose resnet-small, resnet8 or vgg8, or run fedavg"
            )
        return averaging.start_server(spec, self.part(spec), self.training)

    def run_round(self, server: Server, fleet: Fleet) -> None:
        part = self.part(server.spec)
        updates = fleet.ask(self.train, averaging.offer(server.shared, fleet.sampled, part, self.training))
        averaging.merge(server.shared, updates, part, how=fleet.averaging)

    def deliver(self, server: Server, fleet: Fleet) -> None:
        if self.tested == "averaged":
            averaging.bring_up_to_date(server.shared, fleet, self.install, self.part(server.spec), self.training)

    def costliest_round(self, task: Task) -> list[Message]:
        spec = choose_spec(task, self.training)
        return averaging.list_messages(spec, self.part(spec), self.training, self.tested)

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        spec = choose_spec(task, self.training)
        return averaging.start_client(spec, self.part(spec), self.training)

    @on_client
    def train(self, client: Client, weights: Weights, site: Site) -> Update:
        part = self.part(client.spec)
        averaging.receive(client, weights, part)
        network = averaging.compose(client, part)
        nn.fit(network, site.train, site.rng, self.training)
        return averaging.tell_change(client, network, part, len(site.train.y), self.training, self.tested)

    @on_client
    def install(self, client: Client, weights: Weights, site: Site) -> None:
        averaging.receive(client, weights, self.part(client.spec))

    def predict(self, client: Client, x: NDArray[Any]) -> NDArray[np.int64]:
        return averaging.classify(client, x, self.part(client.spec))

    # ---------------------------------------------------------------- pieces
    def part(self, spec: Spec) -> Part:
        return find_part(spec, norms=False, statistics=False)
