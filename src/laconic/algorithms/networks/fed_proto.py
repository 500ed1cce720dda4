"""FedProto: clients with networks of any kind agree on where each class lies among their features.

paper   FedProto: Federated Prototype Learning across Heterogeneous Clients, 2022; sparse and private prototypes
round   sampled clients train, held to the targets, and send the mean features of each class they have
merge   a class's target is the mean of what came; with ppa, the sum of all sums times K/n
sent    down: targets, to whom lacks the latest; up: means of classes held, some dimensions of them with cps_dims
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from laconic.aggregate import EVERY_AVERAGING, Averaging
from laconic.algorithm import ClientId, Fleet, Task
from laconic.algorithms.networks.class_targets import Means, Server, average_targets, gather_points
from laconic.algorithms.networks.prototyping import Prototyping, count_examples
from laconic.networks import Vector
from laconic.networks.prototypes import sum_features


class FedProto(Prototyping):
    name = "fedproto"
    client_notes = ("head_norm",)

    averagings = EVERY_AVERAGING

    def check_averaging(self, averaging: Averaging) -> None:
        super().check_averaging(averaging)
        if self.ppa and averaging != "mean":
            raise ValueError(
                f'fleet.averaging = "{averaging}" needs means to compare; with method.ppa = true clients send sums: '
                'say method.ppa = false, or fleet.averaging = "mean"'
            )

    def start_server(self, task: Task, fleet: Fleet) -> Server:
        return self.start_exchange(task)

    def merge(
        self, server: Server, replies: Mapping[ClientId, Means], rng: np.random.Generator, averaging: Averaging = "mean"
    ) -> tuple[Vector, NDArray[np.bool_]]:
        if not self.ppa:
            return average_targets(replies, server.masks, averaging)
        self.check_averaging(averaging)
        sums, n_senders = sum_features(*gather_points(replies, server.masks), len(server.masks))
        return sums * (len(sums) / max(count_examples(replies), 1)), n_senders > 0
