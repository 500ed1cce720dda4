"""The shape of BiFL's methods whose clients vote with the signs of binary networks, and what all three do alike.

round   sampled clients take the votes so far into the latent weights behind their signs, train, and send their signs
merge   for each weight, how many voted for +1
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic import networks as nn
from laconic.algorithm import Algorithm, Fleet, Site, Task
from laconic.algorithms.broadcast import Broadcast
from laconic.algorithms.networks.settings import check_bits, choose_spec
from laconic.algorithms.settings import check_at_least
from laconic.models.networks import Logits
from laconic.networks import Network, Training, Vector
from laconic.networks.binary import binarize, binary_part, fit_binary
from laconic.networks.sketch import signs
from laconic.wire import Bits, Due, Message

TRAINING = Training(rate=0.005, batch=64, statistics="local")
ADAM = dict.fromkeys(("momentum", "decay"), "latent weights take Adam's steps")  # settings without effect, and why


class Signs(Message):
    signs: Bits  # [weight] True for +1


@dataclass
class VoteServer(Broadcast):
    n_plus: NDArray[np.uint16]  # [weight]
    n_voters: int = 0


@dataclass
class Voter:
    latent: Network
    version: int = 0

    @property
    def weights(self) -> Vector:
        return self.latent.vector[binary_part(self.latent.spec).mask]

    def take_over(self, weights: Vector, version: int) -> None:
        self.latent.vector = binary_part(self.latent.spec).put(weights, self.latent.vector)
        self.version = version


def drop_rate(training: Training, drop_every: int, round: int) -> Training:
    n_drops = min((round - 1) // drop_every, 2) if drop_every else 0
    return replace(training, rate=training.rate * (1, 0.4, 0.2)[n_drops])


class BinaryVotes(Algorithm):
    drop_every: int = 30  # rounds after which the rate falls to 0.4, and after as many again to 0.2 of what it was
    training: Training = TRAINING

    takes = "values"

    def __post_init__(self) -> None:
        check_bits(self.training, down="what goes down are votes", **ADAM)
        check_at_least(self, drop_every=0)

    # ---------------------------------------------------------------- what a method says
    @abstractmethod
    def tell(self, server: VoteServer) -> tuple[Message, Message]:
        """The latest votes, and a message without them."""

    @abstractmethod
    def install(self, client: Voter, votes: Any, site: Site) -> None:
        """A client's step: mixes votes that are news to it into its latent weights."""

    @abstractmethod
    def train(self, client: Voter, votes: Any, site: Site) -> Signs:
        """A client's step: the same, then `vote`."""

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> VoteServer:
        return self.start_votes(task)

    def start_votes(self, task: Task) -> VoteServer:
        return VoteServer(np.zeros(binary_part(choose_spec(task, self.training)).size, np.uint16))

    def run_round(self, server: VoteServer, fleet: Fleet) -> None:
        offered, expected = server.offer(fleet.sampled, *self.tell(server)), {"signs": Due(server.n_plus.shape)}
        replies = fleet.ask(self.train, offered, expect=expected)
        server.acknowledge(replies)
        server.n_plus = np.sum([reply.signs for reply in replies.values()], axis=0, dtype=np.uint16)
        server.n_voters, server.version = len(replies), server.version + 1

    def deliver(self, server: VoteServer, fleet: Fleet) -> None:
        latest, _ = self.tell(server)
        server.acknowledge(fleet.ask(self.install, server.offer(fleet.everyone, latest), at_least=0))

    def costliest_round(self, task: Task) -> list[Message]:
        server = self.start_votes(task)
        latest, _ = self.tell(server)
        return [latest, Signs(server.n_plus > 0), latest]

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Voter:
        return Voter(nn.build(choose_spec(task, self.training), self.training.init_seed))

    def vote(self, client: Voter, site: Site) -> Signs:
        training = drop_rate(self.training, self.drop_every, site.round)
        site.note(train_loss=fit_binary(client.latent, site.train, site.rng, training))
        return Signs(signs(client.weights))

    def personal_model(self, client: Voter) -> Logits:
        return Logits(binarize(client.latent))
