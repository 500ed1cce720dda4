"""What BiFL's ways to bring binary networks together do alike: the rate's fall, and clients that vote with signs."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from laconic.algorithm import ClientId, Site
from laconic.networks import Network, Training, Vector
from laconic.networks.binary import binary_part, fit_binary
from laconic.networks.sketch import signs
from laconic.wire import Bits, Message

TRAINING = Training(rate=0.005, batch=64, statistics="local")
ADAM = dict.fromkeys(("momentum", "decay"), "latent weights take Adam's steps")  # settings without effect, and why


class Signs(Message):
    signs: Bits  # [weight] True for +1


@dataclass
class VoteServer:
    n_plus: NDArray[np.uint16]  # [weight]
    n_voters: int = 0
    version: int = 0
    held_by: dict[ClientId, int] = field(default_factory=dict)  # the version that a client is known to have


@dataclass
class Voter:
    latent: Network
    version: int = 0


def drop_rate(training: Training, drop_every: int, round: int) -> Training:
    n_drops = min((round - 1) // drop_every, 2) if drop_every else 0
    return replace(training, rate=training.rate * (1, 0.4, 0.2)[n_drops])


def find_late(server: VoteServer, clients: Iterable[ClientId]) -> set[ClientId]:
    return {client for client in clients if server.held_by.get(client, 0) < server.version}


def count_votes(server: VoteServer, replies: dict[ClientId, Signs]) -> None:
    server.held_by |= dict.fromkeys(replies, server.version)
    server.n_plus = np.sum([reply.signs for reply in replies.values()], axis=0, dtype=np.uint16)
    server.n_voters, server.version = len(replies), server.version + 1


def train_and_vote(client: Voter, site: Site, training: Training) -> Signs:
    site.note(train_loss=fit_binary(client.latent, site.train, site.rng, training))
    return Signs(signs(latent_weights(client)))


def latent_weights(client: Voter) -> Vector:
    return client.latent.vector[binary_part(client.latent.spec).mask]


def take_over(client: Voter, weights: Vector, version: int) -> None:
    vector = client.latent.vector.copy()
    vector[binary_part(client.latent.spec).mask] = weights
    client.latent.vector, client.version = vector, version
