"""FML: every client trains a network of its own kind beside a common one, and the two teach each other.

paper   Federated Mutual Learning, 2020
round   sampled clients get the common network, train it and their own together, and send how the common one changed
merge   the plain mean of the changes is added
sent    down: the common network, to whom lacks the latest; up: its change. Own networks never leave
"""

from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  # the name everyone gives it

from laconic import networks as nn
from laconic.aggregate import EVERY_AVERAGING
from laconic.algorithm import ClientId, Site, Task, on_client
from laconic.algorithms.networks.settings import check_networks, choose_spec
from laconic.algorithms.networks.shared_vector import SharedVector
from laconic.algorithms.networks.weights import Client as Common
from laconic.algorithms.networks.weights import Update, Weights
from laconic.algorithms.settings import check_share
from laconic.models.networks import Logits
from laconic.networks import Network, Spec, Training
from laconic.networks.duet import Answers, diverge, fit_both


@dataclass
class Client:
    network: Network  # its own
    common: Common


class FML(SharedVector):
    name = "fml"

    training: Training = Training(rate=0.01, batch=32)
    models: tuple[str, ...] = ()  # of own networks, taken by clients in turn; none: training.model
    n_features: int = 0  # that every own network's head gets; 0: as its body makes them
    aux_model: str = "auto"  # of the common network
    own_share: float = 0.5  # alpha: of the labels in the own network's loss; the rest is the common one's opinion
    aux_share: float = 0.5  # beta: likewise in the common network's loss
    longest: float = 10.0  # length to which gradients are cut

    averagings = EVERY_AVERAGING
    tested = "own"

    def __post_init__(self) -> None:
        check_share(self, "own_share", "aux_share")

    def choose_spec(self, task: Task, client: ClientId = 0) -> Spec:
        """Of the common network."""
        return replace(choose_spec(task, self.training, (self.aux_model,)), head="head")

    def check_task(self, task: Task) -> None:
        super().check_task(task)
        check_networks(task, self.training, self.models, self.n_features)

    def start_client(self, task: Task, site: Site) -> Client:
        spec = choose_spec(task, self.training, self.models, self.n_features, site.id)
        return Client(nn.build(spec, self.training.init_seed), self.start_common(task, site))

    @on_client
    def train(self, client: Client, weights: Weights, site: Site) -> Update:
        return replace(self.tell_change(client, weights, site), n_examples=1)  # all count alike

    def fit(self, network: Network, client: Client, site: Site) -> None:
        loss, no_bridge = self.teach_each_other, np.zeros(0, np.float32)
        both = client.network, network
        fit_both(*both, no_bridge, site.train, site.rng, self.training, loss=loss, longest=self.longest)

    def teach_each_other(self, answers: Answers, _: Tensor) -> Tensor:
        own, aux = answers.logits, answers.aux_logits
        mine = self.own_share * F.cross_entropy(own, answers.labels) + (1 - self.own_share) * diverge(aux, own)
        theirs = self.aux_share * F.cross_entropy(aux, answers.labels) + (1 - self.aux_share) * diverge(own, aux)
        return mine + theirs

    def personal_model(self, client: Client) -> Logits:
        return Logits(client.network)
