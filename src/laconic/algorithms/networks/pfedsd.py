"""pFedSD: FedAvg, but a client also learns from the network that it had after its previous training.

paper   Personalized Edge Intelligence via Federated Self-Knowledge Distillation, 2022
round   sampled clients get the common network, train it, also to answer as their previous one did, keep the result and
        send how it changed
merge   the mean change, by examples, is added
sent    down: the common network, to whom lacks the latest; up: its change
"""

from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  # the name everyone gives it

from laconic import networks as nn
from laconic.aggregate import EVERY_AVERAGING
from laconic.algorithm import Site, Task, on_client
from laconic.algorithms.networks.shared_vector import SharedVector
from laconic.algorithms.networks.weights import Client as Common
from laconic.algorithms.networks.weights import Update, Weights
from laconic.algorithms.settings import check_at_least
from laconic.models.networks import Logits
from laconic.networks import Batch, Network, Training


@dataclass
class Client:
    common: Common
    own: Network | None = None  # after its last training: the next one's teacher, and what it is tested with


class PFedSD(SharedVector):
    name = "pfedsd"

    training: Training = Training()
    distil: float = 0.5  # weight of the teacher's answers beside the labels (lambda)
    temperature: float = 3.0  # of both answers (tau)

    averagings = EVERY_AVERAGING
    tested = "own"

    def __post_init__(self) -> None:
        check_at_least(self, distil=0)
        if self.temperature <= 0:
            raise ValueError(f"method.temperature = {self.temperature} must be above 0")

    def start_client(self, task: Task, site: Site) -> Client:
        return Client(self.start_common(task, site))

    @on_client
    def train(self, client: Client, weights: Weights, site: Site) -> Update:
        return self.tell_change(client, weights, site)

    def fit(self, network: Network, client: Client, site: Site) -> None:
        loss = nn.cross_entropy if client.own is None else self.learn_from(client.own, site.train.x)
        nn.fit(network, site.train, site.rng, self.training, loss=loss)
        client.own = network

    def learn_from(self, teacher: Network, x: NDArray[Any]) -> nn.Loss:
        answers = F.log_softmax(torch.from_numpy(nn.outputs(teacher, x)[1]) / self.temperature, dim=1)

        def loss(batch: Batch) -> Tensor:
            mine = F.log_softmax(batch.logits / self.temperature, dim=1)
            apart = F.kl_div(mine, answers[batch.places], reduction="batchmean", log_target=True)
            return nn.cross_entropy(batch) + self.distil * self.temperature**2 * apart

        return loss

    def personal_model(self, client: Client) -> Logits:
        return super().personal_model(client) if client.own is None else Logits(client.own)
