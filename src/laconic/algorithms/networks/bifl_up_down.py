"""BiFL, a bit both ways: networks whose weights are signs, and the majority of the clients' signs.

paper   Communication-Efficient Federated Learning With Binary Neural Networks, 2021
round   sampled clients mix the majority into the latent weights behind their signs, train, and send their signs
merge   sign by sign, the majority, each client counting alike
sent    down: the majority, to whom lacks the latest; up: a client's signs; a bit for each weight
"""

import numpy as np

from laconic.algorithm import Site, on_client
from laconic.algorithms.networks.binary_votes import BinaryVotes, Signs, Voter, VoteServer
from laconic.algorithms.settings import check_share
from laconic.networks.sketch import as_numbers
from laconic.wire import Bits, Message


class Majority(Message):
    """Nothing in it: the client holds the latest."""

    version: int
    signs: Bits | None


class BiFLUpDown(BinaryVotes):
    name = "bifl-updown"
    client_notes = ("train_loss",)

    mix: float = 0.2  # share of the majority's sign in the latent weights that a client goes on with (sigma)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share(self, "mix")

    # ---------------------------------------------------------------- server
    def tell(self, server: VoteServer) -> tuple[Majority, Majority]:
        is_plus = 2 * server.n_plus.astype(np.int64) >= server.n_voters
        return Majority(server.version, is_plus), Majority(server.version, None)

    # ---------------------------------------------------------------- client
    @on_client
    def train(self, client: Voter, majority: Majority, site: Site) -> Signs:
        self.install(client, majority, site)
        return self.vote(client, site)

    @on_client
    def install(self, client: Voter, majority: Majority, site: Site) -> None:
        if majority.signs is not None and client.version < majority.version:
            share = np.float32(self.mix)
            client.take_over((1 - share) * client.weights + share * as_numbers(majority.signs), majority.version)
