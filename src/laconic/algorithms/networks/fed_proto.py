"""FedProto: clients with networks of any kind agree on where each class lies among their features.

round   sampled clients train, held to the targets, and send the mean features of each class they have
merge   a class's target is the mean of what came; with ppa, the sum of all sums times K/n
sent    down: targets, to whom lacks the latest; up: means of classes held, some dimensions of them with cps_dims
"""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from laconic import networks as nn
from laconic.aggregate import Averaging
from laconic.algorithm import Algorithm, ClientId, Fleet, Site, Task, on_client
from laconic.algorithms.networks.prototyping import (
    Aims,
    Client,
    Kept,
    Means,
    Server,
    average,
    bring_up_to_date,
    check_dims,
    choose_specs,
    classify,
    count_examples,
    gather_points,
    list_messages,
    mark_held,
    offer,
    pull,
    receive,
    set_targets,
    start_client,
    start_server,
    tell_means,
)
from laconic.networks import Training, Vector
from laconic.networks.prototypes import sum_features
from laconic.wire import Message


class FedProto(Algorithm):
    training: Training = Training(rate=0.01, batch=32)
    models: tuple[str, ...] = ()  # taken by clients in turn, e.g. ["resnet8", "mobilenetv2"]; none: training.model
    n_features: int = 500  # d: dimensions of a prototype
    pull: float = 1.0  # lambda: of the squared distance from the target, averaged over dimensions
    cps_dims: int = 500  # s: dimensions of a class that travel (CPS); n_features or more: all
    cps_loss: Literal["masked", "full"] = "full"  # features are drawn to zero elsewhere, or left free ("masked")
    ppa: bool = False  # sums travel instead of means, so that no message shows how many examples a class has
    cpkd: bool = False  # clients hold to a target in proportion to what they have of its class
    kept: Kept = "fp32"  # precision of prototypes, both ways
    tested: Literal["prototype", "head"] = "prototype"  # what a prediction is made by; both are recorded

    takes = "values"
    budget_knob = ("kept", "cps_dims")

    def __post_init__(self) -> None:
        check_dims(self.n_features, self.cps_dims)

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        return start_server(task, self.n_features, self.cps_dims)

    def run_round(self, server: Server, fleet: Fleet) -> None:
        replies = fleet.ask(self.train, offer(server, fleet.sampled, self.kept))
        mark_held(server, replies)
        set_targets(server, *self.merge(server, replies, fleet.averaging))

    def merge(
        self, server: Server, replies: Mapping[ClientId, Means], how: Averaging = "mean"
    ) -> tuple[Vector, NDArray[np.bool_]]:
        """[class, dimension] and [class] whether anyone sent it."""
        if not self.ppa:
            return average(replies, server.masks, how)
        if how != "mean":
            raise ValueError(f'fleet.averaging = "{how}" needs means to compare; with method.ppa clients send sums')
        sums, n_senders = sum_features(*gather_points(replies, server.masks), len(server.masks))
        return sums * (len(sums) / max(count_examples(replies), 1)), n_senders > 0

    def deliver(self, server: Server, fleet: Fleet) -> None:
        bring_up_to_date(server, fleet, self.install, self.kept)

    def costliest_round(self, task: Task) -> list[Message]:
        return list_messages(task, self.n_features, self.cps_dims, self.kept)

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        spec = choose_specs(task, self.training, self.models, self.n_features, site.id)
        return start_client(spec, self.training)

    @on_client
    def train(self, client: Client, aims: Aims, site: Site) -> Means:
        receive(client, aims)
        loss = pull(client, site.train.y, strength=self.pull, loss=self.cps_loss, in_proportion=self.cpkd)
        nn.fit(client.network, site.train, site.rng, self.training, loss=loss)
        return tell_means(client, site, as_sums=self.ppa, kept=self.kept)

    @on_client
    def install(self, client: Client, aims: Aims, site: Site) -> None:
        receive(client, aims)

    def predict(self, client: Client, x: NDArray[Any]) -> NDArray[np.int64]:
        found = classify(client, x)
        return found.get(self.tested, found["head"])

    def predict_also(self, client: Client, x: NDArray[Any]) -> dict[str, NDArray[np.integer[Any]]]:
        return {**classify(client, x)}
