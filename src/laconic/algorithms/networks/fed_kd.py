"""FedKD: as FML, with hidden features taught too, and a common network that travels as thin matrices.

paper   Communication-efficient federated learning via knowledge distillation, 2022
round   sampled clients get the common network, train it and their own together, and send the common one
merge   the mean of the networks that came, by examples
sent    both ways: the common network, each layer by as many singular values as hold a share of its energy; the share
        rises from round to round
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  # the name everyone gives it

from laconic import networks as nn
from laconic.aggregate import EVERY_AVERAGING, Averaging, average
from laconic.algorithm import Algorithm, Fleet, Site, Task, on_client
from laconic.algorithms.networks.settings import check_networks, choose_spec
from laconic.models.networks import Logits
from laconic.networks import Network, Part, Spec, Training, Vector
from laconic.networks.duet import Answers, diverge, fit_both
from laconic.networks.lowrank import Thin, check_thin, fill_out, thin_out
from laconic.wire import Count, Due, Expected, Floats, Ints, Message, UpTo

LEAST_LOSS = 1e-6


class Common(Message, paper_bits={"ranks": 0}, stateless=True):
    """The common network; ranks 0 and all values: none of its layers became smaller."""

    ranks: Ints  # [piece]
    values: Floats


class Sent(Message, paper_bits={"ranks": 0, "n_examples": 0}, stateless=True):
    ranks: Ints
    values: Floats
    n_examples: Count


@dataclass
class Server:
    spec: Spec
    vector: Vector  # [entry of the part]


@dataclass
class Client:
    network: Network  # its own
    common: Network
    bridge: Vector  # [own feature, common feature] from the common network's features to its own


class FedKD(Algorithm):
    name = "fedkd"

    training: Training = Training(rate=0.01, batch=32)
    models: tuple[str, ...] = ()  # of own networks, taken by clients in turn; none: training.model
    n_features: int = 0  # that every own network's head gets; 0: as its body makes them
    aux_model: str = "auto"  # of the common network
    first_energy: float = 0.95  # share of the squared singular values that is sent in the first round
    last_energy: float = 0.98  # and from round `rising_rounds` on
    rising_rounds: int = 300
    longest: float = 10.0  # length to which gradients are cut

    takes = "values"
    averagings = EVERY_AVERAGING

    def __post_init__(self) -> None:
        if not 0 < self.first_energy <= self.last_energy <= 1 or self.rising_rounds < 1:
            raise ValueError(
                f"method.first_energy = {self.first_energy}, method.last_energy = {self.last_energy} must rise, above "
                f"0 and at most 1; method.rising_rounds = {self.rising_rounds} must be at least 1"
            )

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        spec = self.common_spec(task)
        return Server(spec, nn.start_vector(spec, self.training.init_seed)[self.part(spec).mask])

    def run_round(self, server: Server, fleet: Fleet) -> None:
        layout, part = nn.layout(server.spec), self.part(server.spec)
        common = Common(*thin_out(server.vector, layout, part, self.energy(fleet.round)))
        replies = fleet.ask(
            self.train,
            dict.fromkeys(fleet.sampled, common),
            expect=self.expect_sent(server.spec),
            check=lambda _, reply: check_thin(Thin(reply.ranks, reply.values), layout, part),
        )
        server.vector = self.merge(server.spec, replies.values(), fleet.averaging)

    def merge(self, spec: Spec, replies: Collection[Sent], averaging: Averaging = "mean") -> Vector:
        """[entry of the part]"""
        layout, part = nn.layout(spec), self.part(spec)
        vectors = [fill_out(Thin(reply.ranks, reply.values), layout, part) for reply in replies]
        return average(vectors, [reply.n_examples for reply in replies], averaging).astype(np.float32)

    def expect_sent(self, spec: Spec) -> Expected:
        """Thin matrices are never more than the full ones; what is thin may be long where the full one is not."""
        _, largest = self.costliest_round_of(spec)
        values = Due((UpTo(largest.values.size),), nn.LARGEST * math.sqrt(largest.values.size), item_bytes=4)
        return {"ranks": Due(largest.ranks.shape, largest.values.size), "values": values}

    def energy(self, round: int) -> float:
        return self.first_energy + (self.last_energy - self.first_energy) * min(round / self.rising_rounds, 1.0)

    def check_task(self, task: Task) -> None:
        super().check_task(task)
        check_networks(task, self.training, self.models, self.n_features)

    def costliest_round(self, task: Task) -> list[Message]:
        return [*self.costliest_round_of(self.common_spec(task))]

    def costliest_round_of(self, spec: Spec) -> tuple[Common, Sent]:
        vector = nn.start_vector(spec, self.training.init_seed)[self.part(spec).mask]
        ranks = np.zeros(len(nn.layout(spec).pieces), np.int64)
        return Common(ranks, vector), Sent(ranks, vector, 1)

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        seed = self.training.init_seed
        own = nn.build(choose_spec(task, self.training, self.models, self.n_features, site.id), seed)
        common = nn.build(self.common_spec(task), seed)
        wide, narrow = (nn.count_head_inputs(network.spec) for network in (own, common))
        limit = 1 / np.sqrt(narrow)
        return Client(own, common, site.rng.uniform(-limit, limit, (wide, narrow)).astype(np.float32))

    @on_client
    def train(self, client: Client, common: Common, site: Site) -> Sent:
        layout, part = client.common.layout, self.part(client.common.spec)
        came = fill_out(Thin(common.ranks, common.values), layout, part)
        client.common.vector = part.put(came, client.common.vector)
        both, loss = (client.network, client.common), self.teach_each_other
        client.bridge = fit_both(
            *both, client.bridge, site.train, site.rng, self.training, loss=loss, longest=self.longest
        )
        thin = thin_out(client.common.vector[part.mask], layout, part, self.energy(site.round))
        return Sent(*thin, n_examples=len(site.train.y))

    def teach_each_other(self, answers: Answers, bridge: Tensor) -> Tensor:
        """What one network learns from the other counts the less, the worse both do."""
        own, aux = answers.logits, answers.aux_logits
        own_loss, aux_loss = F.cross_entropy(own, answers.labels), F.cross_entropy(aux, answers.labels)
        hidden = F.mse_loss(answers.features, answers.aux_features @ bridge.T)
        both = own_loss + aux_loss
        # a client with one class may come to know it by heart, and both losses are 0
        return both + (diverge(aux, own) + diverge(own, aux) + 2 * hidden) / both.clamp_min(LEAST_LOSS)

    def personal_model(self, client: Client) -> Logits:
        return Logits(client.network)

    # ---------------------------------------------------------------- pieces
    def common_spec(self, task: Task) -> Spec:
        return replace(choose_spec(task, self.training, (self.aux_model,)), head="head")

    def part(self, spec: Spec) -> Part:
        return nn.find_part(spec, statistics=self.training.shares_statistics)
