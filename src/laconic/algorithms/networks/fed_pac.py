"""FedPAC: one body for all, aligned by common prototypes; each client's head is a mixture of everyone's.

round   sampled clients get body and prototypes, describe their features, train their head, then the body, pulled to the
        prototypes, and send how the body changed, their head, their prototypes and the description
merge   the mean change, by examples, is added; prototypes are averaged by examples of the class; who sent a head gets a
        mixture of all that came, weighed by how alike their owners' features are and how surely they are known
sent    down: the body, to whom lacks the latest, the prototypes, a head; up: the body's change, a head, prototypes,
        mean features before training
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import nnls
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  # the name everyone gives it

from laconic import networks as nn
from laconic.algorithm import Algorithm, ClientId, Fleet, Site, Task, on_client
from laconic.algorithms.networks import averaging
from laconic.algorithms.networks.averaging import Client, Shared, Update, Weights, choose_spec, find_part
from laconic.algorithms.settings import check_at_least
from laconic.networks import Batch, Part, Spec, Training, Vector
from laconic.networks.gaussians import class_means
from laconic.wire import Bits, Floats, Ints, Message

LEAST_WEIGHT = 1e-3  # of a head in a mixture


class Lesson(Weights, is_afresh=True):
    has_prototype: Bits | None  # [class]
    prototypes: Floats | None  # [class that has one, feature]


class Report(Update, is_afresh=True):
    head: Floats  # [entry of the head]
    counts: Ints  # [class] examples
    prototypes: Floats  # [class with examples, feature] mean features after training
    signature: Floats  # [class with examples, feature] mean features before it, times the class's share (h)
    spread: float  # how far the mean feature of so many examples may be off (v)


class Head(Message, is_afresh=True):
    head: Floats


@dataclass
class Server:
    spec: Spec
    shared: Shared
    has_prototype: NDArray[np.bool_]  # [class]
    prototypes: Vector  # [class, feature]


class FedPAC(Algorithm):
    training: Training = Training(rate=0.01, momentum=0.5, decay=5e-4, epochs=5)  # of the body
    head_epochs: int = 1
    head_rate: float = 0.1
    align: float = 1.0  # weight of the distance to the prototypes (lambda)

    takes = "values"

    def __post_init__(self) -> None:
        check_at_least(self, head_epochs=1, align=0)
        replace(self.training, rate=self.head_rate)  # has its own checks

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        spec = choose_spec(task, self.training)
        shared = averaging.start_shared(spec, self.part(spec), self.training)
        prototypes = np.zeros((spec.n_classes, nn.count_head_inputs(spec)), np.float32)
        return Server(spec, shared, np.zeros(spec.n_classes, np.bool_), prototypes)

    def run_round(self, server: Server, fleet: Fleet) -> None:
        part, is_known = self.part(server.spec), server.has_prototype
        known = (is_known, server.prototypes[is_known]) if is_known.any() else (None, None)
        offered = averaging.offer(server.shared, fleet.sampled, part, self.training)
        lessons = averaging.extend(offered, lambda w: Lesson(*w.packed, *known))
        reports = fleet.ask(self.train, lessons)
        averaging.merge(server.shared, reports, part)
        self.merge_prototypes(server, list(reports.values()))
        fleet.ask(self.install_head, self.mix_heads(reports), at_least=0)

    def deliver(self, server: Server, fleet: Fleet) -> None:
        averaging.bring_up_to_date(server.shared, fleet, self.install, self.part(server.spec), self.training)

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

    def costliest_round(self, task: Task) -> list[Message]:
        spec = choose_spec(task, self.training)
        down, up = averaging.make_messages(spec, self.part(spec), self.training)
        table = np.zeros((spec.n_classes, nn.count_head_inputs(spec)), np.float32)
        classes, layout = np.ones(spec.n_classes, np.int64), nn.layout(spec)
        head = np.zeros(layout.n_trained - layout.n_body, np.float32)
        lesson = Lesson(*down.packed, classes > 0, table)
        return [lesson, Report(*up.packed, 0, head, classes, table, table, 0.0), Head(head), down]

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        spec = choose_spec(task, self.training)
        return averaging.start_client(spec, self.part(spec), self.training)

    @on_client
    def train(self, client: Client, lesson: Lesson, site: Site) -> Report:
        part, n_classes = self.part(client.spec), client.spec.n_classes
        averaging.receive(client, lesson, part)
        network = averaging.compose(client, part)
        features = nn.outputs(network, site.train.x)[0]
        counts = np.bincount(site.train.y, minlength=n_classes)
        before, shares = class_means(features, site.train.y, n_classes), counts / max(counts.sum(), 1)
        head_training = replace(self.training, rate=self.head_rate)
        nn.fit(network, site.train, site.rng, head_training, part="head", epochs=self.head_epochs)
        nn.fit(network, site.train, site.rng, self.training, part="body", loss=self.align_to(before, lesson))
        after = class_means(nn.outputs(network, site.train.x)[0], site.train.y, n_classes)
        update = averaging.tell_change(client, network, part, len(site.train.y), self.training)
        return Report(
            *update.packed,
            update.n_examples,
            head=network.vector[network.layout.n_body : network.layout.n_trained],
            counts=counts,
            prototypes=after[counts > 0].astype(np.float32),
            signature=(shares[:, None] * before)[counts > 0].astype(np.float32),
            spread=find_spread(features, before, shares),
        )

    @on_client
    def install_head(self, client: Client, message: Head, site: Site) -> None:
        client.personal = np.concatenate([message.head, client.personal[message.head.size :]])

    @on_client
    def install(self, client: Client, weights: Weights, site: Site) -> None:
        averaging.receive(client, weights, self.part(client.spec))

    def predict(self, client: Client, x: NDArray[Any]) -> NDArray[np.int64]:
        return averaging.classify(client, x, self.part(client.spec))

    # ---------------------------------------------------------------- pieces
    def part(self, spec: Spec) -> Part:
        return find_part(spec, head=False, statistics=self.training.statistics == "shared")

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


def find_spread(features: NDArray[Any], means: NDArray[np.float64], shares: NDArray[np.float64]) -> float:
    """(mean ‖f‖² - Σ share² ‖class mean‖²) / examples; 0 without any."""
    if not len(features):
        return 0.0
    mean_square = (features.astype(np.float64) ** 2).sum(axis=1).mean()
    of_means = (shares**2 * (means**2).sum(axis=1)).sum()
    return max(float(mean_square - of_means), 0.0) / len(features)


def fill_signature(report: Report) -> NDArray[np.float64]:
    """[class · feature], zeros for classes without examples."""
    whole = np.zeros((len(report.counts), report.signature.shape[1]))
    whole[report.counts > 0] = report.signature
    return whole.ravel()


def least_on_simplex(cost: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weights a >= 0 of sum 1 with the least a' cost a.

    They are the y >= 0 with the least y' cost y / 2 - sum(y), over its sum: both have the same slopes where they end.
    With cost = L L', that is least squares of L' y against the z with L z = 1.
    """
    scale = np.trace(cost) / len(cost)
    if scale <= 0:
        return np.full(len(cost), 1 / len(cost))
    lower = np.linalg.cholesky(cost / scale + 1e-9 * np.eye(len(cost)))
    weights: NDArray[np.float64] = nnls(lower.T, np.linalg.solve(lower, np.ones(len(cost))))[0]
    weights /= weights.sum()
    return weights
