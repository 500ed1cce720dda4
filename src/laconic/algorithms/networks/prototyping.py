"""What methods that send prototypes do alike: class means of features go up, targets come down, networks stay.

Three options, each on its own: only some dimensions of a class travel (CPS), sums travel instead of means so that no
message shows how many examples of a class a client has (PPA), and a client holds to targets in proportion to what it
has of their classes (CPKD).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from laconic import networks as nn
from laconic.aggregate import Averaging, mean_of, mean_of_pairs
from laconic.algorithm import ClientId, Fleet, Site, Task
from laconic.networks import Batch, Network, Packed, Spec, Training, Vector
from laconic.networks.prototypes import Masks, choose_masks, cosines, head_norms, nearest, sum_features
from laconic.networks.vector import readable
from laconic.wire import Bits, Floats, Ints, Message

Kept = Literal["fp32", "fp16", "int8"]
FLOATS = 32
MOST_NOTED = 50  # classes whose targets are recorded; records are to stay small beside the traffic's


class Aims(Message, paper_bits={"has": 0, "exact": FLOATS, "levels": FLOATS, "scales": 0, "masks": 0}):
    """Targets of the classes that have one, the kept dimensions alone; nothing in it: the client holds the latest."""

    has: Bits | None  # [class]
    exact: Floats | None  # [class that has one × kept dimension]
    levels: Ints | None
    scales: Floats | None  # [class that has one]
    masks: Bits | None  # [class, dimension] on first contact, where not all are kept


class Means(Message, paper_bits={"held": 0, "exact": FLOATS, "levels": FLOATS, "scales": 0, "n_examples": 0}):
    """Means of the classes that a client has, or their sums, the kept dimensions alone."""

    held: Bits  # [class]
    exact: Floats | None  # [held class × kept dimension]
    levels: Ints | None
    scales: Floats | None
    n_examples: int | None  # of all classes together, where these are sums


@dataclass
class Server:
    masks: Masks  # [class, dimension]
    targets: Vector  # [class, dimension]
    has_target: NDArray[np.bool_]  # [class]
    version: int = 0  # how often the targets were made anew
    held_by: dict[ClientId, int] = field(default_factory=dict)  # the version a client is known to have


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

    loss: "masked" looks at the kept dimensions alone, "full" draws all others to zero. Either way the mean is over all
    dimensions: what is kept is drawn as hard as it is where nothing is left out.
    """
    counts = np.bincount(labels, minlength=len(client.targets))
    shares = counts / max(counts.max(), 1) if in_proportion else np.ones(len(counts))
    weights = torch.from_numpy((shares * client.has_target).astype(np.float32))
    targets = torch.from_numpy(client.targets)
    looked_at = torch.from_numpy(readable(client.masks) if loss == "masked" else np.ones_like(client.masks))

    def total(batch: Batch) -> torch.Tensor:
        squares = (batch.features - targets[batch.labels]) ** 2 * looked_at[batch.labels]
        return nn.cross_entropy(batch) + strength * (squares.mean(dim=1) * weights[batch.labels]).mean()

    return total if client.has_target.any() else nn.cross_entropy


def tell_means(client: Client, site: Site, *, as_sums: bool, kept: Kept) -> Means:
    site.note_classes(head_norm=head_norms(client.network.vector, client.network.layout))
    features, _ = nn.outputs(client.network, site.train.x)
    sums, counts = sum_features(features, site.train.y, len(client.masks))
    held = counts > 0
    rows = sums[held] if as_sums else sums[held] / counts[held, None]
    packed = write_rows(rows.astype(np.float32), client.masks[held], kept)
    return Means(held, *packed, n_examples=len(site.train.y) if as_sums else None)


def classify(client: Client, x: NDArray[Any]) -> dict[str, NDArray[np.int64]]:
    """By the nearest target, by the nearest in the dimensions that its class keeps, and by the head.

    As long as there are no targets, by the head alone.
    """
    features, logits = nn.outputs(client.network, x)
    found: dict[str, NDArray[np.int64]] = {"head": logits.argmax(axis=1)}
    if client.has_target.any():
        found["prototype"] = nearest(features, client.targets, client.has_target)
        if not client.masks.all():
            found["kept_dims"] = nearest(features, client.targets, client.has_target, client.masks)
    return found


