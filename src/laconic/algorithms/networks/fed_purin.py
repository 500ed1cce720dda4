"""FedPURIN: clients send only the parameters that their loss would miss most, half of each layer.

round   sampled clients train, score each parameter by how much its loss would change without it, and send the best
merge   critical parameters: mean over clients that find much the same critical, fewer and fewer of them, none in the
        end; the others: mean over everyone, where what was not sent counts as 0
sent    up: critical parameters and where they are, coded against what the client went on from;
        down: what changed of them, and the others that are not 0
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from laconic import networks as nn
from laconic.aggregate import Averaging
from laconic.algorithm import Algorithm, ClientId, Coded, Fleet, Site, Task, on_client
from laconic.algorithms.networks.averaging import choose_spec, find_part
from laconic.algorithms.networks.critical import (
    STAY,
    Client,
    Overlap,
    Start,
    check_training,
    choose_critical,
    go_on,
    list_places,
    measure_overlap,
    mix,
    put_start,
)
from laconic.algorithms.networks.picking import DTYPES, count_due
from laconic.algorithms.settings import check_at_least, check_share
from laconic.networks import Network, Part, Spec, Training, Vector
from laconic.wire import Message, Sparse

LARGEST_HALF = 65504.0


class Critical(Message, is_afresh=True):
    entries: Sparse  # [entry of the part]


@dataclass
class Server:
    spec: Spec
    starts: dict[ClientId, Start] = field(default_factory=dict)  # for whom is asked next
    sent: dict[ClientId, Critical] = field(default_factory=dict)  # what such a client will go on from, with its start


class FedPURIN(Algorithm):
    keep: float = 0.5  # share of each tensor that is critical (tau)
    alone_after: int = 100  # from the round after this one critical parameters are averaged with nobody's (beta)
    # a parameter's score is its size times: the last mini-batch's gradient, or how much the round's training changed it
    pull: Literal["gradient", "change"] = "gradient"
    curvature: bool = False  # scores take the second-order term in (H)
    half_gradient: bool = False  # gradients are rounded to 16 bits before they are scored, as in the authors' code
    tested: Literal["sparse", "dense"] = "sparse"  # which model counts: critical parameters alone, or all; as trained
    training: Training = Training(epochs=5, batch=100, rate=0.1, momentum=0.9, statistics="local")

    takes = "values"
    budget_knob = "keep"

    def __post_init__(self) -> None:
        check_share(self, "keep")
        check_at_least(self, alone_after=0)
        check_training(self.training)

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        return Server(choose_spec(task, self.training))

    def run_round(self, server: Server, fleet: Fleet) -> None:
        starts = {client: server.starts.pop(client, STAY) for client in fleet.sampled}
        sent = {client: server.sent.pop(client, None) for client in fleet.sampled}
        uploads = fleet.ask(
            self.train, starts, against=lambda client: self.expect(server.spec, sent[client], starts[client])
        )
        overlap = measure_overlap([upload.entries.mask for upload in uploads.values()])
        fleet.note_pairs(list(uploads), overlap=overlap)
        server.starts |= self.mix(uploads, overlap, fleet.round, fleet.averaging)
        server.sent |= uploads
        fleet.note(kept=float(np.mean([up.entries.values.size / up.entries.mask.size for up in uploads.values()])))

    def expect(self, spec: Spec, sent: Critical | None, start: Start) -> Critical:
        """What a client goes on from, if all it sent came: its next upload is coded against that."""
        if sent is None or start.values is None:
            return self.tell_all(self.part(spec).take(nn.start_vector(spec, self.training.init_seed)))
        shared = sent.entries.dense().astype(np.float32, copy=False)
        put_start(shared, sent.entries.mask, start)
        return self.tell_all(shared)

    def mix(
        self, uploads: Mapping[ClientId, Critical], overlap: Overlap, round: int, how: Averaging = "mean"
    ) -> dict[ClientId, Start]:
        masks = [upload.entries.mask for upload in uploads.values()]
        vectors = [upload.entries.dense().astype(np.float32, copy=False) for upload in uploads.values()]
        starts = mix(masks, vectors, overlap, round, self.alone_after, self.training.down, how)
        return dict(zip(uploads, starts, strict=True))

    def costliest_round(self, task: Task) -> list[Message]:
        """Every other client may send other entries, so a start may have as many as all together send."""
        spec = choose_spec(task, self.training)
        part = self.part(spec)
        n_kept = sum(count_due(place.stop - place.start, self.keep) for place in list_places(spec, part))
        n_others = min(part.size - n_kept, (task.n_clients - 1) * n_kept)
        up, down = (DTYPES[kept] for kept in (self.training.up, self.training.down))
        mask = np.arange(part.size) < n_kept
        start = Start(0, np.zeros(n_kept, down), 0, mask, np.zeros(n_others, down))
        return [start, Critical(Sparse(mask, np.zeros(n_kept, up)))]

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        return Client(nn.build(choose_spec(task, self.training), self.training.init_seed))

    @on_client
    def train(self, client: Client, start: Start, site: Site) -> Critical | Coded[Critical]:
        part = self.part(client.network.spec)
        is_known = client.critical is None or go_on(client, start, part)  # to the server, too
        before = part.take(client.network.vector)
        trained = nn.fit(client.network, site.train, site.rng, self.training)
        after = part.take(client.network.vector)
        gradient = part.take(trained.gradient)
        scores = self.score(gradient if self.pull == "gradient" else after - before, after)
        client.critical = choose_critical(scores, list_places(client.network.spec, part), self.keep)
        client.sent_round = site.round
        sent = Critical(Sparse.of(after.astype(DTYPES[self.training.up], copy=False), client.critical))
        return Coded(sent, self.tell_all(before)) if is_known else sent

    def predict(self, client: Client, x: NDArray[Any]) -> NDArray[np.int64]:
        return nn.classify(self.choose(client, self.tested), x)

    def predict_also(self, client: Client, x: NDArray[Any]) -> dict[str, NDArray[np.integer[Any]]]:
        return {tested: nn.classify(self.choose(client, tested), x) for tested in ("dense", "sparse")}

    # ---------------------------------------------------------------- pieces
    def part(self, spec: Spec) -> Part:
        """All but batch normalisation."""
        return find_part(spec, norms=False, statistics=False)

    def tell_all(self, shared: Vector) -> Critical:
        """As if all of them were critical."""
        return Critical(Sparse(np.ones(shared.size, np.bool_), shared.astype(DTYPES[self.training.up], copy=False)))

    def score(self, pull: Vector, weights: Vector) -> Vector:
        """[entry] how much the loss would change without it."""
        if self.half_gradient:
            pull = np.clip(pull, -LARGEST_HALF, LARGEST_HALF).astype(np.float16).astype(np.float32)
        slope = pull * weights
        return np.abs(-slope + slope**2 / 2 if self.curvature else slope)

    def choose(self, client: Client, tested: str) -> Network:
        """As trained; sparse: without what was not critical."""
        if tested == "dense" or client.critical is None:
            return client.network
        part = self.part(client.network.spec)
        vector = client.network.vector.copy()
        vector[part.mask] *= client.critical
        return Network(client.network.spec, vector, client.network.log_prior)
