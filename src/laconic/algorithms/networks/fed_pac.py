"""FedPAC: one body for all, aligned by common prototypes; each client's head is a mixture of everyone's.

paper   Personalized Federated Learning with Feature Alignment and Classifier Collaboration, 2023
round   sampled clients get body and prototypes, describe their features, train their head, then the body, pulled to the
        prototypes, and send how the body changed, their head, their prototypes and the description
merge   the mean change, by examples, is added; prototypes are averaged by examples of the class; who sent a head gets a
        mixture of all that came, weighed by how alike their owners' features are and how surely they are known
sent    down: the body, to whom lacks the latest, the prototypes, a head; up: the body's change, a head, prototypes,
        mean features before training
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  # the name everyone gives it

from laconic import networks as nn
from laconic.algorithm import ClientId, Fleet, Site, Task, check_shape, on_client
from laconic.algorithms.networks import weights
from laconic.algorithms.networks.shared_vector import SharedVector
from laconic.algorithms.networks.weights import NO_NEWS, Client, Update, Weights
from laconic.algorithms.settings import check_at_least
from laconic.networks import Batch, Part, Spec, Training, Vector
from laconic.networks.gaussians import class_means, find_spread
from laconic.networks.means import least_on_simplex
from laconic.wire import Bits, CountArray, Due, Expected, Floats, Message, UpTo

LEAST_WEIGHT = 1e-3  # of a head in a mixture


class Lesson(Weights, stateless=True):
    has_prototype: Bits | None  # [class]
    prototypes: Floats | None  # [class that has one, feature]


class Report(Update, stateless=True):
    head: Floats  # [entry of the head]
    counts: CountArray  # [class] examples
    prototypes: Floats  # [class with examples, feature] mean features after training
    signature: Floats  # [class with examples, feature] mean features before it, times the class's share (h)
    spread: float  # how far the mean feature of so many examples may be off (v)


class Head(Message, stateless=True):
    head: Floats


@dataclass
class Server(weights.Server):
    has_prototype: NDArray[np.bool_]  # [class]
    prototypes: Vector  # [class, feature]


class FedPAC(SharedVector):
    name = "fedpac"

    training: Training = Training(rate=0.01, momentum=0.5, decay=5e-4, epochs=5)  # of the body
    head_epochs: int = 1
    head_rate: float = 0.1
    align: float = 1.0  # weight of the distance to the prototypes (lambda)

    def __post_init__(self) -> None:
        check_at_least(self, head_epochs=1, align=0)
        replace(self.training, rate=self.head_rate)  # has its own checks

    def part(self, spec: Spec) -> Part:
        return nn.find_part(spec, head=False, statistics=self.training.shares_statistics)

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        spec = self.choose_spec(task)
        prototypes = np.zeros((spec.n_classes, nn.count_head_inputs(spec)), np.float32)
        return Server(spec, self.start_shared(spec), np.zeros(spec.n_classes, np.bool_), prototypes)

    def run_round(self, server: Server, fleet: Fleet) -> None:
        is_known = server.has_prototype
        known = (is_known, server.prototypes[is_known]) if is_known.any() else (None, None)
        latest, nothing = (Lesson(*packed, *known) for packed in (self.pack_latest(server), NO_NEWS.packed))
        lessons = server.shared.offer(fleet.sampled, latest, nothing)
        expected = self.expect_reply(server.spec)
        reports = fleet.ask(self.train, lessons, expect=expected, check=check_report)
        self.merge(server, reports, fleet.round)
        self.merge_prototypes(server, list(reports.values()))
        fleet.ask(self.install_head, self.mix_heads(reports), at_least=0)

    def merge_prototypes(self, server: Server, reports: list[Report]) -> None:
        """A class that nobody sent keeps its own."""
        totals, counts = np.zeros(server.prototypes.shape), np.sum([report.counts for report in reports], axis=0)
        for report in reports:
            has = report.counts > 0
            totals[has] += report.counts[has, None] * report.prototypes
        seen = counts > 0
        server.prototypes[seen] = totals[seen] / counts[seen, None]
        server.has_prototype |= seen

    def mix_heads(self, reports: dict[ClientId, Report]) -> dict[ClientId, Head]:
        heads = np.stack([report.head for report in reports.values()]).astype(np.float64)
        signatures = np.stack([fill_signature(report) for report in reports.values()])
        spreads = np.array([report.spread for report in reports.values()])
        mixed = {}
        for client, mine in zip(reports, signatures, strict=True):
            apart = mine - signatures
            weights = least_on_simplex(np.diag(spreads) + apart @ apart.T)
            weights[weights < min(LEAST_WEIGHT, weights.max())] = 0  # of very many all may be small
            mixed[client] = Head((weights @ heads / weights.sum()).astype(np.float32))
        return mixed

    def expect_reply(self, spec: Spec) -> Expected:
        rows = Due((UpTo(spec.n_classes), nn.count_head_inputs(spec)), nn.LARGEST, item_bytes=4)
        spread = Due((), nn.LARGEST**2)
        return {**super().expect_reply(spec), "prototypes": rows, "signature": rows, "spread": spread}

    def costliest_round(self, task: Task) -> list[Message]:
        spec = self.choose_spec(task)
        down, up = self.largest_down(spec), self.largest_up(spec)
        return [Lesson(*down.packed, up.counts > 0, up.prototypes), up, Head(up.head), down]

    def largest_up(self, spec: Spec) -> Report:
        change = self.pack_change(self.start_shared(spec).vector, spec)
        head, counts = np.zeros(count_head(spec), np.float32), np.ones(spec.n_classes, np.int64)
        table = np.zeros((spec.n_classes, nn.count_head_inputs(spec)), np.float32)
        return Report(*change, 0, head, counts, table, table, 0.0)

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        return self.start_common(task, site)

    @on_client
    def train(self, client: Client, lesson: Lesson, site: Site) -> Report:
        network, n_classes = self.receive(client, lesson), client.spec.n_classes
        features = nn.outputs(network, site.train.x)[0]
        counts = np.bincount(site.train.y, minlength=n_classes)
        before, shares = class_means(features, site.train.y, n_classes), counts / max(counts.sum(), 1)
        head_training = replace(self.training, rate=self.head_rate)
        nn.fit(network, site.train, site.rng, head_training, part="head", epochs=self.head_epochs)
        nn.fit(network, site.train, site.rng, self.training, part="body", loss=self.align_to(before, lesson))
        after = class_means(nn.outputs(network, site.train.x)[0], site.train.y, n_classes)
        return Report(
            *self.pack_change(self.find_change(client, network), client.spec),
            n_examples=len(site.train.y),
            head=network.vector[network.layout.n_body : network.layout.n_trained],
            counts=counts,
            prototypes=after[counts > 0].astype(np.float32),
            signature=(shares[:, None] * before)[counts > 0].astype(np.float32),
            spread=find_spread(features, before, shares),
        )

    @on_client
    def install_head(self, client: Client, message: Head, site: Site) -> None:
        client.personal = np.concatenate([message.head, client.personal[message.head.size :]])

    def align_to(self, own: NDArray[np.float64], lesson: Lesson) -> nn.Loss:
        """own: [class, feature] what a class without a common prototype is pulled to."""
        if lesson.prototypes is None:
            return nn.cross_entropy
        goals = own.astype(np.float32)
        goals[lesson.has_prototype] = lesson.prototypes
        targets = torch.from_numpy(goals)

        def loss(batch: Batch) -> Tensor:
            return nn.cross_entropy(batch) + self.align * F.mse_loss(batch.features, targets[batch.labels])

        return loss


def count_head(spec: Spec) -> int:
    return nn.layout(spec).n_trained - nn.layout(spec).n_body


def fill_signature(report: Report) -> NDArray[np.float64]:
    """[class · feature], zeros for classes without examples."""
    whole = np.zeros((len(report.counts), report.signature.shape[1]))
    whole[report.counts > 0] = report.signature
    return whole.ravel()


def check_report(_: Lesson, report: Report) -> None:
    if report.spread < 0:
        raise ValueError(f"spread is {report.spread:g}, 0 or more was expected")
    n_held = int(np.count_nonzero(report.counts))
    for name in ("prototypes", "signature"):
        check_shape(name, getattr(report, name), (n_held, report.prototypes.shape[1]))
