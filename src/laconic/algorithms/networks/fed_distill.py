"""FedDistill: clients agree on what logits an example of a class should get.

paper   Federated Knowledge Distillation, 2020
round   sampled clients train, held to the class's mean logits, and send their own mean logits of each class they have
merge   the mean over clients of what came
sent    down: mean logits of all classes, to whom lacks the latest; up: those of the classes held
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F  # noqa: N812  # the name everyone gives it

from laconic import networks as nn
from laconic.aggregate import EVERY_AVERAGING, Averaging
from laconic.algorithm import ClientId, Fleet, Site, Task
from laconic.algorithms.networks.class_targets import ClassTargets, Client, Means, Server, average_targets
from laconic.models.networks import Logits
from laconic.networks import Batch, Vector
from laconic.networks.prototypes import sum_features, write_rows
from laconic.wire import Message


class FedDistill(ClassTargets):
    name = "feddistill"

    pull: float = 1.0  # gamma: of the cross-entropy with the class's mean logits

    averagings = EVERY_AVERAGING

    def count_dims(self, task: Task) -> tuple[int, int]:
        return task.n_classes, task.n_classes

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        return self.start_exchange(task)

    def merge(
        self, server: Server, replies: Mapping[ClientId, Means], rng: np.random.Generator, averaging: Averaging = "mean"
    ) -> tuple[Vector, NDArray[np.bool_]]:
        return average_targets(replies, server.masks, averaging)

    def costliest_round(self, task: Task) -> list[Message]:
        return super().costliest_round(task)[:2]  # a test needs nothing new

    # ---------------------------------------------------------------- client
    def hold(self, client: Client, site: Site) -> nn.Loss:
        """Cross-entropy with the labels, and with what clients think of the class, where anyone does."""
        opinions = F.softmax(torch.from_numpy(client.targets), dim=1)
        has_target = torch.from_numpy(client.has_target.astype(np.float32))

        def total(batch: Batch) -> torch.Tensor:
            apart = -(opinions[batch.labels] * F.log_softmax(batch.logits, dim=1)).sum(dim=1)
            return nn.cross_entropy(batch) + self.pull * (apart * has_target[batch.labels]).mean()

        return total

    def tell_means(self, client: Client, site: Site) -> Means:
        _, logits = nn.outputs(replace(client.network, log_prior=None), site.train.x)  # others have other priors
        sums, counts = sum_features(logits, site.train.y, len(client.masks))
        held = counts > 0
        rows = sums[held] / counts[held].astype(np.float32)[:, None]
        return Means(held, *write_rows(rows, client.masks[held], self.kept), n_examples=None)

    def personal_model(self, client: Client) -> Logits:
        return Logits(client.network)
