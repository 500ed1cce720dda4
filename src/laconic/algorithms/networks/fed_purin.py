"""FedPURIN: clients send only the parameters that their loss would miss most, half of each layer.

paper   FedPURIN: Programmed Update and Reduced INformation for Sparse Personalized Federated Learning, 2025
round   sampled clients train, score each parameter by how much its loss would change without it, and send the best
merge   critical parameters: mean over clients that find much the same critical, fewer and fewer of them, none in the
        end; the others: mean over everyone, where what was not sent counts as 0
sent    up: critical parameters and where they are, coded against what the client went on from;
        down: what changed of them, and the others that are not 0
"""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from laconic import networks as nn
from laconic.algorithm import ClientId, Coded, Fleet, Site, Task, on_client
from laconic.algorithms.networks import critical
from laconic.algorithms.networks.critical import Client, CriticalParameters, Start
from laconic.algorithms.networks.settings import choose_spec
from laconic.models.networks import Logits
from laconic.networks import Network, Part, Spec, Vector
from laconic.networks.precision import DTYPES
from laconic.networks.selection import Mask, count_due, pick_share
from laconic.records import Panel
from laconic.wire import Due, Message, Sparse, UpTo

LARGEST_HALF = 65504.0


class Critical(Message, stateless=True):
    entries: Sparse  # [entry of the part]

    @property
    def mask(self) -> Mask:
        return self.entries.mask

    def read(self) -> Vector:
        return self.entries.dense().astype(np.float32, copy=False)


@dataclass
class Server(critical.Server):
    sent: dict[ClientId, Critical] = field(default_factory=dict)  # what such a client will go on from, with its start


class FedPURIN(CriticalParameters):
    name = "fedpurin"

    # a parameter's score is its size times: the last mini-batch's gradient, or how much the round's training changed it
    pull: Literal["gradient", "change"] = "gradient"
    curvature: bool = False  # scores take the second-order term in (H)
    half_gradient: bool = False  # gradients are rounded to 16 bits before they are scored, as in the authors' code
    tested: Literal["sparse", "dense"] = "sparse"  # which model counts: critical parameters alone, or all; as trained

    budget_knob = "keep"
    panels = (Panel.of_two_models({"dense_accuracy": "dense", "sparse_accuracy": "sparse"}),)

    def part(self, spec: Spec) -> Part:
        """All but batch normalisation."""
        return nn.find_part(spec, norms=False, statistics=False)

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        return Server(choose_spec(task, self.training))

    def run_round(self, server: Server, fleet: Fleet) -> None:
        starts = {client: server.starts.pop(client, critical.STAY) for client in fleet.sampled}
        sent = {client: server.sent.pop(client, None) for client in fleet.sampled}
        n_kept, up = self.count_kept(server.spec), np.dtype(DTYPES[self.training.up])
        entries = Due((self.part(server.spec).size,), nn.LARGEST, UpTo(n_kept), up.itemsize)
        uploads = fleet.ask(
            self.train,
            starts,
            expect={"entries": entries},
            against=lambda client: self.foresee(server.spec, sent[client], starts[client]),
        )
        self.merge(server, uploads, fleet)
        server.sent |= uploads
        fleet.note(kept=float(np.mean([up.entries.values.size / up.entries.mask.size for up in uploads.values()])))

    def foresee(self, spec: Spec, sent: Critical | None, start: Start) -> Critical:
        """What a client goes on from, if all it sent came: its next upload is coded against that."""
        if sent is None or start.values is None:
            return self.tell_all(self.part(spec).take(nn.start_vector(spec, self.training.init_seed)))
        shared = sent.read()
        critical.put_start(shared, sent.mask, start)
        return self.tell_all(shared)

    def costliest_round(self, task: Task) -> list[Message]:
        """Every other client may send other entries, so a start may have as many as all together send."""
        spec = choose_spec(task, self.training)
        part = self.part(spec)
        n_kept = self.count_kept(spec)
        n_others = min(part.size - n_kept, (task.n_clients - 1) * n_kept)
        up, down = (DTYPES[kept] for kept in (self.training.up, self.training.down))
        mask = np.arange(part.size) < n_kept
        start = Start(0, np.zeros(n_kept, down), 0, mask, np.zeros(n_others, down))
        return [start, Critical(Sparse(mask, np.zeros(n_kept, up)))]

    def count_kept(self, spec: Spec) -> int:
        """Entries that a client sends at most."""
        return sum(count_due(p.stop - p.start, self.keep) for p in critical.list_places(spec, self.part(spec)))

    # ---------------------------------------------------------------- client
    @on_client
    def train(self, client: Client, start: Start, site: Site) -> Critical | Coded[Critical]:
        part = self.part(client.network.spec)
        is_known = client.critical is None or critical.go_on(client, start, part)  # to the server, too
        before = part.take(client.network.vector)
        trained = nn.fit(client.network, site.train, site.rng, self.training)
        after = part.take(client.network.vector)
        gradient = part.take(trained.gradient)
        scores = self.score(gradient if self.pull == "gradient" else after - before, after)
        client.critical = pick_share(scores, critical.list_places(client.network.spec, part), self.keep)
        client.sent_round = site.round
        sent = Critical(Sparse.of(after.astype(DTYPES[self.training.up], copy=False), client.critical))
        return Coded(sent, self.tell_all(before)) if is_known else sent

    def personal_model(self, client: Client) -> Logits:
        return Logits(self.choose(client, self.tested))

    def predict_also(self, client: Client, x: NDArray[Any]) -> dict[str, NDArray[np.integer[Any]]]:
        return {tested: nn.classify(self.choose(client, tested), x) for tested in ("dense", "sparse")}

    # ---------------------------------------------------------------- pieces
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
