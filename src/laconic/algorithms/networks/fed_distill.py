"""FedDistill: clients agree on what logits an example of a class should get.

round   sampled clients train, held to the class's mean logits, and send their own mean logits of each class they have
merge   the mean over clients of what came
sent    down: mean logits of all classes, to whom lacks the latest; up: those of the classes held
"""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F  # noqa: N812  # the name everyone gives it

from laconic import networks as nn
from laconic.algorithm import Algorithm, Fleet, Site, Task, on_client
from laconic.algorithms.networks.prototyping import (
    Aims,
    Client,
    Kept,
    Means,
    Server,
    average,
    choose_specs,
    list_messages,
    mark_held,
    offer,
    receive,
    set_targets,
    start_server,
    write_rows,
)
from laconic.networks import Batch, Training
from laconic.networks.prototypes import sum_features
from laconic.networks.sgd import Loss
from laconic.wire import Message


class FedDistill(Algorithm):
    training: Training = Training(rate=0.01, batch=32)
    models: tuple[str, ...] = ()  # taken by clients in turn; none: training.model
    n_features: int = 0  # that every head gets; 0: as its body makes them
    pull: float = 1.0  # gamma: of the cross-entropy with the class's mean logits
    kept: Kept = "fp32"  # precision of logits, both ways

    takes = "values"

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        return start_server(task, task.n_classes, task.n_classes)

    def run_round(self, server: Server, fleet: Fleet) -> None:
        replies = fleet.ask(self.train, offer(server, fleet.sampled, self.kept))
        mark_held(server, replies)
        set_targets(server, *average(replies, server.masks, fleet.averaging))

    def costliest_round(self, task: Task) -> list[Message]:
        return list_messages(task, task.n_classes, task.n_classes, self.kept)[:2]

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        spec = choose_specs(task, self.training, self.models, self.n_features, site.id)
        square = (task.n_classes, task.n_classes)
        return Client(
            nn.build(spec, self.training.init_seed),
            np.ones(square, np.bool_),
            np.zeros(square, np.float32),
            np.zeros(task.n_classes, np.bool_),
        )

    @on_client
    def train(self, client: Client, aims: Aims, site: Site) -> Means:
        receive(client, aims)
        nn.fit(client.network, site.train, site.rng, self.training, loss=self.listen(client))
        _, logits = nn.outputs(replace(client.network, log_prior=None), site.train.x)  # others have other priors
        sums, counts = sum_features(logits, site.train.y, len(client.masks))
        held = counts > 0
        rows = sums[held] / counts[held].astype(np.float32)[:, None]
        return Means(held, *write_rows(rows, client.masks[held], self.kept), n_examples=None)

    def listen(self, client: Client) -> Loss:
        """Cross-entropy with the labels, and with what clients think of the class, where anyone does."""
        opinions = F.softmax(torch.from_numpy(client.targets), dim=1)
        has_target = torch.from_numpy(client.has_target.astype(np.float32))

        def total(batch: Batch) -> torch.Tensor:
            apart = -(opinions[batch.labels] * F.log_softmax(batch.logits, dim=1)).sum(dim=1)
            return nn.cross_entropy(batch) + self.pull * (apart * has_target[batch.labels]).mean()

        return total

    def predict(self, client: Client, x: NDArray[Any]) -> NDArray[np.int64]:
        return nn.classify(client.network, x)
