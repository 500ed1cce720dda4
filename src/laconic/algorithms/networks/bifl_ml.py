"""BiFL, likeliest weights: networks whose weights are signs, and how many clients voted for each sign.

paper   Communication-Efficient Federated Learning With Binary Neural Networks, 2021
round   sampled clients make out the likeliest latent weights of their own and the votes, train, and send their signs
merge   for each weight, how many voted for +1
sent    down: these numbers, to whom lacks the latest; up: a client's signs, a bit for each weight
"""

import math

import numpy as np

from laconic.algorithm import Site, on_client
from laconic.algorithms.networks.binary_votes import BinaryVotes, Signs, Voter, VoteServer
from laconic.algorithms.settings import check_at_least
from laconic.networks import Vector
from laconic.networks.sketch import as_numbers, signs
from laconic.wire import Count, Ints, Message

# the curve for 10 and 100 voters: a, b, c of a * ln(b + agreement) + c
VOTERS, CURVES = (10, 100), ((1.1717, 1.3758), (0.9652, 0.9899), (0.0998, -0.0261))


class Votes(Message, paper_bits={"n_plus": lambda n: n.size * math.log2(1 + n.max())}):  # some weight has all votes
    """Nothing in it: the client holds the latest."""

    version: int
    n_voters: Count
    n_plus: Ints | None  # [weight] how many voted for +1


class BiFLML(BinaryVotes):
    name = "bifl-ml"
    client_notes = ("train_loss",)

    gain: float = 1.75  # of what the votes make of a latent weight (sigma)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, gain=0)

    # ---------------------------------------------------------------- server
    def tell(self, server: VoteServer) -> tuple[Votes, Votes]:
        version, n_voters = server.version, server.n_voters
        return Votes(version, n_voters, server.n_plus), Votes(version, n_voters, None)

    # ---------------------------------------------------------------- client
    @on_client
    def train(self, client: Voter, votes: Votes, site: Site) -> Signs:
        self.install(client, votes, site)
        return self.vote(client, site)

    @on_client
    def install(self, client: Voter, votes: Votes, site: Site) -> None:
        if votes.n_plus is not None and client.version < votes.version:
            mean = votes.n_plus * np.float32(2 / votes.n_voters) - 1
            client.take_over(estimate(client.weights, mean, votes.n_voters, self.gain), votes.version)


def estimate(mine: Vector, mean: Vector, n_voters: int, gain: float) -> Vector:
    """The likeliest latent weights [weight], from one's own and the mean of all signs: larger where most agree."""
    a, b, c = (float(np.interp(math.log(n_voters), np.log(VOTERS), curve)) for curve in CURVES)
    agreement = np.maximum(b + mean * as_numbers(signs(mine)), 1e-3)  # who did not vote may have all against it
    weights: Vector = np.clip(gain * mine * (a * np.log(agreement) + c), -1, 1).astype(np.float32)
    return weights
