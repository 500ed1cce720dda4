"""pFed1BS: every client has a network of its own; all they share is the signs of a sketch of it.

paper   pFed1BS: Personalized Federated Learning with Bidirectional Communication Compression via One-Bit Random
        Sketching, 2026
round   sampled clients get the consensus, train their own networks and are drawn to those whose sketch has its signs
merge   sign by sign, the majority of the sketches' signs, by examples
sent    down: the consensus; up: the signs of a client's sketch; a bit for each of the sketch's rows
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from laconic import networks as nn
from laconic.aggregate import majority
from laconic.algorithm import Algorithm, Fleet, Site, Task, on_client
from laconic.algorithms.networks.settings import check_bits, choose_spec
from laconic.algorithms.settings import check_at_least
from laconic.models.networks import Logits
from laconic.networks import Network, Spec, Training
from laconic.networks.sketch import Sketch, as_numbers, signs
from laconic.wire import Bits, Count, Due, Message

Signs = NDArray[np.bool_]


class Consensus(Message):
    signs: Bits | None  # [row] True for +1; none before the first merge: both ends know the sketch of the first weights


class Sketched(Message):
    signs: Bits  # [row] of the client's network
    n_examples: Count


@dataclass
class Server:
    spec: Spec
    consensus: Signs | None = None  # v


class PFed1BS(Algorithm):
    name = "pfed1bs"
    client_notes = ("train_loss", "agreement")

    share: float = 0.1  # rows of the sketch for each weight of the network (m/n)
    halve_every: int = 0  # rounds after which the sketch has half as many rows; 0: never
    pull: float = 0.0005  # towards networks whose sketch has the consensus's signs (lambda)
    shrink: float = 0.00001  # towards small weights (mu)
    sharpness: float = 10000.0  # of the tanh that stands for a sign (gamma)
    sketch_seed: int = 0  # the sketch's rows follow from it at both ends
    training: Training = Training(rate=0.1, batch=64, steps=10, statistics="local")

    takes = "values"
    budget_knob = "share"

    def __post_init__(self) -> None:
        check_bits(self.training, down="what goes down are bits")
        check_at_least(self, halve_every=0, pull=0, shrink=0, sketch_seed=0)
        if not (0 < self.share <= 1 and self.sharpness > 0):
            raise ValueError(
                f"method.share = {self.share}, method.sharpness = {self.sharpness} "
                "must be above 0 and at most 1, and above 0"
            )

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        return Server(choose_spec(task, self.training))

    def run_round(self, server: Server, fleet: Fleet) -> None:
        expected = {"signs": Due((self.sketch(server.spec, fleet.round).n_rows,))}
        asked = dict.fromkeys(fleet.sampled, Consensus(server.consensus))
        replies = fleet.ask(self.train, asked, expect=expected).values()
        server.consensus = majority([reply.signs for reply in replies], [reply.n_examples for reply in replies])

    def costliest_round(self, task: Task) -> list[Message]:
        row = np.zeros(self.sketch(choose_spec(task, self.training), 1).n_rows, np.bool_)
        return [Consensus(row), Sketched(row, 0)]

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Network:
        return nn.build(choose_spec(task, self.training), self.training.init_seed)

    @on_client
    def train(self, client: Network, consensus: Consensus, site: Site) -> Sketched:
        now = self.sketch(client.spec, site.round)
        wanted = self.first_consensus(client.spec) if consensus.signs is None else consensus.signs
        drawn_to = Sketch(now.n_weights, len(wanted), self.sketch_seed)  # it may be of a round with more rows

        def adjust(weights: Tensor, gradient: Tensor) -> None:
            pulled = pull_gradient(drawn_to, weights.numpy(), wanted, self.sharpness)
            gradient.add_(torch.from_numpy(pulled), alpha=self.pull).add_(weights, alpha=self.shrink)

        trained = nn.fit(client, site.train, site.rng, self.training, adjust=adjust)
        weights = client.vector[: now.n_weights]
        site.note(train_loss=trained.loss, agreement=np.mean(signs(drawn_to.forward(weights)) == wanted))
        return Sketched(signs(now.forward(weights)), len(site.train.y))

    def personal_model(self, client: Network) -> Logits:
        return Logits(client)

    # ---------------------------------------------------------------- pieces
    def sketch(self, spec: Spec, round: int) -> Sketch:
        """A smaller one's rows are among a larger one's."""
        n_weights = nn.layout(spec).n_trained
        n_halved = (round - 1) // self.halve_every if self.halve_every else 0
        return Sketch(n_weights, max(1, int(self.share * n_weights) >> n_halved), self.sketch_seed)

    def first_consensus(self, spec: Spec) -> Signs:
        sketch = self.sketch(spec, 1)
        return signs(sketch.forward(nn.start_vector(spec, self.training.init_seed)[: sketch.n_weights]))


def pull_gradient(sketch: Sketch, weights: NDArray[np.float32], wanted: Signs, sharpness: float) -> NDArray[np.float32]:
    """[weight] of sum(log cosh(sharpness z)) / sharpness - <wanted, z>, where z is the weights' sketch."""
    z = sketch.forward(weights)
    return sketch.adjoint(np.tanh(np.float32(sharpness) * z) - as_numbers(wanted))
