"""The shape of FedPURIN and FedCAC: which parameters are critical to a client, and with whom it averages them.

A client goes on from a mix: its critical parameters are averaged with those of clients whose critical ones are the same
for the most part, all others with everyone's. The mix of a round waits at the server until the client is asked again.
"""

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from laconic import networks as nn
from laconic.aggregate import EVERY_AVERAGING, Averaging, average
from laconic.algorithm import Algorithm, ClientId, Fleet, Site, Task
from laconic.algorithms.networks.settings import check_local, check_precision, choose_spec
from laconic.algorithms.settings import check_at_least, check_share
from laconic.models.background import Background
from laconic.networks import Network, Part, Spec, Training, Vector
from laconic.networks.means import average_some_of
from laconic.networks.precision import DTYPES
from laconic.networks.selection import Mask, Overlap, measure_overlap
from laconic.wire import Bits, Floats, Message, Sparse

MOST_AT_ONCE = 16  # clients whose means a thread holds


def paper_value_bits(values: NDArray[np.floating[Any]]) -> float:
    """Zeros are free, as if it were known where they are."""
    return 8.0 * values.itemsize * np.count_nonzero(values)


class Start(
    Message,
    paper_bits={
        "critical": paper_value_bits,
        "values": paper_value_bits,
        "is_set": 0,
        "n_stay": lambda n_stay: 32 * n_stay,
    },
    stateless=True,
):
    """Where a client goes on from; without values: from where it is."""

    round: int  # in which the client sent what is mixed here; if it has sent more since, this is void
    critical: Floats | None  # [critical entry]; None: they stay as they are
    n_stay: int  # of these that the papers send nevertheless
    is_set: Bits | None  # [other entry] whether it has a value, else it is 0; None: all have
    values: Floats | None  # [set entry]


STAY = Start(0, None, 0, None, None)


@dataclass
class Server:
    spec: Spec
    starts: dict[ClientId, Start] = field(default_factory=dict)  # for whom is asked next


@dataclass
class Client:
    network: Network  # as last trained
    critical: Mask | None = None  # [entry of the part] as last sent
    sent_round: int = 0


class Upload(Protocol):
    """What a client sends."""

    @property
    def mask(self) -> Mask:
        """[entry of the part] whether it is critical."""

    def read(self) -> Vector:
        """[entry of the part]"""


class CriticalParameters(Algorithm):
    keep: float = 0.5  # share of each tensor that is critical (tau)
    alone_after: int = 100  # from the round after this one critical parameters are averaged with nobody's (beta)
    training: Training = Training(epochs=5, batch=100, rate=0.1, momentum=0.9, statistics="local")

    takes = "values"
    averagings = EVERY_AVERAGING

    def __post_init__(self) -> None:
        check_share(self, "keep")
        check_at_least(self, alone_after=0)
        check_precision(self.training)
        check_local(self.training, "this method leaves them with the client")

    @abstractmethod
    def part(self, spec: Spec) -> Part:
        """What is shared."""

    def start_client(self, task: Task, site: Site) -> Client:
        return Client(nn.build(choose_spec(task, self.training), self.training.init_seed))

    def background(self, server: Server, client: Client) -> Background:
        if client.critical is None:
            return Background()
        places = nn.layout(client.network.spec).locate(self.part(client.network.spec))
        return Background(critical={piece.name: client.critical[place] for piece, place in places})

    def merge(self, server: Server, uploads: Mapping[ClientId, Upload], fleet: Fleet) -> None:
        overlap = measure_overlap([upload.mask for upload in uploads.values()])
        fleet.note_pairs(list(uploads), overlap=overlap)
        server.starts |= self.mix(uploads, overlap, fleet.round, fleet.averaging)

    def mix(
        self, uploads: Mapping[ClientId, Upload], overlap: Overlap, round: int, averaging: Averaging = "mean"
    ) -> dict[ClientId, Start]:
        masks, vectors = zip(*((upload.mask, upload.read()) for upload in uploads.values()), strict=True)
        starts = mix(masks, vectors, overlap, round, self.alone_after, self.training.down, averaging)
        return dict(zip(uploads, starts, strict=True))


