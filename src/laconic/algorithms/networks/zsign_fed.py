"""zSignFed (z-SignFedAvg): the signs of a client's change, after noise that makes their mean tell its size.

round   sampled clients get the network, train it, add noise to its change in units of the learning rate, send the signs
merge   the mean of the signs, by examples, times what the noise makes a sign worth, is added
sent    down: the network, to whom lacks the latest; up: a bit for each weight
"""

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from laconic import networks as nn
from laconic.algorithm import Algorithm, Fleet, Site, Task, on_client
from laconic.algorithms.networks.averaging import (
    Client,
    Server,
    Weights,
    bring_up_to_date,
    choose_spec,
    classify,
    compose,
    keep_personal,
    list_messages,
    offer,
    receive,
    start_client,
    start_server,
)
from laconic.algorithms.networks.one_bit import as_numbers, check_training, merge_changes, trained_part
from laconic.networks import Training
from laconic.networks.sketch import signs
from laconic.wire import Bits, Message

WORTH = {"normal": math.sqrt(math.pi / 2), "uniform": 1.0}  # of a sign, for small changes, in units of the noise


class Signs(Message, is_afresh=True):
    signs: Bits  # [weight] of the change, True for +1
    n_examples: int


class ZSignFed(Algorithm):
    noise: float = 0.05  # its size, where a change is a sum of gradients (sigma)
    shape: Literal["normal", "uniform"] = "normal"  # of the noise: z = 1 or infinite; uniform is from -noise to noise
    training: Training = Training(rate=0.05, batch=64, steps=10, statistics="local")

    takes = "values"

    def __post_init__(self) -> None:
        check_training(self.training)
        if not 0 < self.noise < math.inf:
            raise ValueError(f"method.noise = {self.noise} must be above 0")

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        spec = choose_spec(task, self.training)
        return start_server(spec, trained_part(spec), self.training)

    def run_round(self, server: Server, fleet: Fleet) -> None:
        part = trained_part(server.spec)
        replies = fleet.ask(self.train, offer(server.shared, fleet.sampled, part, self.training))
        worth = np.float32(self.training.rate * self.noise * WORTH[self.shape])
        changes = {client: (worth * as_numbers(reply.signs), reply.n_examples) for client, reply in replies.items()}
        merge_changes(server.shared, changes, part, fleet.averaging)

    def deliver(self, server: Server, fleet: Fleet) -> None:
        bring_up_to_date(server.shared, fleet, self.install, trained_part(server.spec), self.training)

    def costliest_round(self, task: Task) -> list[Message]:
        spec = choose_spec(task, self.training)
        part = trained_part(spec)
        first, _, last = list_messages(spec, part, self.training)
        return [first, Signs(np.zeros(part.size, np.bool_), 0), last]

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        spec = choose_spec(task, self.training)
        return start_client(spec, trained_part(spec), self.training)

    @on_client
    def train(self, client: Client, weights: Weights, site: Site) -> Signs:
        part = trained_part(client.spec)
        receive(client, weights, part)
        network = compose(client, part)
        trained = nn.fit(network, site.train, site.rng, self.training)
        site.note(train_loss=trained.loss)
        keep_personal(client, network, part)
        change = (network.vector[part.mask] - client.shared) / np.float32(self.training.rate)
        draw = site.rng.standard_normal if self.shape == "normal" else lambda n: site.rng.uniform(-1, 1, n)
        return Signs(signs(change + self.noise * draw(change.size)), len(site.train.y))

    @on_client
    def install(self, client: Client, weights: Weights, site: Site) -> None:
        receive(client, weights, trained_part(client.spec))

    def predict(self, client: Client, x: NDArray[Any]) -> NDArray[np.int64]:
        return classify(client, x, trained_part(client.spec))
