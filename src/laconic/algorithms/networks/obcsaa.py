"""OBCSAA: the largest entries of a client's change, as signs of a sketch from which the server makes them out again.

paper   1-Bit Compressive Sensing for Efficient Federated Learning Over the Air, 2021
round   sampled clients get the network, train it, and send the signs of a sketch of the largest entries of its change
merge   of the mean of the signs, by examples, the server makes out a sparse change (binary iterative hard thresholding)
sent    down: the network, to whom lacks the latest; up: a bit for each row of the sketch, and the change's length
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.aggregate import Averaging
from laconic.algorithm import ClientId, Site, on_client
from laconic.algorithms.networks.coded_change import CodedChange
from laconic.algorithms.networks.settings import check_bits
from laconic.algorithms.networks.weights import Client, Server, Weights
from laconic.algorithms.settings import check_at_least
from laconic.networks import Spec, Training, Vector
from laconic.networks.selection import keep_largest
from laconic.networks.sketch import Sketch, as_numbers, signs
from laconic.wire import Bits, Count, Message


class Measured(Message, stateless=True):
    signs: Bits  # [row] of the sketch of the entries kept
    length: float  # of these entries, as a vector
    n_examples: Count


class OBCSAA(CodedChange):
    name = "obcsaa"
    client_notes = ("train_loss",)

    share: float = 0.1  # rows of the sketch for each weight of the network
    kept: float = 0.01  # share of the entries of a change that count, the largest
    iterations: int = 20  # of making out the change
    training: Training = Training(rate=0.05, batch=64, steps=10, statistics="local")

    def __post_init__(self) -> None:
        check_bits(self.training)
        check_at_least(self, iterations=1)
        if not (0 < self.share <= 1 and 0 < self.kept <= 1):
            raise ValueError(f"method.share = {self.share}, method.kept = {self.kept} must be above 0 and at most 1")

    # ---------------------------------------------------------------- server
    def merge(
        self, server: Server, replies: Mapping[ClientId, Measured], round: int, averaging: Averaging = "mean"
    ) -> None:
        """Of one change that is made out of all replies together."""
        n_weights, sizes = server.shared.vector.size, [max(reply.n_examples, 1) for reply in replies.values()]
        measured = np.average([as_numbers(reply.signs) for reply in replies.values()], axis=0, weights=sizes)
        length = float(np.average([reply.length for reply in replies.values()], weights=sizes))
        made_out = make_out(self.sketch(n_weights, round), measured, self.count(n_weights), self.iterations)
        server.shared.acknowledge(replies)
        server.shared.move((length * made_out).astype(np.float64))

    def largest_up(self, spec: Spec) -> Measured:
        return Measured(np.zeros(self.sketch(self.part(spec).size, 0).n_rows, np.bool_), 0.1, 0)

    # ---------------------------------------------------------------- client
    @on_client
    def train(self, client: Client, weights: Weights, site: Site) -> Measured:
        change = self.learn(client, weights, site)
        largest = keep_largest(change, self.count(change.size))
        measured = self.sketch(change.size, site.round).forward(largest)
        return Measured(signs(measured), float(np.float32(np.linalg.norm(largest))), len(site.train.y))

    # ---------------------------------------------------------------- pieces
    def sketch(self, n_weights: int, round: int) -> Sketch:
        """Drawn anew each round, so that no entry stays unseen for ever."""
        return Sketch(n_weights, max(1, int(self.share * n_weights)), seed=round)

    def count(self, n_weights: int) -> int:
        return max(1, int(self.kept * n_weights))


def make_out(sketch: Sketch, measured: NDArray[np.floating[Any]], n_kept: int, iterations: int) -> Vector:
    """[weight] of length 1, n_kept of them not zero, whose sketch has nearly the signs measured."""
    # a row of the sketch has entries of 1 / sqrt(rows), so this is the usual step of 1 / rows for entries of 1
    step = np.float32(sketch.n_rows**-0.5)
    found = np.zeros(sketch.n_weights, np.float32)
    for turn in range(iterations):
        seen = as_numbers(signs(sketch.forward(found))) if turn else np.zeros(sketch.n_rows, np.float32)
        found = keep_largest(found + step * sketch.adjoint(measured.astype(np.float32) - seen), n_kept)
    length = np.linalg.norm(found)
    return found / length if length > 0 else found
