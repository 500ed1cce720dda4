"""pFedMe: the common network is trained through each client's own, which may leave it at a price.

paper   Personalized Federated Learning with Moreau Envelopes, 2020
round   sampled clients get the common network; for each mini-batch they fit their own one, pulled to their copy of the
        common one, and move the copy towards it; they send how the copy changed
merge   the mean change, by examples, times `blend` is added
sent    down: the common network, to whom lacks the latest; up: its change
"""

from dataclasses import replace

from laconic import networks as nn
from laconic.algorithm import Site
from laconic.algorithms.networks.shared_vector import TwoNetworks
from laconic.algorithms.networks.weights import Twofold
from laconic.algorithms.settings import check_at_least
from laconic.networks import Network, Training, sgd


class PFedMe(TwoNetworks):
    name = "pfedme"

    training: Training = Training()  # its rate is that of the client's own network
    pull: float = 15.0  # of the copy on the client's own network (lambda)
    inner_steps: int = 5  # of the client's own network for each mini-batch (K)
    outer_rate: float = 0.005  # the copy moves by this times pull of its way to the client's own network (eta)
    blend: float = 1.0  # how far the common network moves to the mean of the copies (beta)

    def __post_init__(self) -> None:
        check_at_least(self, pull=0, inner_steps=1, outer_rate=0, blend=0)

    def fit(self, network: Network, client: Twofold, site: Site) -> None:
        """The network is the copy; the client's own starts where it does."""
        client.own = own = replace(network)
        training = self.training
        if training.prior:
            own.log_prior = nn.log_shares(site.train.y, own.spec.n_classes)
        module = sgd.open_network(own, is_training=True)
        module.only("all")
        copy = module.weights.clone()
        speed = copy.new_zeros(copy.shape) if training.momentum else None
        for places in nn.batches(len(site.train.y), site.rng, training.batch, training.epochs, training.steps):
            for _ in range(self.inner_steps):
                sgd.push_back(module, own, site.train, places, nn.cross_entropy)
                module.gradient.add_(module.weights - copy, alpha=self.pull)
                sgd.descend(module.weights, module.gradient, speed, training)
            copy.add_(module.weights - copy, alpha=self.outer_rate * self.pull)
        own.vector = sgd.unless_diverged(module.vector(), own.vector)
        vector = own.vector.copy()  # it has the same statistics, for it saw the same examples
        vector[: len(copy)] = copy.numpy()
        network.vector = sgd.unless_diverged(vector, network.vector)
        network.log_prior = own.log_prior
