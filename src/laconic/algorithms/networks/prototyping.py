"""What methods that send prototypes do alike: class means of features go up, targets come down, networks stay.

Three options, each on its own: only some dimensions of a class travel (CPS), sums travel instead of means so that no
message shows how many examples of a class a client has (PPA), and a client holds to targets in proportion to what it
has of their classes (CPKD).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from laconic import networks as nn
from laconic.algorithm import ClientId, Site, Task
from laconic.networks import Batch, Network, Packed, Spec, Training, Vector
from laconic.networks.prototypes import Masks, choose_masks, nearest, sum_features
from laconic.wire import Bits, Floats, Ints, Message

Kept = Literal["fp32", "fp16", "int8"]
FLOATS = 32


class Aims(Message, paper_bits={"has": 0, "exact": FLOATS, "levels": FLOATS, "scales": 0, "masks": 0}, is_afresh=True):
    """Targets of the classes that have one, the kept dimensions alone; nothing in it: the client holds the latest."""

    has: Bits | None  # [class]
    exact: Floats | None  # [class that has one × kept dimension]
    levels: Ints | None
    scales: Floats | None  # [class that has one]
    masks: Bits | None  # [class, dimension] on first contact


class Size(Message, paper_bits={"n_examples": 0}):
    n_examples: int  # of all classes together


class Means(Message, paper_bits={"held": 0, "exact": FLOATS, "levels": FLOATS, "scales": 0}, is_afresh=True):
    """Means of the classes that a client has, or their sums, the kept dimensions alone."""

    held: Bits  # [class]
    exact: Floats | None  # [held class × kept dimension]
    levels: Ints | None
    scales: Floats | None


@dataclass
class Server:
    masks: Masks  # [class, dimension]
    targets: Vector  # [class, dimension]
    has_target: NDArray[np.bool_]  # [class]
    version: int = 0  # how often the targets were made anew
    held_by: dict[ClientId, int] = field(default_factory=dict)  # the version a client is known to have
    sizes: dict[ClientId, int] = field(default_factory=dict)  # examples of a client, where sums travel


@dataclass
class Client:
    network: Network
    masks: Masks  # [class, dimension]
    targets: Vector  # [class, dimension] zero where nothing is kept
    has_target: NDArray[np.bool_]  # [class]


def choose_specs(task: Task, training: Training, models: tuple[str, ...], n_features: int, client: int) -> Spec:
    """Clients take the models in turn; all end in as many features."""
    model = models[client % len(models)] if models else training.model
    return Spec(model, task.input_shape, task.n_classes, task.peak, training.head, n_features)


def write_rows(rows: Vector, masks: Masks, kept: Kept) -> Packed:
    return nn.pack(rows[masks], find_starts(masks), kept)


def read_rows(message: Aims | Means, masks: Masks) -> Vector:
    """[row, dimension]"""
    rows = np.zeros(masks.shape, np.float32)
    rows[masks] = nn.unpack(Packed(message.exact, message.levels, message.scales), find_starts(masks))
    return rows


def find_starts(masks: Masks) -> NDArray[np.int64]:
    """Where each row begins when the kept dimensions of all stand in line."""
    return np.arange(len(masks), dtype=np.int64) * np.count_nonzero(masks[:1])


# ---------------------------------------------------------------- client
def start_client(spec: Spec, training: Training) -> Client:
    network, shape = nn.build(spec, training.init_seed), (spec.n_classes, spec.n_features)
    return Client(network, np.ones(shape, np.bool_), np.zeros(shape, np.float32), np.zeros(spec.n_classes, np.bool_))


def receive(client: Client, aims: Aims) -> None:
    if aims.masks is not None:
        client.masks = aims.masks
    if aims.has is None:
        return
    client.has_target = aims.has
    client.targets = np.zeros(client.masks.shape, np.float32)
    client.targets[aims.has] = read_rows(aims, client.masks[aims.has])


def pull(client: Client, labels: NDArray[np.int64], *, strength: float, loss: str, in_proportion: bool) -> nn.sgd.Loss:
    """Cross-entropy and the squared distance of features from the target of their class, averaged over dimensions.

    loss: "masked" looks at the kept dimensions alone, "full" draws all others to zero.
    """
    counts = np.bincount(labels, minlength=len(client.targets))
    shares = counts / max(counts.max(), 1) if in_proportion else np.ones(len(counts))
    weights = torch.from_numpy((shares * client.has_target).astype(np.float32))
    targets = torch.from_numpy(client.targets)
    looked_at = torch.from_numpy((client.masks if loss == "masked" else np.ones_like(client.masks)).astype(np.float32))
    looked_at = looked_at / looked_at.sum(dim=1, keepdim=True)

    def total(batch: Batch) -> torch.Tensor:
        squares = (batch.features - targets[batch.labels]) ** 2 * looked_at[batch.labels]
        return nn.cross_entropy(batch) + strength * (squares.sum(dim=1) * weights[batch.labels]).mean()

    return total if client.has_target.any() else nn.cross_entropy


def tell_means(client: Client, site: Site, *, as_sums: bool, kept: Kept) -> Means:
    features, _ = nn.outputs(client.network, site.train.x)
    sums, counts = sum_features(features, site.train.y, len(client.masks))
    held = counts > 0
    rows = sums[held] if as_sums else sums[held] / counts[held, None]
    return Means(held, *write_rows(rows.astype(np.float32), client.masks[held], kept))


def classify(client: Client, x: NDArray[Any], *, by_head: bool) -> NDArray[np.int64]:
    """By the nearest target; by the head where asked, and as long as there are no targets."""
    if by_head or not client.has_target.any():
        return nn.classify(client.network, x)
    features, _ = nn.outputs(client.network, x)
    return nearest(features, client.targets, client.has_target)


# ---------------------------------------------------------------- server
def start_server(task: Task, n_features: int, cps_dims: int) -> Server:
    masks = choose_masks(task.n_classes, n_features, cps_dims)
    return Server(masks, np.zeros(masks.shape, np.float32), np.zeros(task.n_classes, np.bool_))


def offer(server: Server, clients: Iterable[ClientId], kept: Kept, *, to_holders: bool = True) -> dict[ClientId, Aims]:
    """The latest targets for each who lacks them; to_holders: and an empty message for everyone else."""
    has = server.has_target
    packed = write_rows(server.targets[has], server.masks[has], kept)
    latest, nothing = Aims(has, *packed, masks=None), Aims(None, None, None, None, None)
    met = Aims(has, *packed, masks=server.masks)
    messages = {}
    for client in clients:
        if client not in server.held_by:
            messages[client] = met
        elif server.held_by[client] != server.version:
            messages[client] = latest
        elif to_holders:
            messages[client] = nothing
    return messages


def set_targets(server: Server, targets: Vector, is_new: NDArray[np.bool_]) -> None:
    """Classes that nobody sent keep theirs."""
    server.targets = np.where((is_new[:, None] & server.masks), targets, server.targets).astype(np.float32)
    server.has_target = server.has_target | is_new
    server.version += 1


def mark_held(server: Server, clients: Iterable[ClientId]) -> None:
    server.held_by |= dict.fromkeys(clients, server.version)


def list_messages(task: Task, n_features: int, cps_dims: int, kept: Kept) -> list[Message]:
    """Of a client met for the first time that has every class; targets come once to train and once to be tested."""
    server = start_server(task, n_features, cps_dims)
    server.has_target[:] = True
    packed = write_rows(server.targets, server.masks, kept)
    later = Aims(server.has_target, *packed, masks=None)
    return [Size(1), Aims(server.has_target, *packed, masks=server.masks), Means(server.has_target, *packed), later]


def gather_points(replies: Mapping[int, Means], masks: Masks) -> tuple[Vector, NDArray[np.int64]]:
    """[point, dimension] all that came, and [point] its class."""
    labels = np.concatenate([np.flatnonzero(reply.held) for reply in replies.values()])
    points = np.concatenate([read_rows(reply, masks[reply.held]) for reply in replies.values()])
    return points, labels


def check_dims(n_features: int, cps_dims: int) -> None:
    if not 0 < cps_dims <= n_features:
        raise ValueError(
            f"method.cps_dims = {cps_dims} must be at least 1 and at most method.n_features = {n_features}"
        )
