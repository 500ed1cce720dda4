"""FedTGP: as FedProto, with targets that the server trains to lie apart.

round   sampled clients train, held to the targets, and send the mean features of each class they have
merge   a small network at the server learns targets near the means of their class, and by a margin far from all others
sent    down: targets, to whom lacks the latest; up: means of classes held, some dimensions of them with cps_dims
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from laconic import networks as nn
from laconic.algorithm import Algorithm, ClientId, Fleet, Site, Task, on_client
from laconic.algorithms.networks.prototyping import (
    Aims,
    Client,
    Kept,
    Means,
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
from laconic.algorithms.networks.prototyping import Server as Exchange
from laconic.networks import Training, Vector
from laconic.networks.prototypes import Targets, choose_margin, read_targets, start_targets, train_targets
from laconic.wire import Message


@dataclass
class Server:
    exchange: Exchange
    maker: Targets  # of the targets


class FedTGP(Algorithm):
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
    margin: float = 100.0  # tau: never more than this between classes
    server_epochs: int = 100  # over what came, each round

    takes = "values"
    budget_knob = ("kept", "cps_dims")

    def __post_init__(self) -> None:
        check_dims(self.n_features, self.cps_dims)

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        exchange = start_server(task, self.n_features, self.cps_dims)
        return Server(exchange, start_targets(task.n_classes, self.n_features, fleet.rng))

    def run_round(self, server: Server, fleet: Fleet) -> None:
        exchange = server.exchange
        replies = fleet.ask(self.train, offer(exchange, fleet.sampled, self.kept))
        mark_held(exchange, replies)
        points, labels = self.weigh(exchange, replies)
        server.maker = train_targets(
            server.maker,
            points,
            labels,
            exchange.masks,
            fleet.rng,
            margin=choose_margin(points, labels, self.margin),
            epochs=self.server_epochs,
            batch=self.training.batch,
            rate=self.training.rate,
        )
        set_targets(exchange, read_targets(server.maker), np.bincount(labels, minlength=len(exchange.masks)) > 0)

    def weigh(self, exchange: Exchange, replies: Mapping[ClientId, Means]) -> tuple[Vector, NDArray[np.int64]]:
        """[point, dimension] and [point] its class; sums are brought to the size of means, n being all examples."""
        points, labels = gather_points(replies, exchange.masks)
        if self.ppa:
            n_senders = np.bincount(labels)[labels]
            scales = n_senders * len(exchange.masks) / max(count_examples(replies), 1)
            points = points * scales[:, None].astype(np.float32)
        return points, labels

    def deliver(self, server: Server, fleet: Fleet) -> None:
        bring_up_to_date(server.exchange, fleet, self.install, self.kept)

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
