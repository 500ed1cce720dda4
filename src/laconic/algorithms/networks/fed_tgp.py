"""FedTGP: as FedProto, with targets that the server trains to lie apart.

paper   FedTGP: Trainable Global Prototypes with Adaptive-Margin-Enhanced Contrastive Learning, 2024
round   sampled clients train, held to the targets, and send the mean features of each class they have
merge   a small network at the server learns targets near the means of their class, and by a margin far from all others
sent    down: targets, to whom lacks the latest; up: means of classes held, some dimensions of them with cps_dims
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from laconic.aggregate import Averaging
from laconic.algorithm import ClientId, Fleet, Task
from laconic.algorithms.networks import class_targets
from laconic.algorithms.networks.class_targets import Means, gather_points
from laconic.algorithms.networks.prototyping import Prototyping, count_examples
from laconic.algorithms.settings import check_at_least
from laconic.networks import Vector
from laconic.networks.prototypes import Masks, TargetMaker, choose_margin, start_maker, train_maker


@dataclass
class Server:
    exchange: class_targets.Server
    maker: TargetMaker


class FedTGP(Prototyping):
    name = "fedtgp"
    client_notes = ("head_norm",)

    margin: float = 100.0  # tau: never more than this between classes
    server_epochs: int = 100  # over what came, each round
    server_rate: float = 0.01  # five times that can end with one and the same target for all classes

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, margin=0, server_epochs=1, server_rate=0)

    def start_server(self, task: Task, fleet: Fleet) -> Server:
        return Server(self.start_exchange(task), start_maker(task.n_classes, self.n_features, fleet.rng))

    def merge(
        self, server: Server, replies: Mapping[ClientId, Means], rng: np.random.Generator, averaging: Averaging = "mean"
    ) -> tuple[Vector, NDArray[np.bool_]]:
        masks = server.exchange.masks
        points, labels = self.weigh(masks, replies)
        server.maker = train_maker(
            server.maker,
            points,
            labels,
            masks,
            rng,
            margin=choose_margin(points, labels, self.margin),
            epochs=self.server_epochs,
            batch=self.training.batch,
            rate=self.server_rate,
        )
        return server.maker.make(), np.bincount(labels, minlength=len(masks)) > 0

    def weigh(self, masks: Masks, replies: Mapping[ClientId, Means]) -> tuple[Vector, NDArray[np.int64]]:
        """[point, dimension] and [point] its class; sums are brought to the size of means, n being all examples."""
        points, labels = gather_points(replies, masks)
        if self.ppa:
            n_senders = np.bincount(labels)[labels]
            scales = n_senders * len(masks) / max(count_examples(replies), 1)
            points = points * scales[:, None].astype(np.float32)
        return points, labels
