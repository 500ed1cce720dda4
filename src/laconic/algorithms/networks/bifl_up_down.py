"""BiFL, a bit both ways: networks whose weights are signs, and the majority of the clients' signs.

round   sampled clients mix the majority into the latent weights behind their signs, train, and send their signs
merge   sign by sign, the majority, each client counting alike
sent    down: the majority, to whom lacks the latest; up: a client's signs; a bit for each weight
"""

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
from laconic.algorithms.settings import check_at_least, check_share
from laconic.networks import Training
from laconic.networks.binary import binarize, binary_part
from laconic.wire import Bits, Message


class Majority(Message):
    """Nothing in it: the client holds the latest."""

    version: int
    signs: Bits | None


class BiFLUpDown(Algorithm):
    mix: float = 0.2  # share of the majority's sign in the latent weights that a client goes on with (sigma)
    drop_every: int = 30  # rounds after which the rate falls to 0.4, and after as many again to 0.2 of what it was
    training: Training = TRAINING

    takes = "values"

    def __post_init__(self) -> None:
        check_training(self.training, down="what goes down are votes", **ADAM)
        check_at_least(self, drop_every=0)
        check_share(self, "mix")

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> VoteServer:
        return VoteServer(np.zeros(binary_part(choose_spec(task, self.training)).size, np.uint16))

    def run_round(self, server: VoteServer, fleet: Fleet) -> None:
        replies = fleet.ask(self.train, self.tell(server, fleet.sampled))
        count_votes(server, replies)

    def deliver(self, server: VoteServer, fleet: Fleet) -> None:
        replies = fleet.ask(self.install, self.tell(server, find_late(server, fleet.everyone)), at_least=0)
        server.held_by |= dict.fromkeys(replies, server.version)

    def tell(self, server: VoteServer, clients: Iterable[ClientId]) -> dict[ClientId, Majority]:
        latest = Majority(server.version, 2 * server.n_plus.astype(np.int64) >= server.n_voters)
        nothing, late = Majority(server.version, None), find_late(server, clients)
        return {client: latest if client in late else nothing for client in clients}

    def costliest_round(self, task: Task) -> list[Message]:
        vote = np.zeros(binary_part(choose_spec(task, self.training)).size, np.bool_)
        return [Majority(0, vote), Signs(vote), Majority(0, vote)]

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Voter:
        return Voter(nn.build(choose_spec(task, self.training), self.training.init_seed))

    @on_client
    def train(self, client: Voter, majority: Majority, site: Site) -> Signs:
        self.install(client, majority, site)
        return train_and_vote(client, site, drop_rate(self.training, self.drop_every, site.round))

    @on_client
    def install(self, client: Voter, majority: Majority, site: Site) -> None:
        if majority.signs is not None and client.version < majority.version:
            mine, share = latent_weights(client), np.float32(self.mix)
            take_over(client, (1 - share) * mine + share * as_numbers(majority.signs), majority.version)

    def predict(self, client: Voter, x: NDArray[Any]) -> NDArray[np.int64]:
        return nn.classify(binarize(client.latent), x)
