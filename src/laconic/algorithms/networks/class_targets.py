"""One target for each class that all clients hold: the shape of methods that share means of classes, and no weights.

round   sampled clients train, held to the targets, and send a mean of each class they have
merge   targets are made of these; a class that nobody sent keeps its own
sent    down: targets, to whom lacks the latest; up: means of the classes held
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from laconic import networks as nn
from laconic.aggregate import Averaging, average
from laconic.algorithm import Algorithm, ClientId, Fleet, Site, Task, expect_like, on_client
from laconic.algorithms.broadcast import Broadcast
from laconic.algorithms.networks.settings import check_networks, choose_spec
from laconic.networks import Network, Packed, Training, Vector
from laconic.networks.prototypes import Masks, choose_masks, find_starts, read_rows, sum_features, write_rows
from laconic.wire import Bits, Count, Due, Expected, Floats, Ints, Message, UpTo
from laconic.wire.message import MOST_COUNT

Kept = Literal["fp32", "fp16", "int8"]
FLOATS = 32


class Targets(Message, paper_bits={"has": 0, "exact": FLOATS, "levels": FLOATS, "scales": 0, "masks": 0}):
    """Of the classes that have one, the kept dimensions alone; nothing in it: the client holds the latest."""

    has: Bits | None  # [class]
    exact: Floats | None  # [class that has one × kept dimension]
    levels: Ints | None  # the same as whole numbers, where these were asked for
    scales: Floats | None  # [class that has one] what a level is worth
    masks: Bits | None  # [class, dimension] on first contact, where not all are kept


class Means(Message, paper_bits={"held": 0, "exact": FLOATS, "levels": FLOATS, "scales": 0, "n_examples": 0}):
    """Means of the classes that a client has, or their sums, the kept dimensions alone."""

    held: Bits  # [class]
    exact: Floats | None  # [held class × kept dimension]
    levels: Ints | None  # the same as whole numbers, where these were asked for
    scales: Floats | None  # [held class] what a level is worth
    n_examples: Count | None  # of all classes together, where these are sums

    @property
    def packed(self) -> Packed:
        return Packed(self.exact, self.levels, self.scales)


@dataclass
class Server(Broadcast):
    """A state with more in it has this as its `exchange`."""

    masks: Masks  # [class, dimension]
    targets: Vector  # [class, dimension]
    has_target: NDArray[np.bool_]  # [class]

    @property
    def exchange(self) -> Self:
        return self

    def set_targets(self, targets: Vector, is_new: NDArray[np.bool_]) -> None:
        """Classes that nobody sent keep theirs."""
        self.targets = np.where((is_new[:, None] & self.masks), targets, self.targets).astype(np.float32)
        self.has_target = self.has_target | is_new
        self.version += 1


@dataclass
class Client:
    network: Network
    masks: Masks  # [class, dimension]
    targets: Vector  # [class, dimension] zero where nothing is kept
    has_target: NDArray[np.bool_]  # [class]

    def receive(self, targets: Targets) -> None:
        if targets.masks is not None:
            self.masks = targets.masks
        if targets.has is not None:
            self.has_target, self.targets = targets.has, np.zeros(self.masks.shape, np.float32)
            packed = Packed(targets.exact, targets.levels, targets.scales)
            self.targets[targets.has] = read_rows(packed, self.masks[targets.has])


class ClassTargets(Algorithm):
    training: Training = Training(rate=0.01, batch=32)
    models: tuple[str, ...] = ()  # taken by clients in turn, e.g. ["resnet8", "mobilenetv2"]; none: training.model
    n_features: int = 0  # that every head gets; 0: as its body makes them
    kept: Kept = "fp32"  # precision of what travels, both ways

    takes = "values"

    # ---------------------------------------------------------------- what a method says
    @abstractmethod
    def count_dims(self, task: Task) -> tuple[int, int]:
        """Dimensions of a target, and how many of them travel."""

    @abstractmethod
    def hold(self, client: Client, site: Site) -> nn.Loss:
        """The loss of a client's training, which holds it to the targets."""

    @abstractmethod
    def tell_means(self, client: Client, site: Site) -> Means: ...

    @abstractmethod
    def merge(
        self, server: Any, replies: Mapping[ClientId, Means], rng: np.random.Generator, averaging: Averaging = "mean"
    ) -> tuple[Vector, NDArray[np.bool_]]:
        """[class, dimension] and [class] whether anyone sent it."""

    # ---------------------------------------------------------------- server
    def start_exchange(self, task: Task) -> Server:
        masks = choose_masks(task.n_classes, *self.count_dims(task))
        return Server(masks, np.zeros(masks.shape, np.float32), np.zeros(task.n_classes, np.bool_))

    def run_round(self, server: Any, fleet: Fleet) -> None:
        exchange: Server = server.exchange
        offered = self.offer(exchange, fleet.sampled, Targets(None, None, None, None, None))
        expected, check = self.expect_means(exchange), partial(check_means, exchange.masks)
        replies = fleet.ask(self.train, offered, expect=expected, check=check)
        exchange.acknowledge(replies)
        exchange.set_targets(*self.merge(server, replies, fleet.rng, fleet.averaging))

    def offer(
        self, exchange: Server, clients: Iterable[ClientId], nothing: Targets | None = None
    ) -> dict[ClientId, Targets]:
        """As Broadcast has it, and masks for whom the server has not met."""
        has = exchange.has_target
        packed = write_rows(exchange.targets[has], exchange.masks[has], self.kept)
        latest = Targets(has, *packed, masks=None)
        first = latest if exchange.masks.all() else Targets(has, *packed, masks=exchange.masks)
        strangers = [client for client in clients if client not in exchange.held_by]
        return exchange.offer(clients, latest, nothing) | dict.fromkeys(strangers, first)

    def expect_means(self, exchange: Server) -> Expected:
        """How many rows and entries come follows from what a client holds; here, of one that has every class."""
        has, most = np.ones_like(exchange.has_target), nn.LARGEST * MOST_COUNT  # a sum over examples, with ppa
        all_classes = Means(has, *write_rows(exchange.targets, exchange.masks, self.kept), n_examples=0)
        expected = dict(expect_like(all_classes, most))
        for name, part in all_classes.packed._asdict().items():
            if part is not None:
                expected[name] = Due((UpTo(part.size),), most, item_bytes=part.itemsize)
        return expected | {"n_examples": Due(may_lack=True)}

    def check_task(self, task: Task) -> None:
        super().check_task(task)
        check_networks(task, self.training, self.models, self.n_features)

    def costliest_round(self, task: Task) -> list[Message]:
        """Of a client that has every class; with masks both times, for its first reply may be lost."""
        exchange = self.start_exchange(task)
        has = np.ones_like(exchange.has_target)
        packed = write_rows(exchange.targets, exchange.masks, self.kept)
        first = Targets(has, *packed, masks=exchange.masks)
        return [first, Means(has, *packed, n_examples=0), first]

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        spec = choose_spec(task, self.training, self.models, self.n_features, site.id)
        shape = task.n_classes, self.count_dims(task)[0]
        network, has_target = nn.build(spec, self.training.init_seed), np.zeros(task.n_classes, np.bool_)
        return Client(network, np.ones(shape, np.bool_), np.zeros(shape, np.float32), has_target)

    @on_client
    def train(self, client: Client, targets: Targets, site: Site) -> Means:
        client.receive(targets)
        nn.fit(client.network, site.train, site.rng, self.training, loss=self.hold(client, site))
        return self.tell_means(client, site)


