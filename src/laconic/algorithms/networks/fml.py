"""FML: every client trains a network of its own kind beside a common one, and the two teach each other.

round   sampled clients get the common network, train it and their own together, and send how the common one changed
merge   the plain mean of the changes is added
sent    down: the common network, to whom lacks the latest; up: its change. Own networks never leave
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  # the name everyone gives it

from laconic import networks as nn
from laconic.algorithm import Algorithm, Fleet, Site, Task, on_client
from laconic.algorithms.networks import averaging
from laconic.algorithms.networks.averaging import Server, Update, Weights, find_part, merge, offer, start_server
from laconic.algorithms.networks.prototyping import choose_specs
from laconic.networks import Network, Part, Spec, Training
from laconic.networks.duet import Answers, diverge, fit_both
from laconic.wire import Message


@dataclass
class Client:
    network: Network  # its own
    common: averaging.Client


class FML(Algorithm):
    training: Training = Training(rate=0.01, batch=32)
    models: tuple[str, ...] = ()  # of own networks, taken by clients in turn; none: training.model
    n_features: int = 0  # that every own network's head gets; 0: as its body makes them
    aux_model: str = "auto"  # of the common network
    own_share: float = 0.5  # alpha: of the labels in the own network's loss; the rest is the common one's opinion
    aux_share: float = 0.5  # beta: likewise in the common network's loss
    longest: float = 10.0  # length to which gradients are cut

    takes = "values"

    def __post_init__(self) -> None:
        for name in ("own_share", "aux_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"method.{name} = {getattr(self, name)} must be from 0 to 1")

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        spec = self.common_spec(task)
        return start_server(spec, self.part(spec), self.training)

    def run_round(self, server: Server, fleet: Fleet) -> None:
        part = self.part(server.spec)
        updates = fleet.ask(self.train, offer(server.shared, fleet.sampled, part, self.training))
        merge(server.shared, updates, part, how=fleet.averaging)

    def costliest_round(self, task: Task) -> list[Message]:
        spec = self.common_spec(task)
        return averaging.list_messages(spec, self.part(spec), self.training)[:2]

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        spec, common = choose_specs(task, self.training, self.models, self.n_features, site.id), self.common_spec(task)
        own = nn.build(spec, self.training.init_seed)
        return Client(own, averaging.start_client(common, self.part(common), self.training))

    @on_client
    def train(self, client: Client, weights: Weights, site: Site) -> Update:
        part = self.part(client.common.spec)
        averaging.receive(client.common, weights, part)
        common = averaging.compose(client.common, part)
        nothing = np.zeros(0, np.float32)
        fit_both(
            client.network,
            common,
            nothing,
            site.train,
            site.rng,
            self.training,
            loss=self.teach_each_other,
            longest=self.longest,
        )
        return averaging.tell_change(client.common, common, part, 1, self.training)

    def teach_each_other(self, voices: Answers, _: Tensor) -> Tensor:
        own, aux = voices.logits, voices.aux_logits
        mine = self.own_share * F.cross_entropy(own, voices.labels) + (1 - self.own_share) * diverge(aux, own)
        theirs = self.aux_share * F.cross_entropy(aux, voices.labels) + (1 - self.aux_share) * diverge(own, aux)
        return mine + theirs

    def predict(self, client: Client, x: NDArray[Any]) -> NDArray[np.int64]:
        return nn.classify(client.network, x)

    # ---------------------------------------------------------------- pieces
    def common_spec(self, task: Task) -> Spec:
        return Spec(self.aux_model, task.input_shape, task.n_classes, task.peak)

    def part(self, spec: Spec) -> Part:
        return find_part(spec, statistics=self.training.statistics == "shared")