# ---------------------------------------------------------------- server
def start_server(task: Task, n_features: int, cps_dims: int) -> Server:
    masks = choose_masks(task.n_classes, n_features, min(cps_dims, n_features))
    return Server(masks, np.zeros(masks.shape, np.float32), np.zeros(task.n_classes, np.bool_))


def offer(server: Server, clients: Iterable[ClientId], kept: Kept, *, to_holders: bool = True) -> dict[ClientId, Aims]:
    """The latest targets for each who lacks them; to_holders: and an empty message for everyone else."""
    has = server.has_target
    packed = write_rows(server.targets[has], server.masks[has], kept)
    latest, nothing = Aims(has, *packed, masks=None), Aims(None, None, None, None, None)
    met = latest if server.masks.all() else Aims(has, *packed, masks=server.masks)
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


def bring_up_to_date(server: Server, fleet: Fleet, install: Callable[[Client, Aims, Site], None], kept: Kept) -> None:
    """Everyone gets the latest targets; they are recorded, how alike they are, and what rounding takes of them."""
    mark_held(server, fleet.ask(install, offer(server, fleet.everyone, kept, to_holders=False), at_least=0))
    shown = server.targets[:MOST_NOTED]
    fleet.note_matrix("class", "dimension", prototypes=shown)
    fleet.note_matrix("class", "class", prototype_cosine=cosines(shown))
    targets = server.targets[server.has_target]
    fleet.note(
        prototype_cosine=mean_of_pairs(cosines(targets)),
        prototype_error=find_error(targets, server.masks[server.has_target], kept),
    )


def find_error(rows: Vector, masks: Masks, kept: Kept) -> float:
    """Length of what rounding takes, as a share of the rows' own."""
    exact, starts = rows[masks].astype(np.float64), find_starts(masks)
    lost = nn.unpack(write_rows(rows, masks, kept), starts) - exact
    return float(np.linalg.norm(lost)) / max(float(np.linalg.norm(exact)), 1e-30)


def list_messages(task: Task, n_features: int, cps_dims: int, kept: Kept) -> list[Message]:
    """Of a client that has every class; with masks both times, for its first reply may be lost."""
    server = start_server(task, n_features, cps_dims)
    server.has_target[:] = True
    packed = write_rows(server.targets, server.masks, kept)
    first = Aims(server.has_target, *packed, masks=server.masks)
    return [first, Means(server.has_target, *packed, n_examples=0), first]


def gather_points(replies: Mapping[int, Means], masks: Masks) -> tuple[Vector, NDArray[np.int64]]:
    """[point, dimension] all that came, and [point] its class."""
    labels = np.concatenate([np.flatnonzero(reply.held) for reply in replies.values()])
    points = np.concatenate([read_rows(reply, masks[reply.held]) for reply in replies.values()])
    return points, labels


def average(replies: Mapping[int, Means], masks: Masks, how: Averaging = "mean") -> tuple[Vector, NDArray[np.bool_]]:
    """[class, dimension] plain means of what came, and [class] whether anyone sent it."""
    points, labels = gather_points(replies, masks)
    if how != "mean":
        targets, is_sent = np.zeros(masks.shape, np.float32), np.isin(np.arange(len(masks)), labels)
        for label in np.flatnonzero(is_sent):
            came = list(points[labels == label])
            targets[label] = mean_of(came, [1] * len(came), how)
        return targets, is_sent
    sums, n_senders = sum_features(points, labels, len(masks))
    return sums / np.maximum(n_senders, 1).astype(np.float32)[:, None], n_senders > 0


def count_examples(replies: Mapping[int, Means]) -> int:
    return sum(reply.n_examples or 0 for reply in replies.values())


def check_dims(n_features: int, cps_dims: int) -> None:
    for name, value in (("n_features", n_features), ("cps_dims", cps_dims)):
        if value < 1:
            raise ValueError(f"method.{name} = {value} must be at least 1")
