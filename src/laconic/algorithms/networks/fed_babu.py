"""FedBABU: one body for all, learned under a head that never changes; each client tunes both before it is tested.

paper   FedBABU: Towards Enhanced Representation for Federated Image Classification, 2022
round   sampled clients get the body, train it under the head that all started with and send how it changed
merge   the mean change, by examples, is added
test    every client gets the body and trains a copy of the network, body and head, to be tested with
sent    down: the body, to whom lacks the latest; up: its change
"""

from laconic import networks as nn
from laconic.algorithm import Site
from laconic.algorithms.networks.shared_vector import TunedNetwork
from laconic.algorithms.networks.weights import Twofold
from laconic.algorithms.settings import check_at_least
from laconic.networks import Network, Part, Spec, Training


class FedBABU(TunedNetwork):
    name = "fedbabu"

    training: Training = Training()
    tune_epochs: int = 10  # before a test

    def __post_init__(self) -> None:
        check_at_least(self, tune_epochs=1)

    def part(self, spec: Spec) -> Part:
        return nn.find_part(spec, head=False, statistics=self.training.shares_statistics)

    def fit(self, network: Network, client: Twofold, site: Site) -> None:
        nn.fit(network, site.train, site.rng, self.training, part="body")

    def tune_own(self, network: Network, site: Site) -> None:
        nn.fit(network, site.train, site.rng, self.training, epochs=self.tune_epochs)