# ---------------------------------------------------------------- client
def list_places(spec: Spec, part: Part) -> list[slice]:
    return [place for _, place in nn.layout(spec).locate(part)]


def go_on(client: Client, start: Start, part: Part) -> bool:
    """Whether it does: not from a start older than what it sent last."""
    if start.values is None or client.critical is None or start.round != client.sent_round:
        return False
    shared = part.take(client.network.vector)
    put_start(shared, client.critical, start)
    client.network.vector = part.put(shared, client.network.vector)
    return True


def put_start(shared: Vector, critical: Mask, start: Start) -> None:
    """shared, critical: [entry of the part] as a client sent them last; shared is changed in place."""
    assert start.values is not None
    shared[np.flatnonzero(~critical)] = (
        start.values if start.is_set is None else Sparse(start.is_set, start.values).dense()
    )
    if start.critical is not None:
        shared[np.flatnonzero(critical)] = start.critical


# ---------------------------------------------------------------- server
def mix(
    masks: Sequence[Mask],
    vectors: Sequence[Vector],
    overlap: Overlap,
    round: int,
    alone_after: int,
    down: str,
    averaging: Averaging = "mean",
) -> list[Start]:
    """What each goes on from. masks, vectors: [entry of the part] what is critical to a client, and what it sent."""
    alike, all_join = find_alike(overlap, round, alone_after), np.ones((1, len(masks)), np.bool_)
    stacked = np.stack(vectors)
    (everyone,) = average_some(stacked, all_join, averaging)

    def start(i: int, mean: Vector) -> Start:
        mask = masks[i]
        critical = mean[np.flatnonzero(mask)].astype(DTYPES[down], copy=False) if alike[i].sum() > 1 else None
        n_stay = 0 if critical is not None or round > alone_after else int(np.count_nonzero(mask))
        others = everyone[np.flatnonzero(~mask)].astype(DTYPES[down], copy=False)
        is_set = others != 0
        if 8 * others.itemsize * (others.size - np.count_nonzero(is_set)) > others.size:  # worth a bit for each
            return Start(round, critical, n_stay, is_set, others[np.flatnonzero(is_set)])
        return Start(round, critical, n_stay, None, others)

    def start_some(chosen: range) -> list[Start]:
        return list(map(start, chosen, average_some(stacked, alike[chosen], averaging)))

    n_cores = os.cpu_count() or 1
    n_each = min(-(-len(masks) // n_cores), MOST_AT_ONCE)
    groups = [range(first, min(first + n_each, len(masks))) for first in range(0, len(masks), n_each)]
    with ThreadPoolExecutor(n_cores) as pool:  # while a server mixes, nobody trains
        return [each for group in pool.map(start_some, groups) for each in group]


def find_alike(overlap: Overlap, round: int, alone_after: int) -> Mask:
    """[i, j]: i averages its critical entries with j's, as everyone does with its own."""
    alike = np.eye(len(overlap), dtype=np.bool_)
    if round > alone_after or len(overlap) == 1:
        return alike
    mean, most, progress = overlap[~alike].mean(), overlap[~alike].max(), round / alone_after
    # no more than the most alike have, which rounding could make it
    threshold = min((1 - progress) * mean + progress * most, most)
    found: Mask = alike | (overlap >= threshold)
    return found


def average_some(vectors: NDArray[np.float32], joins: Mask, averaging: Averaging) -> list[Vector]:
    """[choice] the mean of those vectors [client, entry] that join [choice, client]."""
    if averaging == "mean":
        return average_some_of(vectors, joins)
    return [average(vectors[some], [1] * int(some.sum()), averaging).astype(np.float32) for some in joins]
