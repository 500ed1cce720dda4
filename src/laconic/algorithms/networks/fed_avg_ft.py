"""FedAvg-FT (FedAvg++): FedAvg, and each client tunes the network before it is tested.

paper   none: FedAvg, then local fine-tuning (FedAvg++)
round   sampled clients get the network, train it on their own examples and send how it changed
merge   the mean change, by examples, is added
test    every client gets the network and trains a copy, as long as in a round, to be tested with
sent    down: the network, to whom lacks the latest; up: its change
"""

from laconic import networks as nn
from laconic.algorithm import Site
from laconic.algorithms.networks.shared_vector import TunedNetwork
from laconic.networks import Network, Training


class FedAvgFT(TunedNetwork):
    name = "fedavg-ft"

    training: Training = Training()

    def tune_own(self, network: Network, site: Site) -> None:
        nn.fit(network, site.train, site.rng, self.training)
