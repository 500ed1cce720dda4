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
    Size,
    check_dims,
    choose_specs,
    classify,
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
from laconic.wire import EMPTY, Message


@dataclass
class Server:
    exchange: Exchange
    maker: Targets  # of the targets


class FedTGP(Algorithm):
    training: Training = Training(rate=0.01, batch=32)
    models: tuple[str, ...] = ()  # taken by clients in turn, e.g. ["resnet8", "mobilenetv2"]; none: training.model
    n_features: int = 500  # d: dimensions of a prototype
    pull: float = 1.0  # lambda: of the squared distance from the target, averaged over dimensions
    cps_dims: int = 500  # s: dimensions of a class that travel (CPS); as many as n_features: all
    cps_loss: Literal["masked", "full"] = "masked"  # the distance looks at these alone, or draws all others to zero
    ppa: bool = False  # sums travel instead of means, so that no message shows how many examples a class has
    cpkd: bool = False  # clients hold to a target in proportion to what they have of its class
    kept: Kept = "fp32"  # precision of prototypes, both ways
    tested: Literal["prototype", "head"] = "prototype"  # what a prediction is made by
    margin: float = 100.0  # tau: never more than this between classes
    server_epochs: int = 100  # over what came, each round

    takes = "values"
    budget_knob = "cps_dims"

    def __post_init__(self) -> None:
        check_dims(self.n_features, self.cps_dims)

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        exchange = start_server(task, self.n_features, self.cps_dims)
        return Server(exchange, start_targets(task.n_classes, self.n_features, fleet.rng))

    def run_round(self, server: Server, fleet: Fleet) -> None:
        exchange = server.exchange
        if self.ppa:
            unknown = [client for client in fleet.sampled if client not in exchange.sizes]
            told = fleet.ask(self.tell_size, dict.fromkeys(unknown, EMPTY), at_least=0)
            exchange.sizes |= {client: reply.n_examples for client, reply in told.items()}
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
            n_examples = sum(exchange.sizes.get(client, 0) for client in replies)
            n_senders = np.bincount(labels)[labels]
            points = points * (len(exchange.masks) / max(n_examples, 1) * n_senders)[:, None].astype(np.float32)
        return points, labels

    def deliver(self, server: Server, fleet: Fleet) -> None:
        news = offer(server.exchange, fleet.everyone, self.kept, to_holders=False)
        mark_held(server.exchange, fleet.ask(self.install, news, at_least=0))

    def costliest_round(self, task: Task) -> list[Message]:
        return list_messages(task, self.n_features, self.cps_dims, self.kept)

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        spec = choose_specs(task, self.training, self.models, self.n_features, site.id)
        return start_client(spec, self.training)

    @on_client
    def tell_size(self, client: Client, _: Message, site: Site) -> Size:
        return Size(len(site.train.y))

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
        return classify(client, x, by_head=self.tested == "head")
