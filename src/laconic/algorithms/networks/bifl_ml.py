"""BiFL, likeliest weights: networks whose weights are signs, and how many clients voted for each sign.

round   sampled clients make out the likeliest latent weights of their own and the votes, train, and send their signs
merge   for each weight, how many voted for +1
sent    down: these numbers, to whom lacks the latest; up: a client's signs, a bit for each weight
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic import networks as nn
from laconic.algorithm import Algorithm, ClientId, Fleet, Site, Task, on_client
from laconic.algorithms.networks.averaging import choose_spec
from laconic.algorithms.networks.binary_votes import (
    ADAM,
    TRAINING,
    Signs,
    Voter,
    VoteServer,
    count_votes,
    drop_rate,
    find_late,
    latent_weights,
    take_over,
    train_and_vote,
)
from laconic.algorithms.networks.one_bit import as_numbers, check_training
from laconic.algorithms.settings import check_at_least
from laconic.networks import Training, Vector
from laconic.networks.binary import binarize, binary_part
from laconic.networks.sketch import signs
from laconic.wire import Ints, Message

# the curve for 10 and 100 voters: a, b, c of a * ln(b + agreement) + c
VOTERS, CURVES = (10, 100), ((1.1717, 1.3758), (0.9652, 0.9899), (0.0998, -0.0261))


class Votes(Message, paper_bits={"n_plus": lambda n: n.size * math.log2(1 + n.max())}):  # some weight has all votes
    """Nothing in it: the client holds the latest."""

    version: int
    n_voters: int
    n_plus: Ints | None  # [weight] how many voted for +1


class BiFLML(Algorithm):
    gain: float = 1.75  # of what the votes make of a latent weight (sigma)
    drop_every: int = 30  # rounds after which the rate falls to 0.4, and after as many again to 0.2 of what it was
    training: Training = TRAINING

    takes = "values"

    def __post_init__(self) -> None:
        check_training(self.training, down="what goes down are votes", **ADAM)
        check_at_least(self, drop_every=0, gain=0)

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> VoteServer:
        return VoteServer(np.zeros(binary_part(choose_spec(task, self.training)).size, np.uint16))

    def run_round(self, server: VoteServer, fleet: Fleet) -> None:
        replies = fleet.ask(self.train, self.tell(server, fleet.sampled))
        count_votes(server, replies)

    def deliver(self, server: VoteServer, fleet: Fleet) -> None:
        replies = fleet.ask(self.install, self.tell(server, find_late(server, fleet.everyone)), at_least=0)
        server.held_by |= dict.fromkeys(replies, server.version)

    def tell(self, server: VoteServer, clients: Iterable[ClientId]) -> dict[ClientId, Votes]:
        latest, nothing = (Votes(server.version, server.n_voters, n_plus) for n_plus in (server.n_plus, None))
        late = find_late(server, clients)
        return {client: latest if client in late else nothing for client in clients}

    def costliest_round(self, task: Task) -> list[Message]:
        n_plus = np.zeros(binary_part(choose_spec(task, self.training)).size, np.uint16)
        return [Votes(0, 0, n_plus), Signs(n_plus > 0), Votes(0, 0, n_plus)]

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Voter:
        return Voter(nn.build(choose_spec(task, self.training), self.training.init_seed))

    @on_client
    def train(self, client: Voter, votes: Votes, site: Site) -> Signs:
        self.install(client, votes, site)
        return train_and_vote(client, site, drop_rate(self.training, self.drop_every, site.round))

    @on_client
    def install(self, client: Voter, votes: Votes, site: Site) -> None:
        if votes.n_plus is not None and client.version < votes.version:
            mean = votes.n_plus * np.float32(2 / votes.n_voters) - 1
            take_over(client, estimate(latent_weights(client), mean, votes.n_voters, self.gain), votes.version)

    def predict(self, client: Voter, x: NDArray[Any]) -> NDArray[np.int64]:
        return nn.classify(binarize(client.latent), x)


def estimate(mine: Vector, mean: Vector, n_voters: int, gain: float) -> Vector:
    """The likeliest latent weights [weight], from one's own and the mean of all signs: larger where most agree."""
    a, b, c = (float(np.interp(math.log(n_voters), np.log(VOTERS), curve)) for curve in CURVES)
    agreement = np.maximum(b + mean * as_numbers(signs(mine)), 1e-3)  # who did not vote may have all against it
    weights: Vector = np.clip(gain * mine * (a * np.log(agreement) + c), -1, 1).astype(np.float32)
    return weights