def check_means(masks: Masks, _: Targets, reply: Means) -> None:
    rows = masks[reply.held]
    nn.check_packed(reply.packed, find_starts(rows), int(np.count_nonzero(rows)))


def gather_points(replies: Mapping[ClientId, Means], masks: Masks) -> tuple[Vector, NDArray[np.int64]]:
    """[point, dimension] all that came, and [point] its class."""
    labels = np.concatenate([np.flatnonzero(reply.held) for reply in replies.values()])
    points = np.concatenate([read_rows(reply.packed, masks[reply.held]) for reply in replies.values()])
    return points, labels


def average_targets(
    replies: Mapping[ClientId, Means], masks: Masks, averaging: Averaging = "mean"
) -> tuple[Vector, NDArray[np.bool_]]:
    """[class, dimension] plain means of what came, and [class] whether anyone sent it."""
    points, labels = gather_points(replies, masks)
    if averaging != "mean":
        targets, is_sent = np.zeros(masks.shape, np.float32), np.isin(np.arange(len(masks)), labels)
        for label in np.flatnonzero(is_sent):
            came = list(points[labels == label])
            targets[label] = average(came, [1] * len(came), averaging)
        return targets, is_sent
    sums, n_senders = sum_features(points, labels, len(masks))
    return sums / np.maximum(n_senders, 1).astype(np.float32)[:, None], n_senders > 0
