"""EDEN: a client's change, rotated at random and then rounded to a few levels, with a scale that makes the mean true.

round   sampled clients get the network, train it, rotate its change, and send the nearest level for each entry
merge   the server turns the levels back, and adds the mean of these changes, by examples
sent    down: the network, to whom lacks the latest; up: some bits for each rotated entry, and a scale
"""

import math
from functools import lru_cache
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
from laconic.algorithms.networks.one_bit import check_training, merge_changes, trained_part
from laconic.networks import Training, Vector
from laconic.networks.sketch import padded, rotate, unrotate
from laconic.wire import Bits, Message

MAX_BITS = 4


class Rotated(Message, paper_bits={"scale": 32}, is_afresh=True):
    planes: Bits  # [bit, rotated entry] of the level's number, highest first
    scale: float  # of a level
    n_examples: int


class Eden(Algorithm):
    bits: int = 1  # for each entry of a change; 1 to 4
    training: Training = Training(rate=0.05, batch=64, steps=10, statistics="local")

    takes = "values"
    budget_knob = "bits"

    def __post_init__(self) -> None:
        check_training(self.training)
        if not 1 <= self.bits <= MAX_BITS:
            raise ValueError(f"method.bits = {self.bits} must be from 1 to {MAX_BITS}")

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        spec = choose_spec(task, self.training)
        return start_server(spec, trained_part(spec), self.training)

    def run_round(self, server: Server, fleet: Fleet) -> None:
        part = trained_part(server.spec)
        replies = fleet.ask(self.train, offer(server.shared, fleet.sampled, part, self.training))
        changes = {
            client: (turn_back(reply, part.size, choose_seed(fleet.round, client)), reply.n_examples)
            for client, reply in replies.items()
        }
        merge_changes(server.shared, changes, part, fleet.averaging)

    def deliver(self, server: Server, fleet: Fleet) -> None:
        bring_up_to_date(server.shared, fleet, self.install, trained_part(server.spec), self.training)

    def costliest_round(self, task: Task) -> list[Message]:
        spec = choose_spec(task, self.training)
        part = trained_part(spec)
        first, _, last = list_messages(spec, part, self.training)
        return [first, Rotated(np.zeros((self.bits, padded(part.size)), np.bool_), 0.1, 0), last]

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        spec = choose_spec(task, self.training)
        return start_client(spec, trained_part(spec), self.training)

    @on_client
    def train(self, client: Client, weights: Weights, site: Site) -> Rotated:
        part = trained_part(client.spec)
        receive(client, weights, part)
        network = compose(client, part)
        trained = nn.fit(network, site.train, site.rng, self.training)
        site.note(train_loss=trained.loss)
        keep_personal(client, network, part)
        change = network.vector[part.mask] - client.shared
        planes, scale = round_rotated(rotate(change, choose_seed(site.round, site.id)), self.bits)
        return Rotated(planes, scale, len(site.train.y))

    @on_client
    def install(self, client: Client, weights: Weights, site: Site) -> None:
        receive(client, weights, trained_part(client.spec))

    def predict(self, client: Client, x: NDArray[Any]) -> NDArray[np.int64]:
        return classify(client, x, trained_part(client.spec))


def choose_seed(round: int, client: int) -> int:
    """A rotation for each client and round, so that their errors do not add up."""
    return round << 32 | client


def round_rotated(rotated: Vector, bits: int) -> tuple[NDArray[np.bool_], float]:
    """Planes [bit, entry], and the scale under which the changes are true on average over rotations."""
    squares = float(rotated @ rotated)
    normal = rotated * np.float32(math.sqrt(len(rotated) / squares)) if squares > 0 else rotated
    numbers = np.searchsorted(find_borders(bits), normal)
    planes = (numbers >> np.arange(bits - 1, -1, -1)[:, None] & 1).astype(np.bool_)
    along = float(rotated @ find_levels(bits)[numbers].astype(np.float32))
    return planes, float(np.float32(squares / along)) if along > 0 else 0.0


def turn_back(reply: Rotated, n: int, seed: int) -> Vector:
    """[n] the change."""
    bits = len(reply.planes)
    numbers = (reply.planes.astype(np.int64) << np.arange(bits - 1, -1, -1)[:, None]).sum(axis=0)
    return unrotate(np.float32(reply.scale) * find_levels(bits)[numbers].astype(np.float32), n, seed)


@lru_cache(MAX_BITS)
def find_levels(bits: int) -> NDArray[np.float64]:
    """[2 ** bits] the levels that round a standard normal number best (Lloyd, Max), in rising order."""
    levels = np.linspace(-1, 1, 2**bits + 1)[1:] - 2.0**-bits
    for _ in range(5000):  # four bits need a few hundred
        borders = np.concatenate([[-np.inf], (levels[1:] + levels[:-1]) / 2, [np.inf]])
        density = np.exp(-(borders**2) / 2) / math.sqrt(2 * math.pi)
        mass = np.diff([0.5 * (1 + math.erf(border / math.sqrt(2))) for border in borders])
        moved = -np.diff(density) / mass
        if np.abs(moved - levels).max() < 1e-9:
            break
        levels = moved
    return levels


def find_borders(bits: int) -> NDArray[np.float64]:
    levels = find_levels(bits)
    borders: NDArray[np.float64] = (levels[1:] + levels[:-1]) / 2
    return borders
