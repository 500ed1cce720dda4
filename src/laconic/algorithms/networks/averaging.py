"""What methods that average weights do alike: one vector that all hold, the clients' changes of it, and their mean.

The vector is a part of the network: everything, the body, or all but batch normalisations. The rest is the client's
own. The server knows who holds its latest vector, and sends it to nobody twice.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from laconic import networks as nn
from laconic.aggregate import Averaging, mean_of
from laconic.algorithm import ClientId, Fleet, M, Site, Task
from laconic.networks import Network, Packed, Part, Spec, Training, Vector
from laconic.wire import Floats, Ints, Message

Tested = Literal["averaged", "trained"]  # a client is tested with the latest mean, or with what it made of the last


class Weights(Message, paper_bits={"exact": 32}, is_afresh=True):
    """Nothing in it: the client holds the latest."""

    exact: Floats | None  # [entry of the part]
    levels: Ints | None  # [entry] whole numbers, where these were asked for
    scales: Floats | None  # [row] what a level is worth

    @property
    def is_news(self) -> bool:
        return self.exact is not None or self.levels is not None

    @property
    def packed(self) -> Packed:
        return Packed(self.exact, self.levels, self.scales)


class Update(Message, paper_bits={"exact": 32, "n_examples": 0}, is_afresh=True):
    """How training changed what was received."""

    exact: Floats | None
    levels: Ints | None
    scales: Floats | None
    n_examples: int

    @property
    def packed(self) -> Packed:
        return Packed(self.exact, self.levels, self.scales)


@dataclass
class Shared:
    """The server's side of the vector."""

    vector: Vector  # [entry of the part]
    version: int = 0  # how often it was merged; clients start with 0, which follows from a seed
    held_by: dict[ClientId, int] = field(default_factory=dict)  # the version that a client is known to have


@dataclass
class Server:
    """Of methods whose server has nothing but the vector."""

    spec: Spec
    shared: Shared


@dataclass
class Client:
    """The client's side, and what is its own."""

    spec: Spec
    shared: Vector  # as received; clients that got the same message hold one array
    personal: Vector  # [entry beyond the part]
    log_prior: NDArray[np.float32] | None = None  # see Training.prior
    trained: Network | None = None  # as it last was before it was averaged, if that is what is tested


@dataclass
class Twofold:
    """A client with a network of its own beside the common one."""

    common: Client
    own: Network  # the one it is tested with


# ---------------------------------------------------------------- both sides
def choose_spec(task: Task, training: Training) -> Spec:
    return Spec(training.model, task.input_shape, task.n_classes, task.peak, training.head)


@lru_cache(64)
def find_part(spec: Spec, *, body: bool = True, head: bool = True, norms: bool = True, statistics: bool = True) -> Part:
    return nn.layout(spec).part(body=body, head=head, norms=norms, statistics=statistics)


# ---------------------------------------------------------------- server
def start_shared(spec: Spec, part: Part, training: Training) -> Shared:
    return Shared(nn.start_vector(spec, training.init_seed)[part.mask])


def start_server(spec: Spec, part: Part, training: Training) -> Server:
    return Server(spec, start_shared(spec, part, training))


def offer(
    shared: Shared, clients: Iterable[ClientId], part: Part, training: Training, *, to_holders: bool = True
) -> dict[ClientId, Weights]:
    """The latest vector for each who lacks it; to_holders: and an empty message for everyone else."""
    latest, nothing = Weights(*nn.pack(shared.vector, part.row_starts, training.down)), Weights(None, None, None)
    lacks = {client: shared.held_by.get(client, 0) != shared.version for client in clients}
    return {client: latest if lacks[client] else nothing for client in lacks if to_holders or lacks[client]}


def extend(offered: Mapping[ClientId, Weights], make: Callable[[Weights], M]) -> dict[ClientId, M]:
    """Messages with more in them than weights; those who were offered the same get the same, to be encoded once."""
    distinct = {id(weights): weights for weights in offered.values()}
    made = {key: make(weights) for key, weights in distinct.items()}
    return {client: made[id(weights)] for client, weights in offered.items()}


def mark_held(shared: Shared, clients: Iterable[ClientId]) -> None:
    """These replied, so they have what was offered."""
    shared.held_by |= dict.fromkeys(clients, shared.version)


def bring_up_to_date(
    shared: Shared, fleet: Fleet, install: Callable[[Any, Weights, Site], None], part: Part, training: Training
) -> None:
    """The latest vector to everyone who lacks it; install: the client's step that takes it."""
    news = offer(shared, fleet.everyone, part, training, to_holders=False)
    mark_held(shared, fleet.ask(install, news, at_least=0))


def merge(
    shared: Shared, updates: Mapping[ClientId, Update], part: Part, *, blend: float = 1.0, how: Averaging = "mean"
) -> None:
    """Adds `blend` of the mean change, by examples. What rounding took from the vector on its way down stays in it."""
    mark_held(shared, updates)
    changes = [read_change(update, part) for update in updates.values()]
    mean = mean_of(changes, [update.n_examples for update in updates.values()], how)
    shared.vector = (shared.vector + blend * mean).astype(np.float32)
    shared.version += 1


def read_change(update: Update, part: Part) -> Vector:
    return nn.unpack(update.packed, part.row_starts)


def list_messages(spec: Spec, part: Part, training: Training, tested: Tested = "averaged") -> list[Message]:
    """A client's costliest round: its change goes up, and the vector comes to train and, if averaged, to be tested."""
    down, up = make_messages(spec, part, training)
    return [down, up, down] if tested == "averaged" else [down, up]


def make_messages(spec: Spec, part: Part, training: Training) -> tuple[Weights, Update]:
    """As large as they get."""
    vector = nn.start_vector(spec, training.init_seed)[part.mask]
    down, up = (nn.pack(vector, part.row_starts, kept) for kept in (training.down, training.up))
    return Weights(*down), Update(*up, n_examples=0)


# ---------------------------------------------------------------- client
def start_client(spec: Spec, part: Part, training: Training) -> Client:
    vector = nn.start_vector(spec, training.init_seed)
    return Client(spec, vector[part.mask], vector[~part.mask])


def start_twofold(spec: Spec, part: Part, training: Training) -> Twofold:
    return Twofold(start_client(spec, part, training), nn.build(spec, training.init_seed))


def receive(client: Client, weights: Weights, part: Part) -> None:
    if weights.is_news:
        client.shared = nn.unpack(weights.packed, part.row_starts)


def compose(client: Client, part: Part) -> Network:
    if part.size == part.mask.size:  # nothing to put together, so clients may go on sharing one array
        return Network(client.spec, client.shared, client.log_prior)
    vector = np.empty(part.mask.size, np.float32)
    vector[part.mask], vector[~part.mask] = client.shared, client.personal
    return Network(client.spec, vector, client.log_prior)


def keep_personal(client: Client, network: Network, part: Part) -> None:
    client.personal, client.log_prior = network.vector[~part.mask], network.log_prior


def tell_change(
    client: Client,
    network: Network,
    part: Part,
    n_examples: int,
    training: Training,
    tested: Tested = "averaged",
) -> Update:
    """What training made of the vector received; the client keeps what is its own. n_examples: how much it counts."""
    keep_personal(client, network, part)
    if tested == "trained":
        client.trained = network
    change = part.take(network.vector) - client.shared
    return Update(*nn.pack(change, part.row_starts, training.up), n_examples=n_examples)


def classify(client: Client, x: NDArray[Any], part: Part) -> NDArray[np.int64]:
    return nn.classify(client.trained or compose(client, part), x)
