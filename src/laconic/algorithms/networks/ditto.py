"""Ditto: FedAvg, and beside it a network for each client that is pulled towards the common one.

paper   Ditto: Fair and Robust Federated Learning Through Personalization, 2021
round   sampled clients get the common network, train their own one, pulled to what came, then the common one, and send
        how that changed
merge   the mean change, by examples, is added
sent    down: the common network, to whom lacks the latest; up: its change
"""

from laconic import networks as nn
from laconic.algorithm import Site
from laconic.algorithms.networks.shared_vector import TwoNetworks
from laconic.algorithms.networks.weights import Twofold
from laconic.algorithms.settings import check_at_least
from laconic.networks import Network, Training


class Ditto(TwoNetworks):
    name = "ditto"

    training: Training = Training()
    pull: float = 0.1  # of the common network on the client's own (mu, lambda in the paper)

    def __post_init__(self) -> None:
        check_at_least(self, pull=0)

    def fit(self, network: Network, client: Twofold, site: Site) -> None:
        nn.fit(client.own, site.train, site.rng, self.training, adjust=nn.pull_to(network.vector, self.pull))
        nn.fit(network, site.train, site.rng, self.training)
