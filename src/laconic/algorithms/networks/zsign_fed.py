"""zSignFed (z-SignFedAvg): the signs of a client's change, after noise that makes their mean tell its size.

paper   z-SignFedAvg: A Unified Stochastic Sign-Based Compression for Federated Learning, 2024
round   sampled clients get the network, train it, add noise to its change in units of the learning rate, send the signs
merge   the mean of the signs, by examples, times what the noise makes a sign worth, is added
sent    down: the network, to whom lacks the latest; up: a bit for each weight
"""

import math
from typing import Literal

import numpy as np

from laconic.aggregate import EVERY_AVERAGING
from laconic.algorithm import Site, on_client
from laconic.algorithms.networks.coded_change import CodedChange
from laconic.algorithms.networks.settings import check_bits
from laconic.algorithms.networks.weights import Client, Weights
from laconic.networks import Spec, Training, Vector
from laconic.networks.sketch import as_numbers, signs
from laconic.wire import Bits, Count, Message

WORTH = {"normal": math.sqrt(math.pi / 2), "uniform": 1.0}  # of a sign, for small changes, in units of the noise


class Signs(Message, stateless=True):
    signs: Bits  # [weight] of the change, True for +1
    n_examples: Count


class ZSignFed(CodedChange):
    name = "zsignfed"
    client_notes = ("train_loss",)

    noise: float = 0.05  # its size, where a change is a sum of gradients (sigma)
    shape: Literal["normal", "uniform"] = "normal"  # of the noise: z = 1 or infinite; uniform is from -noise to noise
    training: Training = Training(rate=0.05, batch=64, steps=10, statistics="local")

    averagings = EVERY_AVERAGING

    def __post_init__(self) -> None:
        check_bits(self.training)
        if not 0 < self.noise < math.inf:
            raise ValueError(f"method.noise = {self.noise} must be above 0")

    # ---------------------------------------------------------------- server
    def decode_change(self, reply: Signs, spec: Spec, seed: int) -> Vector:
        return np.float32(self.training.rate * self.noise * WORTH[self.shape]) * as_numbers(reply.signs)

    def largest_up(self, spec: Spec) -> Signs:
        return Signs(np.zeros(self.part(spec).size, np.bool_), 0)

    # ---------------------------------------------------------------- client
    @on_client
    def train(self, client: Client, weights: Weights, site: Site) -> Signs:
        change = self.learn(client, weights, site) / np.float32(self.training.rate)
        draw = site.rng.standard_normal if self.shape == "normal" else lambda n: site.rng.uniform(-1, 1, n)
        return Signs(signs(change + self.noise * draw(change.size)), len(site.train.y))
