"""FedBAT: changes are learned as signs: in the later local steps the network is the received one plus a binary change.

paper   FedBAT: Communication-Efficient Federated Learning via Learnable Binarization, 2024
round   sampled clients get the network, train it as usual for a while, then its change as signs times a size per layer
merge   the mean of the binary changes, by examples, is added
sent    down: the network, to whom lacks the latest; up: a bit for each weight, a size for each layer
"""

import numpy as np
from numpy.typing import NDArray

from laconic import networks as nn
from laconic.aggregate import EVERY_AVERAGING
from laconic.algorithm import Site, on_client
from laconic.algorithms.networks.coded_change import CodedChange
from laconic.algorithms.networks.settings import check_bits
from laconic.algorithms.networks.weights import Client, Weights
from laconic.algorithms.settings import check_share
from laconic.networks import Network, Spec, Training, Vector, cross_entropy
from laconic.networks.binary import LARGEST, SMALLEST, draw_signs, hold_sizes, layer_lengths, mean_sizes, pass_back
from laconic.networks.sgd import descend, draw_batches, open_network, push_back, take_some, unless_diverged
from laconic.networks.sketch import as_numbers
from laconic.wire import Bits, Count, Floats, Message

SPEED = 6.0  # rho: sizes are exp(rho * what is learned), times the first


class BinaryChange(Message, paper_bits={"sizes": 32}, stateless=True):
    signs: Bits  # [weight] True for +1
    sizes: Floats  # [layer] alpha: what a sign is worth
    n_examples: Count


class FedBAT(CodedChange):
    name = "fedbat"
    client_notes = ("train_loss",)

    warm: float = 0.5  # share of the local steps before changes become binary (phi)
    training: Training = Training(rate=0.05, batch=64, steps=10, statistics="local")

    averagings = EVERY_AVERAGING

    def __post_init__(self) -> None:
        check_bits(self.training, momentum="a binary change has none")
        check_share(self, "warm")

    # ---------------------------------------------------------------- server
    def decode_change(self, reply: BinaryChange, spec: Spec, seed: int) -> Vector:
        return as_numbers(reply.signs) * np.repeat(reply.sizes, layer_lengths(nn.layout(spec)))

    def largest_up(self, spec: Spec) -> BinaryChange:
        n_layers = len(layer_lengths(nn.layout(spec)))
        return BinaryChange(np.zeros(self.part(spec).size, np.bool_), np.zeros(n_layers, np.float32), 0)

    # ---------------------------------------------------------------- client
    @on_client
    def train(self, client: Client, weights: Weights, site: Site) -> BinaryChange:
        network = self.receive(client, weights)
        signs, sizes = self.learn_signs(network, site)
        self.keep(client, network)
        return BinaryChange(signs, sizes, len(site.train.y))

    def learn_signs(self, network: Network, site: Site) -> tuple[NDArray[np.bool_], Vector]:
        """Signs [weight] and sizes [layer] of the change; statistics of the network follow."""
        if self.training.prior:
            network.log_prior = nn.log_shares(site.train.y, network.spec.n_classes)
        module = open_network(network, is_training=True)
        module.only("all")
        weights, gradient = module.weights.numpy(), module.gradient.numpy()
        before, lengths = weights.copy(), layer_lengths(module.layout)
        n_turns = self.training.count_batches(len(site.train.y))
        turns = list(draw_batches(len(site.train.y), site.rng, self.training.batch, n_turns))
        n_warm = int(self.warm * n_turns)
        for places in take_some(iter(turns[:n_warm]), n_warm, "all"):
            push_back(module, network, site.train, places, cross_entropy)
            descend(module.weights, module.gradient, None, self.training)
        change = weights - before
        free = first_sizes = mean_sizes(change, lengths)  # as they are before they are held within their bounds
        learned, sizes, total = np.zeros(len(lengths)), hold_sizes(free), 0.0
        for places in take_some(iter(turns[n_warm:]), n_turns - n_warm, "signs"):
            signs = draw_signs(change, np.repeat(sizes, lengths), site.rng)
            weights[:] = before + as_numbers(signs) * np.repeat(sizes, lengths)
            total += push_back(module, network, site.train, places, cross_entropy)
            for_change, for_sizes = pass_back(gradient, change, signs, sizes, lengths)
            change -= np.float32(self.training.rate) * for_change
            is_held = (free < SMALLEST) | (free > LARGEST)  # no gradient comes through; else it does through exp
            learned -= self.training.rate * SPEED * np.where(is_held, 0, sizes * for_sizes)
            free = first_sizes * np.exp(SPEED * learned)
            sizes = hold_sizes(free)
        site.note(train_loss=total / max(n_turns - n_warm, 1))
        network.vector = unless_diverged(module.vector(), network.vector)
        sizes = np.nan_to_num(sizes, nan=SMALLEST)
        return draw_signs(change, np.repeat(sizes, lengths), site.rng), sizes
