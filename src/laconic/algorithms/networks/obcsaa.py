"""OBCSAA: the largest entries of a client's change, as signs of a sketch from which the server makes them out again.

round   sampled clients get the network, train it, and send the signs of a sketch of the largest entries of its change
merge   of the mean of the signs, by examples, the server makes out a sparse change (binary iterative hard thresholding)
sent    down: the network, to whom lacks the latest; up: a bit for each row of the sketch, and the change's length
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
from laconic.algorithms.settings import check_at_least
from laconic.networks import Training, Vector
from laconic.networks.sketch import Sketch, signs
from laconic.wire import Bits, Message


class Measured(Message, is_afresh=True):
    signs: Bits  # [row] of the sketch of the entries kept
    length: float  # of these entries, as a vector
    n_examples: int


class OBCSAA(Algorithm):
    share: float = 0.1  # rows of the sketch for each weight of the network
    kept: float = 0.01  # share of the entries of a change that count, the largest
    iterations: int = 20  # of making out the change
    training: Training = Training(rate=0.05, batch=64, steps=10, statistics="local")

    takes = "values"

    def __post_init__(self) -> None:
        check_training(self.training)
        check_at_least(self, iterations=1)
        if not (0 < self.share <= 1 and 0 < self.kept <= 1):
            raise ValueError(f"method.share = {self.share}, method.kept = {self.kept} must be above 0 and at most 1")

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        spec = choose_spec(task, self.training)
        return start_server(spec, trained_part(spec), self.training)

    def run_round(self, server: Server, fleet: Fleet) -> None:
        part = trained_part(server.spec)
        replies = fleet.ask(self.train, offer(server.shared, fleet.sampled, part, self.training))
        sizes = [max(reply.n_examples, 1) for reply in replies.values()]
        measured = np.average([as_numbers(reply.signs) for reply in replies.values()], axis=0, weights=sizes)
        length = float(np.average([reply.length for reply in replies.values()], weights=sizes))
        change = length * make_out(
            self.sketch(part.size, fleet.round), measured, self.count(part.size), self.iterations
        )
        merge_changes(server.shared, dict.fromkeys(replies, (change, 1)), part)

    def deliver(self, server: Server, fleet: Fleet) -> None:
        bring_up_to_date(server.shared, fleet, self.install, trained_part(server.spec), self.training)

    def costliest_round(self, task: Task) -> list[Message]:
        spec = choose_spec(task, self.training)
        part = trained_part(spec)
        first, _, last = list_messages(spec, part, self.training)
        return [first, Measured(np.zeros(self.sketch(part.size, 0).n_rows, np.bool_), 0.1, 0), last]

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        spec = choose_spec(task, self.training)
        return start_client(spec, trained_part(spec), self.training)

    @on_client
    def train(self, client: Client, weights: Weights, site: Site) -> Measured:
        part = trained_part(client.spec)
        receive(client, weights, part)
        network = compose(client, part)
        trained = nn.fit(network, site.train, site.rng, self.training)
        site.note(train_loss=trained.loss)
        keep_personal(client, network, part)
        largest = keep_largest(network.vector[part.mask] - client.shared, self.count(part.size))
        measured = self.sketch(part.size, site.round).forward(largest)
        return Measured(signs(measured), float(np.float32(np.linalg.norm(largest))), len(site.train.y))

    @on_client
    def install(self, client: Client, weights: Weights, site: Site) -> None:
        receive(client, weights, trained_part(client.spec))

    def predict(self, client: Client, x: NDArray[Any]) -> NDArray[np.int64]:
        return classify(client, x, trained_part(client.spec))

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


def keep_largest(values: Vector, n_kept: int) -> Vector:
    kept = np.zeros_like(values)
    places = np.argpartition(np.abs(values), len(values) - n_kept)[len(values) - n_kept :]
    kept[places] = values[places]
    return kept
