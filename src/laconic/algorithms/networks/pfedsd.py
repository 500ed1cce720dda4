"""pFedSD: FedAvg, but a client also learns from the network that it had after its previous training.

round   sampled clients get the common network, train it, also to answer as their previous one did, keep the result and
        send how it changed
merge   the mean change, by examples, is added
sent    down: the common network, to whom lacks the latest; up: its change
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  # the name everyone gives it

from laconic import networks as nn
from laconic.algorithm import Algorithm, Fleet, Site, Task, on_client
from laconic.algorithms.networks import averaging
from laconic.algorithms.networks.averaging import Server, Update, Weights, choose_spec, find_part
from laconic.algorithms.settings import check_at_least
from laconic.networks import Batch, Network, Part, Spec, Training
from laconic.wire import Message


@dataclass
class Client:
    common: averaging.Client
    own: Network | None = None  # after its last training: the next one's teacher, and what it is tested with


class PFedSD(Algorithm):
    training: Training = Training()
    distil: float = 0.5  # weight of the teacher's answers beside the labels (lambda)
    temperature: float = 3.0  # of both answers (tau)

    takes = "values"

    def __post_init__(self) -> None:
        check_at_least(self, distil=0)
        if self.temperature <= 0:
            raise ValueError(f"method.temperature = {self.temperature} must be above 0")

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        spec = choose_spec(task, self.training)
        return averaging.start_server(spec, self.part(spec), self.training)

    def run_round(self, server: Server, fleet: Fleet) -> None:
        part = self.part(server.spec)
        updates = fleet.ask(self.train, averaging.offer(server.shared, fleet.sampled, part, self.training))
        averaging.merge(server.shared, updates, part, how=fleet.averaging)

    def costliest_round(self, task: Task) -> list[Message]:
        spec = choose_spec(task, self.training)
        return averaging.list_messages(spec, self.part(spec), self.training)[:2]  # a test needs nothing new

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        spec = choose_spec(task, self.training)
        return Client(averaging.start_client(spec, self.part(spec), self.training))

    @on_client
    def train(self, client: Client, weights: Weights, site: Site) -> Update:
        part = self.part(client.common.spec)
        averaging.receive(client.common, weights, part)
        network = averaging.compose(client.common, part)
        loss = nn.cross_entropy if client.own is None else self.learn_from(client.own, site.train.x)
        nn.fit(network, site.train, site.rng, self.training, loss=loss)
        client.own = network
        return averaging.tell_change(client.common, network, part, len(site.train.y), self.training)

    def predict(self, client: Client, x: NDArray[Any]) -> NDArray[np.int64]:
        network = client.own or averaging.compose(client.common, self.part(client.common.spec))
        return nn.classify(network, x)

    # ---------------------------------------------------------------- pieces
    def part(self, spec: Spec) -> Part:
        return find_part(spec, statistics=self.training.statistics == "shared")

    def learn_from(self, teacher: Network, x: NDArray[Any]) -> nn.Loss:
        answers = F.log_softmax(torch.from_numpy(nn.outputs(teacher, x)[1]) / self.temperature, dim=1)

        def loss(batch: Batch) -> Tensor:
            mine = F.log_softmax(batch.logits / self.temperature, dim=1)
            apart = F.kl_div(mine, answers[batch.places], reduction="batchmean", log_target=True)
            return nn.cross_entropy(batch) + self.distil * self.temperature**2 * apart

        return loss
