"""OBDA: signs of gradients up, their majority down; every client keeps the same network by taking the same steps.

paper   One-Bit Over-the-Air Aggregation for Communication-Efficient Federated Edge Learning, 2021
round   sampled clients take the steps that they missed, and send the signs of a gradient
merge   sign by sign, the majority; the network takes a step of one size against it, at both ends
sent    down: the majorities that the client missed, a bit for each weight; up: the signs of its gradient
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from laconic import networks as nn
from laconic.aggregate import majority
from laconic.algorithm import Algorithm, ClientId, Fleet, Site, Task, on_client
from laconic.algorithms.broadcast import Broadcast
from laconic.algorithms.networks.settings import check_bits, choose_spec
from laconic.models.networks import Logits
from laconic.networks import Network, Training, Vector
from laconic.networks.sketch import as_numbers, signs
from laconic.wire import Bits, Count, Due, Floats, Message

MAX_MISSED = 31  # beyond that many bits for a weight, the weight itself is no longer


class Missed(Message, paper_bits={"weights": 32}, stateless=True):
    """What brings a client up to date: majorities, or the weights."""

    version: int  # of the network afterwards: how many steps it has taken
    votes: Bits | None  # [step, weight] the last ones
    weights: Floats | None  # [weight]


class Gradient(Message):
    signs: Bits  # [weight] True for +1
    n_examples: Count


@dataclass
class Server(Broadcast):
    weights: Vector  # [parameter]
    votes: list[NDArray[np.bool_]] = field(default_factory=list)  # the last ones, MAX_MISSED at most


@dataclass
class Client:
    network: Network
    version: int = 0


class OBDA(Algorithm):
    name = "obda"
    client_notes = ("train_loss",)

    training: Training = Training(rate=0.001, batch=64, steps=1, statistics="local")

    takes = "values"

    def __post_init__(self) -> None:
        check_bits(self.training, down="votes are bits, and latecomers need exact weights")

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        spec = choose_spec(task, self.training)
        return Server(nn.start_vector(spec, self.training.init_seed)[: nn.layout(spec).n_trained])

    def run_round(self, server: Server, fleet: Fleet) -> None:
        expected = {"signs": Due(server.weights.shape)}
        gradients = fleet.ask(self.train, tell_missed(server, fleet.sampled), expect=expected)
        server.acknowledge(gradients)
        sizes = [gradient.n_examples for gradient in gradients.values()]
        vote = majority([gradient.signs for gradient in gradients.values()], sizes)
        server.weights = self.step(server.weights, vote)
        server.version, server.votes = server.version + 1, [*server.votes, vote][-MAX_MISSED:]

    def deliver(self, server: Server, fleet: Fleet) -> None:
        late = [client for client in fleet.everyone if server.count_missed(client)]
        server.acknowledge(fleet.ask(self.catch_up, tell_missed(server, late), at_least=0))

    def costliest_round(self, task: Task) -> list[Message]:
        """Of a client met so late that it gets the weights, and again before a test if its reply is lost."""
        spec = choose_spec(task, self.training)
        weights = nn.start_vector(spec, self.training.init_seed)[: nn.layout(spec).n_trained]
        late = Missed(0, None, weights)
        return [late, Gradient(np.zeros(len(weights), np.bool_), 0), late]

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        return Client(nn.build(choose_spec(task, self.training), self.training.init_seed))

    @on_client
    def train(self, client: Client, missed: Missed, site: Site) -> Gradient:
        self.catch_up(client, missed, site)
        weights, total = client.network.vector[: client.network.layout.n_trained], None

        def adjust(now: Tensor, gradient: Tensor) -> None:
            nonlocal total
            decayed = gradient.add(now, alpha=self.training.decay)
            total = decayed if total is None else total + decayed

        trained = nn.fit(client.network, site.train, site.rng, self.training, adjust=adjust)
        client.network.vector[: len(weights)] = weights  # only statistics stay as training left them
        site.note(train_loss=trained.loss)
        return Gradient(draw_signs(total, len(weights), site.rng), len(site.train.y))

    @on_client
    def catch_up(self, client: Client, missed: Missed, site: Site) -> None:
        weights = client.network.vector[: client.network.layout.n_trained]
        if missed.weights is not None:
            weights = missed.weights
        elif missed.votes is not None:  # a client whose reply was lost has taken some of these steps
            for vote in missed.votes[len(missed.votes) - (missed.version - client.version) :]:
                weights = self.step(weights, vote)
        client.network.vector = np.concatenate([weights, client.network.vector[len(weights) :]])
        client.version = missed.version

    def personal_model(self, client: Client) -> Logits:
        return Logits(client.network)

    # ---------------------------------------------------------------- pieces
    def step(self, weights: Vector, vote: NDArray[np.bool_]) -> Vector:
        return weights - np.float32(self.training.rate) * as_numbers(vote)


def tell_missed(server: Server, clients: Iterable[ClientId]) -> dict[ClientId, Missed]:
    n_missed = {client: server.count_missed(client) for client in clients}
    messages = {n: recall(server, n) for n in set(n_missed.values())}  # one for all who missed the same
    return {client: messages[n] for client, n in n_missed.items()}


def recall(server: Server, n_missed: int) -> Missed:
    if n_missed > len(server.votes):
        return Missed(server.version, None, server.weights)
    return Missed(server.version, np.stack(server.votes[-n_missed:]) if n_missed else None, None)


def draw_signs(total: Tensor | None, n: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """[n] of a sum of gradients; zeros fall either way, else units that are silent at most clients would drift."""
    values = np.zeros(n, np.float32) if total is None else total.numpy()
    return np.where(values == 0, rng.random(n) < 0.5, signs(values))
