"""SpaFL: only a threshold for each filter or neuron travels; weights never leave the client.

paper   SpaFL: Communication-Efficient Federated Learning with Sparse Models and Low Computational Overhead, 2024
round   sampled clients train weights and thresholds; a filter whose weights are smaller on average than its threshold
        is cut out
merge   the mean of the thresholds; everyone moves its weights by what the thresholds moved
sent    up: thresholds, from the sampled; down: their mean, to everyone
"""

from dataclasses import dataclass

import numpy as np
import torch

from laconic import networks as nn
from laconic.aggregate import EVERY_AVERAGING, average
from laconic.algorithm import Algorithm, Fleet, Site, Task, on_client
from laconic.algorithms.networks.settings import check_precision, choose_spec
from laconic.algorithms.settings import check_at_least
from laconic.models.networks import Logits
from laconic.networks import Network, Training, Vector
from laconic.networks.precision import DTYPES
from laconic.networks.sgd import batches, descend, open_network, push_back, unless_diverged
from laconic.networks.thresholds import count_rows, cut_out, find_kept, pull_thresholds, shift_weights
from laconic.wire import EMPTY, Due, Floats, Message


class Thresholds(Message):
    values: Floats  # [row]


@dataclass
class Server:
    thresholds: Vector  # [row]


@dataclass
class Client:
    network: Network  # nothing cut out
    thresholds: Vector  # [row] as received


class SpaFL(Algorithm):
    name = "spafl"
    client_notes = ("kept",)

    push: float = 1.5e-4  # how much thresholds are drawn upwards, for sparsity (alpha)
    clip: float = 3.0  # longest gradient, of weights and thresholds together; longer ones are shortened
    training: Training = Training(epochs=5, batch=16, rate=0.01, momentum=0.9, statistics="local")

    takes = "values"
    averagings = EVERY_AVERAGING

    def __post_init__(self) -> None:
        check_at_least(self, push=0, clip=0)
        check_precision(self.training)

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        return Server(np.zeros(count_rows(choose_spec(task, self.training)), np.float32))

    def run_round(self, server: Server, fleet: Fleet) -> None:
        expected = {"values": Due(server.thresholds.shape, nn.LARGEST, item_bytes=4)}
        replies = fleet.ask(self.train, dict.fromkeys(fleet.sampled, EMPTY), expect=expected)
        sent = [reply.values.astype(np.float64) for reply in replies.values()]
        server.thresholds = average(sent, [1] * len(sent), fleet.averaging).astype(np.float32)
        news = Thresholds(server.thresholds.astype(DTYPES[self.training.down]))
        fleet.ask(self.shift, dict.fromkeys(fleet.everyone, news), at_least=0)

    def costliest_round(self, task: Task) -> list[Message]:
        n_rows = count_rows(choose_spec(task, self.training))
        return [Thresholds(np.zeros(n_rows, DTYPES[kept])) for kept in (self.training.up, self.training.down)]

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        spec = choose_spec(task, self.training)
        return Client(nn.build(spec, self.training.init_seed), np.zeros(count_rows(spec), np.float32))

    @on_client
    def train(self, client: Client, _: Message, site: Site) -> Thresholds:
        thresholds = self.descend(client.network, client.thresholds, site)
        site.note(kept=float(find_kept(client.network.spec, client.network.vector, thresholds).mean()))
        return Thresholds(thresholds.astype(DTYPES[self.training.up]))

    @on_client
    def shift(self, client: Client, news: Thresholds, site: Site) -> None:
        thresholds = news.values.astype(np.float32)
        client.network.vector = shift_weights(client.network, thresholds - client.thresholds)
        client.thresholds = thresholds

    def personal_model(self, client: Client) -> Logits:
        network = client.network
        kept = find_kept(network.spec, network.vector, client.thresholds)
        return Logits(Network(network.spec, cut_out(network.spec, network.vector, kept), network.log_prior))

    # ---------------------------------------------------------------- pieces
    def descend(self, network: Network, start: Vector, site: Site) -> Vector:
        """Trains the network in place; the thresholds that came of it."""
        if self.training.prior:
            network.log_prior = nn.log_shares(site.train.y, network.spec.n_classes)
        module = open_network(network, is_training=True)
        where = module.only("all")
        trained = torch.cat([module.weights, torch.from_numpy(start.copy())])  # weights, then thresholds
        gradient, n_weights = torch.zeros_like(trained), where.stop
        speed = torch.zeros_like(trained) if self.training.momentum else None
        settings = self.training
        for places in batches(len(site.train.y), site.rng, settings.batch, settings.epochs, settings.steps):
            weights, thresholds = trained[:n_weights].numpy(), trained[n_weights:].numpy()
            kept = find_kept(network.spec, weights, thresholds)
            module.weights.copy_(torch.from_numpy(cut_out(network.spec, weights, kept)))
            push_back(module, network, site.train, places, nn.cross_entropy)
            pulled = module.gradient.numpy()
            gradient[:n_weights] = torch.from_numpy(cut_out(network.spec, pulled, kept))
            gradient[n_weights:] = torch.from_numpy(
                pull_thresholds(network.spec, weights, thresholds, pulled) - self.push * np.exp(-thresholds)
            )
            gradient.mul_(torch.clamp(self.clip / (gradient.norm() + 1e-6), max=1.0))
            descend(trained, gradient, speed, settings)
        module.weights.copy_(trained[:n_weights])
        network.vector = unless_diverged(module.vector(), network.vector)
        return unless_diverged(trained[n_weights:].numpy(), start)
