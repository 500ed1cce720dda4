"""pFedFDA: one body for all; each client's head is the best classifier of Gaussian features, somewhere between its own
Gaussians and the common ones.

round   sampled clients get body and common Gaussians, train the body under the head that follows from these, mix the
        Gaussians of their own features into the common ones as cross-validation says, and send how the body changed and
        the mixture
merge   the mean change, by examples, is added; the mean mixture, by examples, is the new common one
test    every client gets body and common Gaussians, and makes its head from its own mixture
sent    down: body, means, covariance, to whom lacks the latest; up: the body's change, means of the classes it has,
        covariance
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic import networks as nn
from laconic.algorithm import Algorithm, ClientId, Fleet, Site, Task, on_client
from laconic.algorithms.networks import averaging
from laconic.algorithms.networks.averaging import Shared, Update, Weights, choose_spec, find_part
from laconic.algorithms.settings import check_at_least
from laconic.networks import Network, Part, Spec, Training, Vector
from laconic.networks.gaussians import MIN_EXAMPLES, Gaussians, choose_trust, estimate, linear_classifier, mix
from laconic.wire import Bits, Floats, Message

LEAST_SHARE = 1e-4  # of a class that a client has no examples of


def paper_square_bits(triangle: NDArray[Any]) -> float:
    """The paper sends the whole covariance."""
    return 32.0 * count_rows(triangle) ** 2


class Lesson(Weights, paper_bits={"triangle": paper_square_bits}, is_afresh=True):
    means: Floats | None  # [class, feature]
    triangle: Floats | None  # the covariance's rows, each from the diagonal on


class Report(Update, paper_bits={"has_mean": 0, "triangle": paper_square_bits}, is_afresh=True):
    has_mean: Bits  # [class]
    means: Floats  # [class with a mean of its own, feature]; the others are as they came
    triangle: Floats


@dataclass
class Server:
    spec: Spec
    shared: Shared
    means: Vector  # [class, feature]
    covariance: Vector  # [feature, feature]


@dataclass
class Client:
    common: averaging.Client
    means: Vector  # as received
    covariance: Vector


class PFedFDA(Algorithm):
    training: Training = Training()
    ridge: float = 1.0  # added to the variances of a client's features

    takes = "values"

    def __post_init__(self) -> None:
        check_at_least(self, ridge=0)
        if self.training.prior:
            raise ValueError("method.training.prior = true has no place here: heads know the client's class shares")

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        spec = choose_spec(task, self.training)
        shared = averaging.start_shared(spec, self.part(spec), self.training)
        return Server(spec, shared, *self.start_gaussians(spec))

    def run_round(self, server: Server, fleet: Fleet) -> None:
        reports = fleet.ask(self.train, self.offer(server, fleet.sampled))
        averaging.merge(server.shared, reports, self.part(server.spec))
        n_examples = max(sum(report.n_examples for report in reports.values()), 1)
        means, triangle = np.zeros(server.means.shape), np.zeros(write_triangle(server.covariance).size)
        for report in reports.values():
            theirs = server.means.astype(np.float64)
            theirs[report.has_mean] = report.means
            means += report.n_examples / n_examples * theirs
            triangle += report.n_examples / n_examples * report.triangle
        server.means, server.covariance = means.astype(np.float32), read_triangle(triangle)

    def deliver(self, server: Server, fleet: Fleet) -> None:
        averaging.mark_held(server.shared, fleet.ask(self.adapt, self.offer(server, fleet.everyone), at_least=0))

    def offer(self, server: Server, clients: Iterable[ClientId]) -> dict[ClientId, Lesson]:
        offered = averaging.offer(server.shared, clients, self.part(server.spec), self.training)
        news, nothing = (server.means, write_triangle(server.covariance)), (None, None)
        return averaging.extend(offered, lambda w: Lesson(*w.packed, *(news if w.is_news else nothing)))

    def costliest_round(self, task: Task) -> list[Message]:
        spec = choose_spec(task, self.training)
        down, up = averaging.make_messages(spec, self.part(spec), self.training)
        means, covariance = self.start_gaussians(spec)
        lesson = Lesson(*down.packed, means, write_triangle(covariance))
        report = Report(*up.packed, 0, np.ones(len(means), np.bool_), means, write_triangle(covariance))
        return [lesson, report, lesson]

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        spec = choose_spec(task, self.training)
        return Client(averaging.start_client(spec, self.part(spec), self.training), *self.start_gaussians(spec))

    @on_client
    def train(self, client: Client, lesson: Lesson, site: Site) -> Report:
        network = self.receive(client, lesson)
        common, part = Gaussians(client.means, client.covariance), self.part(client.common.spec)
        write_head(network, common, find_shares(site, network.spec.n_classes))
        nn.fit(network, site.train, site.rng, self.training, part="body")
        mine = self.find_gaussians(network, common, site)
        update = averaging.tell_change(client.common, network, part, len(site.train.y), self.training)
        has_mean = np.bincount(site.train.y, minlength=network.spec.n_classes) >= MIN_EXAMPLES
        means, triangle = mine.means[has_mean].astype(np.float32), write_triangle(mine.covariance)
        return Report(*update.packed, update.n_examples, has_mean, means, triangle)

    @on_client
    def adapt(self, client: Client, lesson: Lesson, site: Site) -> None:
        network = self.receive(client, lesson)
        mine = self.find_gaussians(network, Gaussians(client.means, client.covariance), site)
        write_head(network, mine, find_shares(site, network.spec.n_classes))
        averaging.keep_personal(client.common, network, self.part(client.common.spec))

    def predict(self, client: Client, x: NDArray[Any]) -> NDArray[np.int64]:
        return averaging.classify(client.common, x, self.part(client.common.spec))

    # ---------------------------------------------------------------- pieces
    def part(self, spec: Spec) -> Part:
        return find_part(spec, head=False, statistics=self.training.statistics == "shared")

    def start_gaussians(self, spec: Spec) -> Gaussians:
        """The same for everyone, from the seed of the first weights: random means, no correlations."""
        n_classes, n_features = nn.layout(spec).linear_head
        rng = np.random.default_rng(self.training.init_seed)
        return Gaussians(rng.random((n_classes, n_features), np.float32), np.eye(n_features, dtype=np.float32))

    def receive(self, client: Client, lesson: Lesson) -> Network:
        part = self.part(client.common.spec)
        averaging.receive(client.common, lesson, part)
        if lesson.means is not None and lesson.triangle is not None:
            client.means, client.covariance = lesson.means.astype(np.float32), read_triangle(lesson.triangle)
        return averaging.compose(client.common, part)

    def find_gaussians(self, network: Network, common: Gaussians, site: Site) -> Gaussians:
        """Those of the client's features, mixed into the common ones."""
        features, shares = nn.outputs(network, site.train.x)[0], find_shares(site, network.spec.n_classes)
        trust = choose_trust(features, site.train.y, common, shares, site.rng, self.ridge)
        site.note(trust_means=trust[0], trust_covariance=trust[1])
        return mix(estimate(features, site.train.y, common, self.ridge), common, trust)


def find_shares(site: Site, n_classes: int) -> NDArray[np.float64]:
    counts = np.bincount(site.train.y, minlength=n_classes)
    raised = counts / max(counts.sum(), 1) + LEAST_SHARE
    shares: NDArray[np.float64] = raised / raised.sum()
    return shares


def write_head(network: Network, gaussians: Gaussians, shares: NDArray[np.float64]) -> None:
    weights, biases = linear_classifier(gaussians, shares)
    network.vector = network.vector.copy()
    network.vector[network.layout.n_body : network.layout.n_trained] = np.concatenate([weights.ravel(), biases])


def write_triangle(covariance: NDArray[Any]) -> NDArray[np.float32]:
    return covariance[np.triu_indices(len(covariance))].astype(np.float32)


def read_triangle(triangle: NDArray[Any]) -> Vector:
    n_rows = count_rows(triangle)
    covariance = np.zeros((n_rows, n_rows), np.float32)
    covariance[np.triu_indices(n_rows)] = triangle
    return covariance + np.triu(covariance, 1).T


def count_rows(triangle: NDArray[Any]) -> int:
    return math.isqrt(2 * triangle.size)  # n rows have n (n + 1) / 2 numbers
