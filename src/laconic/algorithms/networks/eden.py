"""EDEN: a client's change, rotated at random and then rounded to a few levels, with a scale that makes the mean true.

paper   EDEN: Communication-Efficient and Robust Distributed Mean Estimation for Federated Learning, 2022
round   sampled clients get the network, train it, rotate its change, and send the nearest level for each entry
merge   the server turns the levels back, and adds the mean of these changes, by examples
sent    down: the network, to whom lacks the latest; up: some bits for each rotated entry, and a scale
"""

import numpy as np

from laconic.aggregate import EVERY_AVERAGING
from laconic.algorithm import Site, on_client
from laconic.algorithms.networks.coded_change import CodedChange
from laconic.algorithms.networks.settings import check_bits
from laconic.algorithms.networks.shared_vector import choose_seed
from laconic.algorithms.networks.weights import Client, Weights
from laconic.networks import Spec, Training, Vector
from laconic.networks.precision import read_normal, round_normal
from laconic.networks.sketch import padded, rotate, unrotate
from laconic.wire import Bits, Count, Message

MAX_BITS = 4


class Rotated(Message, paper_bits={"scale": 32}, stateless=True):
    planes: Bits  # [bit, rotated entry] of the level's number, highest first
    scale: float  # of a level
    n_examples: Count


class Eden(CodedChange):
    name = "eden"
    client_notes = ("train_loss",)

    bits: int = 1  # for each entry of a change; 1 to 4
    training: Training = Training(rate=0.05, batch=64, steps=10, statistics="local")

    averagings = EVERY_AVERAGING
    budget_knob = "bits"

    def __post_init__(self) -> None:
        check_bits(self.training)
        if not 1 <= self.bits <= MAX_BITS:
            raise ValueError(f"method.bits = {self.bits} must be from 1 to {MAX_BITS}")

    # ---------------------------------------------------------------- server
    def decode_change(self, reply: Rotated, spec: Spec, seed: int) -> Vector:
        return unrotate(read_normal(reply.planes, reply.scale), self.part(spec).size, seed)

    def largest_up(self, spec: Spec) -> Rotated:
        return Rotated(np.zeros((self.bits, padded(self.part(spec).size)), np.bool_), 0.1, 0)

    # ---------------------------------------------------------------- client
    @on_client
    def train(self, client: Client, weights: Weights, site: Site) -> Rotated:
        rotated = rotate(self.learn(client, weights, site), choose_seed(site.round, site.id))
        return Rotated(*round_normal(rotated, self.bits), len(site.train.y))
