"""FedBAT: changes are learned as signs: in the later local steps the network is the received one plus a binary change.

round   sampled clients get the network, train it as usual for a while, then its change as signs times a size per layer
merge   the mean of the binary changes, by examples, is added
sent    down: the network, to whom lacks the latest; up: a bit for each weight, a size for each layer
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic import networks as nn
from laconic.algorithm import Algorithm, Fleet, Site, Task, on_client
from laconic.algorithms.networks.averaging import (
    Client,
    Server,
    Weights,
    bring_up_to_date,
    choose_spec,
    classify,
    compose,
    keep_personal,
    list_messages,
    offer,
    receive,
    start_client,
    start_server,
)
from laconic.algorithms.networks.one_bit import as_numbers, check_training, merge_changes, trained_part
from laconic.algorithms.settings import check_share
from laconic.networks import Layout, Network, Training, Vector, cross_entropy
from laconic.networks.sgd import batches, descend, open_network, push_back
from laconic.wire import Bits, Floats, Message

SMALLEST, LARGEST = 5e-4, 5e-2  # a size that a layer's change may have
SPEED = 6.0  # rho: sizes are exp(rho * what is learned), times the first


class BinaryChange(Message, paper_bits={"sizes": 32}, is_afresh=True):
    signs: Bits  # [weight] True for +1
    sizes: Floats  # [layer] alpha: what a sign is worth
    n_examples: int


class FedBAT(Algorithm):
    warm: float = 0.5  # share of the local steps before changes become binary (phi)
    training: Training = Training(rate=0.05, batch=64, steps=10, statistics="local")

    takes = "values"

    def __post_init__(self) -> None:
        check_training(self.training, momentum="a binary change has none")
        check_share(self, "warm")

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        spec = choose_spec(task, self.training)
        return start_server(spec, trained_part(spec), self.training)

    def run_round(self, server: Server, fleet: Fleet) -> None:
        part = trained_part(server.spec)
        replies = fleet.ask(self.train, offer(server.shared, fleet.sampled, part, self.training))
        lengths = layer_lengths(nn.layout(server.spec))
        changes = {
            client: (as_numbers(reply.signs) * np.repeat(reply.sizes, lengths), reply.n_examples)
            for client, reply in replies.items()
        }
        merge_changes(server.shared, changes, part, fleet.averaging)

    def deliver(self, server: Server, fleet: Fleet) -> None:
        bring_up_to_date(server.shared, fleet, self.install, trained_part(server.spec), self.training)

    def costliest_round(self, task: Task) -> list[Message]:
        spec = choose_spec(task, self.training)
        part, n_layers = trained_part(spec), len(layer_lengths(nn.layout(spec)))
        first, _, last = list_messages(spec, part, self.training)
        return [first, BinaryChange(np.zeros(part.size, np.bool_), np.zeros(n_layers, np.float32), 0), last]

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        spec = choose_spec(task, self.training)
        return start_client(spec, trained_part(spec), self.training)

    @on_client
    def train(self, client: Client, weights: Weights, site: Site) -> BinaryChange:
        part = trained_part(client.spec)
        receive(client, weights, part)
        network = compose(client, part)
        signs, sizes = self.learn_signs(network, site)
        keep_personal(client, network, part)
        return BinaryChange(signs, sizes, len(site.train.y))

    @on_client
    def install(self, client: Client, weights: Weights, site: Site) -> None:
        receive(client, weights, trained_part(client.spec))

    def predict(self, client: Client, x: NDArray[Any]) -> NDArray[np.int64]:
        return classify(client, x, trained_part(client.spec))

    def learn_signs(self, network: Network, site: Site) -> tuple[NDArray[np.bool_], Vector]:
        """Signs [weight] and sizes [layer] of the change; statistics of the network follow."""
        if self.training.prior:
            network.log_prior = nn.log_shares(site.train.y, network.spec.n_classes)
        module = open_network(network, is_training=True)
        module.only("all")
        weights, gradient = module.weights.numpy(), module.gradient.numpy()
        before, lengths = weights.copy(), layer_lengths(module.layout)
        turns = list(
            batches(len(site.train.y), site.rng, self.training.batch, self.training.epochs, self.training.steps)
        )
        n_warm = round(self.warm * len(turns))
        for places in turns[:n_warm]:
            push_back(module, network, site.train, places, cross_entropy)
            descend(module.weights, module.gradient, None, self.training)
        change = weights - before
        first_sizes = mean_sizes(change, lengths)
        learned, sizes, total = np.zeros(len(lengths)), first_sizes, 0.0
        for places in turns[n_warm:]:
            signs = draw_signs(change, np.repeat(sizes, lengths), site.rng)
            weights[:] = before + as_numbers(signs) * np.repeat(sizes, lengths)
            total += push_back(module, network, site.train, places, cross_entropy)
            for_change, for_sizes = pass_back(gradient, change, signs, sizes, lengths)
            change -= np.float32(self.training.rate) * for_change
            learned -= self.training.rate * SPEED * sizes * for_sizes  # the chain rule through exp
            sizes = np.clip(first_sizes * np.exp(SPEED * learned), SMALLEST, LARGEST).astype(np.float32)
        site.note(train_loss=total / max(len(turns) - n_warm, 1))
        network.vector = module.vector()
        return draw_signs(change, np.repeat(sizes, lengths), site.rng), sizes


def layer_lengths(layout: Layout) -> NDArray[np.int64]:
    """[layer] how many weights; weights and biases are layers of their own."""
    return np.array([piece.stop - piece.start for piece in layout.pieces if not piece.is_statistic])


def mean_sizes(change: Vector, lengths: NDArray[np.int64]) -> Vector:
    sums = np.add.reduceat(np.abs(change), np.cumsum(lengths) - lengths)
    return np.clip(sums / lengths, SMALLEST, LARGEST).astype(np.float32)


def draw_signs(change: Vector, sizes: Vector, rng: np.random.Generator) -> NDArray[np.bool_]:
    """At random, so that sign times size is the change on average, where the change is not larger than the size."""
    return rng.random(len(change)) < 0.5 * (1 + change / sizes)


def pass_back(
    gradient: Vector, change: Vector, signs: NDArray[np.bool_], sizes: Vector, lengths: NDArray[np.int64]
) -> tuple[Vector, NDArray[np.float64]]:
    """From the gradient on the binary change, that on the change [weight], and that on the sizes [layer]."""
    ratio = change / np.repeat(sizes, lengths)
    is_inside = np.abs(ratio) <= 1
    by_size = gradient * np.where(is_inside, as_numbers(signs) - ratio, np.sign(ratio))
    return gradient * is_inside, np.add.reduceat(by_size.astype(np.float64), np.cumsum(lengths) - lengths)
