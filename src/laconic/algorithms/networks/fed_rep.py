"""FedRep: one body for all, a head for each, trained one after the other.

paper   Exploiting Shared Representations for Personalized Federated Learning, 2021
round   sampled clients get the body, fit their own head to it, then the body to the head, and send how the body changed
merge   the mean change, by examples, is added
sent    down: the body, to whom lacks the latest; up: its change
"""

from laconic import networks as nn
from laconic.algorithm import Site
from laconic.algorithms.networks.shared_vector import SharedPart
from laconic.algorithms.networks.weights import Client
from laconic.algorithms.settings import check_at_least
from laconic.networks import Network, Part, Spec, Training


class FedRep(SharedPart):
    name = "fedrep"

    training: Training = Training()  # its epochs are the body's
    head_epochs: int = 10  # of the head, with the body as received

    def __post_init__(self) -> None:
        check_at_least(self, head_epochs=1)

    def part(self, spec: Spec) -> Part:
        return nn.find_part(spec, head=False, statistics=self.training.shares_statistics)

    def fit(self, network: Network, client: Client, site: Site) -> None:
        nn.fit(network, site.train, site.rng, self.training, part="head", epochs=self.head_epochs)
        nn.fit(network, site.train, site.rng, self.training, part="body")
