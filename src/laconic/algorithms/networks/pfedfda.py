"""pFedFDA: one body for all; a client's head is the best for Gaussian features, between its own and the common ones.

paper   pFedFDA: Personalized Federated Learning via Feature Distribution Adaptation, 2024
round   sampled clients get body and common Gaussians, train the body under the head that follows from these, mix the
        Gaussians of their own features into the common ones as cross-validation says, and send how the body changed and
        the mixture
merge   the mean change, by examples, is added; the mean mixture, by examples, is the new common one
test    every client gets body and common Gaussians, and makes its head from its own mixture
sent    down: body, means, covariance, to whom lacks the latest; up: the body's change, means of the classes it has,
        covariance
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic import networks as nn
from laconic.algorithm import ClientId, Fleet, Site, Task, check_shape, on_client
from laconic.algorithms.networks import weights
from laconic.algorithms.networks.shared_vector import SharedVector
from laconic.algorithms.networks.weights import NO_NEWS, Update, Weights
from laconic.algorithms.settings import check_at_least
from laconic.networks import Network, Part, Spec, Training, Vector, gaussians
from laconic.networks.gaussians import MIN_EXAMPLES, Gaussians, count_rows, read_triangle, write_triangle
from laconic.wire import Bits, Due, Expected, Floats, Message, UpTo

LEAST_SHARE = 1e-4  # of a class that a client has no examples of


def paper_square_bits(triangle: NDArray[Any]) -> float:
    """The paper sends the whole covariance."""
    return 32.0 * count_rows(triangle) ** 2


class Lesson(Weights, paper_bits={"triangle": paper_square_bits}, stateless=True):
    means: Floats | None  # [class, feature]
    triangle: Floats | None  # the covariance's rows, each from the diagonal on


class Report(Update, paper_bits={"has_mean": 0, "triangle": paper_square_bits}, stateless=True):
    has_mean: Bits  # [class]
    means: Floats  # [class with a mean of its own, feature]; the others are as they came
    triangle: Floats


@dataclass
class Server(weights.Server):
    means: Vector  # [class, feature]
    covariance: Vector  # [feature, feature]


@dataclass
class Client:
    common: weights.Client
    means: Vector  # as received
    covariance: Vector


class PFedFDA(SharedVector):
    name = "pfedfda"
    client_notes = ("trust_means", "trust_covariance")

    training: Training = Training()
    ridge: float = 1.0  # added to the variances of a client's features

    def __post_init__(self) -> None:
        check_at_least(self, ridge=0)
        if self.training.prior:
            raise ValueError("method.training.prior = true has no place here: heads know the client's class shares")

    def part(self, spec: Spec) -> Part:
        return nn.find_part(spec, head=False, statistics=self.training.shares_statistics)

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        spec = self.choose_spec(task)
        return Server(spec, self.start_shared(spec), *self.start_gaussians(spec))

    def run_round(self, server: Server, fleet: Fleet) -> None:
        lessons = self.offer(server, fleet.sampled)
        reports = fleet.ask(self.train, lessons, expect=self.expect_reply(server.spec), check=check_report)
        self.merge(server, reports, fleet.round)
        n_examples = max(sum(report.n_examples for report in reports.values()), 1)
        means, triangle = np.zeros(server.means.shape), np.zeros(write_triangle(server.covariance).size)
        for report in reports.values():
            theirs = server.means.astype(np.float64)
            theirs[report.has_mean] = report.means
            means += report.n_examples / n_examples * theirs
            triangle += report.n_examples / n_examples * report.triangle
        server.means, server.covariance = means.astype(np.float32), read_triangle(triangle)

    def deliver(self, server: Server, fleet: Fleet) -> None:
        server.shared.acknowledge(fleet.ask(self.adapt, self.offer(server, fleet.everyone), at_least=0))

    def offer(self, server: Server, clients: Iterable[ClientId]) -> dict[ClientId, Lesson]:
        latest = Lesson(*self.pack_latest(server), server.means, write_triangle(server.covariance))
        return server.shared.offer(clients, latest, Lesson(*NO_NEWS.packed, None, None))

    def expect_reply(self, spec: Spec) -> Expected:
        n_classes, n_features = nn.layout(spec).linear_head
        means = Due((UpTo(n_classes), n_features), nn.LARGEST, item_bytes=4)
        triangle = Due((n_features * (n_features + 1) // 2,), nn.LARGEST**2, item_bytes=4)
        return {**super().expect_reply(spec), "means": means, "triangle": triangle}

    def costliest_round(self, task: Task) -> list[Message]:
        spec = self.choose_spec(task)
        down, up = self.largest_down(spec), self.largest_up(spec)
        lesson = Lesson(*down.packed, up.means, up.triangle)
        return [lesson, up, lesson]

    def largest_up(self, spec: Spec) -> Report:
        means, covariance = self.start_gaussians(spec)
        change = self.pack_change(self.start_shared(spec).vector, spec)
        return Report(*change, 0, np.ones(len(means), np.bool_), means, write_triangle(covariance))

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        return Client(self.start_common(task, site), *self.start_gaussians(self.choose_spec(task)))

    @on_client
    def train(self, client: Client, lesson: Lesson, site: Site) -> Report:
        network = self.take_lesson(client, lesson)
        common = Gaussians(client.means, client.covariance)
        write_head(network, common, find_shares(site, network.spec.n_classes))
        nn.fit(network, site.train, site.rng, self.training, part="body")
        mine = self.find_gaussians(network, common, site)
        change = self.pack_change(self.find_change(client.common, network), network.spec)
        has_mean = np.bincount(site.train.y, minlength=network.spec.n_classes) >= MIN_EXAMPLES
        means, triangle = mine.means[has_mean].astype(np.float32), write_triangle(mine.covariance)
        return Report(*change, len(site.train.y), has_mean, means, triangle)

    @on_client
    def adapt(self, client: Client, lesson: Lesson, site: Site) -> None:
        network = self.take_lesson(client, lesson)
        mine = self.find_gaussians(network, Gaussians(client.means, client.covariance), site)
        write_head(network, mine, find_shares(site, network.spec.n_classes))
        client.common.keep_personal(network, self.part(network.spec))

    # ---------------------------------------------------------------- pieces
    def start_gaussians(self, spec: Spec) -> Gaussians:
        """The same for everyone, from the seed of the first weights: random means, no correlations."""
        n_classes, n_features = nn.layout(spec).linear_head
        rng = np.random.default_rng(self.training.init_seed)
        return Gaussians(rng.random((n_classes, n_features), np.float32), np.eye(n_features, dtype=np.float32))

    def take_lesson(self, client: Client, lesson: Lesson) -> Network:
        if lesson.means is not None and lesson.triangle is not None:
            client.means, client.covariance = lesson.means.astype(np.float32), read_triangle(lesson.triangle)
        return self.receive(client.common, lesson)

    def find_gaussians(self, network: Network, common: Gaussians, site: Site) -> Gaussians:
        """Those of the client's features, mixed into the common ones."""
        features, shares = nn.outputs(network, site.train.x)[0], find_shares(site, network.spec.n_classes)
        trust = gaussians.choose_trust(features, site.train.y, common, shares, site.rng, self.ridge)
        site.note(trust_means=trust[0], trust_covariance=trust[1])
        return gaussians.mix(gaussians.estimate(features, site.train.y, common, self.ridge), common, trust)


def find_shares(site: Site, n_classes: int) -> NDArray[np.float64]:
    counts = np.bincount(site.train.y, minlength=n_classes)
    raised = counts / max(counts.sum(), 1) + LEAST_SHARE
    shares: NDArray[np.float64] = raised / raised.sum()
    return shares


def write_head(network: Network, known: Gaussians, shares: NDArray[np.float64]) -> None:
    weights, biases = gaussians.linear_classifier(known, shares)
    network.vector = network.vector.copy()
    network.vector[network.layout.n_body : network.layout.n_trained] = np.concatenate([weights.ravel(), biases])


def check_report(_: Lesson, report: Report) -> None:
    check_shape("means", report.means, (int(np.count_nonzero(report.has_mean)), report.means.shape[1]))
