"""BiFL, everything in full: networks whose weights are signs, the mean of the latent weights behind them.

paper   Communication-Efficient Federated Learning With Binary Neural Networks, 2021
round   sampled clients get the latent weights, train them as signs and send how they changed
merge   the mean change, by examples, is added
sent    down: the latent weights, to whom lacks the latest; up: their change
"""

from laconic.algorithm import Site
from laconic.algorithms.networks.binary_votes import ADAM, TRAINING, drop_rate
from laconic.algorithms.networks.settings import check_local, check_unused
from laconic.algorithms.networks.shared_vector import SharedPart
from laconic.algorithms.networks.weights import Client
from laconic.algorithms.settings import check_at_least
from laconic.models.networks import Logits
from laconic.networks import Network, Part, Spec, Training
from laconic.networks.binary import binarize, binary_part, fit_binary


class BiFLFull(SharedPart):
    name = "bifl-full"
    client_notes = ("train_loss",)

    drop_every: int = 30  # rounds after which the rate falls to 0.4, and after as many again to 0.2 of what it was
    training: Training = TRAINING

    def __post_init__(self) -> None:
        check_local(self.training, "bits tell nothing of a mean or a variance")
        check_unused(self.training, **ADAM)
        check_at_least(self, drop_every=0)

    def part(self, spec: Spec) -> Part:
        return binary_part(spec)

    def fit(self, network: Network, client: Client, site: Site) -> None:
        training = drop_rate(self.training, self.drop_every, site.round)
        site.note(train_loss=fit_binary(network, site.train, site.rng, training))

    def personal_model(self, client: Client) -> Logits:
        return Logits(binarize(client.compose(self.part(client.spec))))
