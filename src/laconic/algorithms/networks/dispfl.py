"""DisPFL: sparse networks, each with a mask of its own, that clients hand to each other; there is no server's model.

paper   DisPFL: Towards Communication-Efficient Personalized Federated Learning via Decentralized Sparse Training, 2022
round   sampled clients sit in a random circle; each hears the next few, takes the mean of every parameter over those
        that have it, keeps those of its own mask, trains them, then swaps the smallest for those with most gradient
sent    to each neighbour: the kept parameters and where they are
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch

from laconic import networks as nn
from laconic.algorithm import Algorithm, ClientId, Fleet, Site, Task, check_shape, expect_like, on_client
from laconic.algorithms.networks.settings import check_precision, choose_spec
from laconic.algorithms.settings import check_at_least, check_share
from laconic.models.networks import Logits
from laconic.networks import Network, Part, Spec, Training, Vector
from laconic.networks.precision import DTYPES
from laconic.networks.selection import Mask, pick_highest, spread_density
from laconic.networks.sgd import open_network, push_back
from laconic.wire import Bits, Due, Floats, Message, UpTo


class Kept(Message, paper_bits={"mask": 0}):
    mask: Bits  # [entry of the tensors that are sparse]
    values: Floats  # [kept entry], and all of the other tensors


@dataclass
class Server:
    """Knows nothing; it only draws the circle."""


@dataclass
class Client:
    network: Network  # as last trained, under the mask
    mask: Mask  # [entry of the part]
    next_mask: Mask  # to train under in the next round


class DisPFL(Algorithm):
    name = "dispfl"

    density: float = 0.5  # share of the weights that are kept, more of small tensors than of large ones
    n_neighbours: int = 10  # clients that each hears, and is heard by
    swap: float = 0.5  # share of a tensor's kept weights that are swapped after the first round (alpha)
    n_rounds: int = 100  # over which that share goes down to nothing, along a cosine
    fade: float = 0.998  # the learning rate's factor from round to round
    clip: float = 10.0  # longest gradient; longer ones are shortened
    training: Training = Training(epochs=5, batch=128, rate=0.1, decay=5e-4, statistics="local")

    takes = "values"
    budget_knob = "density"

    def __post_init__(self) -> None:
        check_share(self, "density", "swap", "fade")
        check_at_least(self, n_neighbours=1, n_rounds=1, clip=0)
        check_precision(self.training)

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        return Server()

    def run_round(self, server: Server, fleet: Fleet) -> None:
        circle = [fleet.sampled[k] for k in fleet.rng.permutation(len(fleet.sampled))]
        spec = choose_spec(fleet.task, self.training)
        largest, n_dense = self.largest(spec), int(np.count_nonzero(~is_sparse(spec, self.part(spec))))
        most = Due((UpTo(largest.values.size),), nn.LARGEST, item_bytes=largest.values.itemsize)
        expected, check = expect_like(largest, values=most), partial(check_kept, n_dense)
        fleet.gossip(self.publish, self.absorb, seat(circle, self.n_neighbours), expected, check)

    def costliest_round(self, task: Task) -> list[Message]:
        """What it tells each neighbour, and what each tells it."""
        message = self.largest(choose_spec(task, self.training))
        return [message] * (2 * min(self.n_neighbours, task.n_clients - 1))

    def largest(self, spec: Spec) -> Kept:
        part = self.part(spec)
        n_sparse, n_kept = np.count_nonzero(is_sparse(spec, part)), sum(self.count_kept(spec, part).values())
        values = np.zeros(part.size - n_sparse + n_kept, DTYPES[self.training.up])
        return Kept(np.zeros(n_sparse, np.bool_), values)

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        spec = choose_spec(task, self.training)
        part = self.part(spec)
        mask, n_kept = np.ones(part.size, np.bool_), self.count_kept(spec, part)
        for name, place in list_sparse(spec, part):
            mask[place] = pick_highest(site.rng.random(place.stop - place.start, np.float32), n_kept[name])
        network = nn.build(spec, self.training.init_seed)
        network.vector = part.put(network.vector[part.mask] * mask, network.vector)
        return Client(network, mask, mask)

    @on_client
    def publish(self, client: Client, _: Message, site: Site) -> Kept:
        part = self.part(client.network.spec)
        values = client.network.vector[part.mask][client.mask].astype(DTYPES[self.training.up])
        return Kept(client.mask[is_sparse(client.network.spec, part)], values)

    @on_client
    def absorb(self, client: Client, heard: dict[ClientId, Kept], site: Site) -> None:
        spec = client.network.spec
        part = self.part(spec)
        mean = average_kept(client.network.vector[part.mask], client.mask, heard.values(), is_sparse(spec, part))
        client.network.vector = part.put(mean * client.next_mask, client.network.vector)
        client.mask = client.next_mask
        self.train(client, part, site)
        client.next_mask = self.swap_some(client, part, self.find_gradient(client, part, site), site.round)

    def personal_model(self, client: Client) -> Logits:
        return Logits(client.network)

    # ---------------------------------------------------------------- pieces
    def part(self, spec: Spec) -> Part:
        return nn.find_part(spec, statistics=self.training.shares_statistics)

    def count_kept(self, spec: Spec, part: Part) -> dict[str, int]:
        """Weights of each sparse tensor that are kept, by its name."""
        shapes = {piece.name: piece.shape for piece, _ in nn.layout(spec).locate(part) if len(piece.shape) > 1}
        return {
            name: round(share * math.prod(shapes[name])) for name, share in spread_density(shapes, self.density).items()
        }

    def train(self, client: Client, part: Part, site: Site) -> None:
        n_trained = client.network.layout.n_trained
        mask = np.ones(part.mask.size, np.float32)
        mask[part.mask] = client.mask
        moves = torch.from_numpy(mask[:n_trained])

        def keep_to_mask(_: torch.Tensor, gradient: torch.Tensor) -> None:
            gradient.mul_(torch.clamp(self.clip / (gradient.norm() + 1e-6), max=1.0))
            gradient.mul_(moves)

        fading = replace(self.training, rate=self.training.rate * self.fade ** (site.round - 1))
        nn.fit(client.network, site.train, site.rng, fading, adjust=keep_to_mask)

    def find_gradient(self, client: Client, part: Part, site: Site) -> Vector:
        """[entry of the part] of one mini-batch, for weights that are not kept too; 0 for statistics."""
        gradient = np.zeros(part.mask.size, np.float32)
        places = site.rng.permutation(len(site.train.y))[: self.training.batch]
        if places.size:
            module = open_network(client.network, is_training=True)
            where = module.only("all")
            push_back(module, client.network, site.train, places, nn.cross_entropy)
            gradient[where] = module.gradient.numpy()
        return gradient[part.mask]

    def swap_some(self, client: Client, part: Part, gradient: Vector, round: int) -> Mask:
        """As many come as go; what goes may come again at once."""
        share = self.swap / 2 * (1 + math.cos(math.pi * min((round - 1) / self.n_rounds, 1)))
        weights, mask = client.network.vector[part.mask], client.mask.copy()
        for _, place in list_sparse(client.network.spec, part):
            kept = mask[place]
            n_swapped = math.ceil(share * np.count_nonzero(kept) - 1e-9)
            kept = kept & ~pick_highest(np.where(kept, -np.abs(weights[place]), -np.inf), n_swapped)
            mask[place] = kept | pick_highest(np.where(kept, -1, np.abs(gradient[place])), n_swapped)
        return mask


def check_kept(n_dense: int, kept: Kept) -> None:
    check_shape("values", kept.values, (n_dense + int(np.count_nonzero(kept.mask)),))


def seat(circle: Sequence[ClientId], n_neighbours: int) -> dict[ClientId, list[ClientId]]:
    """Each hears those next to it, so that as many hear it."""
    n_heard = min(n_neighbours, len(circle) - 1)
    return {
        client: [circle[(k + step) % len(circle)] for step in range(1, n_heard + 1)] for k, client in enumerate(circle)
    }


def average_kept(own: Vector, mask: Mask, heard: Iterable[Kept], sparse: Mask) -> Vector:
    """[entry] mean over those that keep it; 0 if nobody does."""
    total, n_holders = own.astype(np.float64), mask.astype(np.int64)
    for kept in heard:
        theirs = np.ones(mask.size, np.bool_)
        theirs[sparse] = kept.mask
        total[theirs] += kept.values
        n_holders += theirs
    return (total / np.maximum(n_holders, 1)).astype(np.float32)


def list_sparse(spec: Spec, part: Part) -> list[tuple[str, slice]]:
    """Tensors of more than one axis, and where they lie in the part; biases and norms are kept whole."""
    return [(piece.name, place) for piece, place in nn.layout(spec).locate(part) if len(piece.shape) > 1]


def is_sparse(spec: Spec, part: Part) -> Mask:
    """[entry of the part]"""
    found = np.zeros(part.size, np.bool_)
    for _, place in list_sparse(spec, part):
        found[place] = True
    return found
