"""BiFL, everything in full: networks whose weights are signs, the mean of the latent weights behind them.

round   sampled clients get the latent weights, train them as signs and send how they changed
merge   the mean change, by examples, is added
sent    down: the latent weights, to whom lacks the latest; up: their change
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic import networks as nn
from laconic.algorithm import Algorithm, Fleet, Site, Task, on_client
from laconic.algorithms.networks.averaging import (
    Client,
    Server,
    Update,
    Weights,
    bring_up_to_date,
    choose_spec,
    compose,
    list_messages,
    merge,
    offer,
    receive,
    start_client,
    start_server,
    tell_change,
)
from laconic.algorithms.networks.binary_votes import ADAM, TRAINING, drop_rate
from laconic.algorithms.networks.one_bit import check_statistics, check_unused
from laconic.algorithms.settings import check_at_least
from laconic.networks import Training
from laconic.networks.binary import binarize, binary_part, fit_binary
from laconic.wire import Message


class BiFLFull(Algorithm):
    drop_every: int = 30  # rounds after which the rate falls to 0.4, and after as many again to 0.2 of what it was
    training: Training = TRAINING

    takes = "values"

    def __post_init__(self) -> None:
        check_statistics(self.training)
        check_unused(self.training, **ADAM)
        check_at_least(self, drop_every=0)

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        spec = choose_spec(task, self.training)
        return start_server(spec, binary_part(spec), self.training)

    def run_round(self, server: Server, fleet: Fleet) -> None:
        part = binary_part(server.spec)
        updates = fleet.ask(self.train, offer(server.shared, fleet.sampled, part, self.training))
        merge(server.shared, updates, part, how=fleet.averaging)

    def deliver(self, server: Server, fleet: Fleet) -> None:
        bring_up_to_date(server.shared, fleet, self.install, binary_part(server.spec), self.training)

    def costliest_round(self, task: Task) -> list[Message]:
        spec = choose_spec(task, self.training)
        return list_messages(spec, binary_part(spec), self.training)

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        spec = choose_spec(task, self.training)
        return start_client(spec, binary_part(spec), self.training)

    @on_client
    def train(self, client: Client, weights: Weights, site: Site) -> Update:
        part = binary_part(client.spec)
        receive(client, weights, part)
        latent = compose(client, part)
        loss = fit_binary(latent, site.train, site.rng, drop_rate(self.training, self.drop_every, site.round))
        site.note(train_loss=loss)
        return tell_change(client, latent, part, len(site.train.y), self.training)

    @on_client
    def install(self, client: Client, weights: Weights, site: Site) -> None:
        receive(client, weights, binary_part(client.spec))

    def predict(self, client: Client, x: NDArray[Any]) -> NDArray[np.int64]:
        return nn.classify(binarize(compose(client, binary_part(client.spec))), x)
