"""pFedMe: the common network is trained through each client's own, which may leave it at a price.

round   sampled clients get the common network; for each mini-batch they fit their own one, pulled to their copy of the
        common one, and move the copy towards it; they send how the copy changed
merge   the mean change, by examples, times `blend` is added
sent    down: the common network, to whom lacks the latest; up: its change
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic import networks as nn
from laconic.algorithm import Algorithm, Fleet, Site, Task, on_client
from laconic.algorithms.networks import averaging
from laconic.algorithms.networks.averaging import Server, Twofold, Update, Weights, choose_spec, find_part
from laconic.algorithms.settings import check_at_least
from laconic.networks import Network, Part, Spec, Training, sgd
from laconic.wire import Message


class PFedMe(Algorithm):
    training: Training = Training()  # its rate is that of the client's own network
    pull: float = 15.0  # of the copy on the client's own network (lambda)
    inner_steps: int = 5  # of the client's own network for each mini-batch (K)
    outer_rate: float = 0.005  # the copy moves by this times pull of its way to the client's own network (eta)
    blend: float = 1.0  # how far the common network moves to the mean of the copies (beta)

    takes = "values"

    def __post_init__(self) -> None:
        check_at_least(self, pull=0, inner_steps=1, outer_rate=0, blend=0)

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        spec = choose_spec(task, self.training)
        return averaging.start_server(spec, self.part(spec), self.training)

    def run_round(self, server: Server, fleet: Fleet) -> None:
        part = self.part(server.spec)
        updates = fleet.ask(self.train, averaging.offer(server.shared, fleet.sampled, part, self.training))
        averaging.merge(server.shared, updates, part, blend=self.blend, how=fleet.averaging)

    def costliest_round(self, task: Task) -> list[Message]:
        spec = choose_spec(task, self.training)
        return averaging.list_messages(spec, self.part(spec), self.training)[:2]  # a test needs nothing new

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Twofold:
        spec = choose_spec(task, self.training)
        return averaging.start_twofold(spec, self.part(spec), self.training)

    @on_client
    def train(self, client: Twofold, weights: Weights, site: Site) -> Update:
        part = self.part(client.common.spec)
        averaging.receive(client.common, weights, part)
        client.own = averaging.compose(client.common, part)
        copy = self.fit_both(client.own, site)
        return averaging.tell_change(client.common, copy, part, len(site.train.y), self.training)

    def predict(self, client: Twofold, x: NDArray[Any]) -> NDArray[np.int64]:
        return nn.classify(client.own, x)

    # ---------------------------------------------------------------- pieces
    def fit_both(self, own: Network, site: Site) -> Network:
        """Trains the client's own network in place; the copy, which starts where it does, is returned."""
        training = self.training
        if training.prior:
            own.log_prior = nn.log_shares(site.train.y, own.spec.n_classes)
        module = sgd.open_network(own, is_training=True)
        module.only("all")
        copy = module.weights.clone()
        speed = copy.new_zeros(copy.shape) if training.momentum else None
        for places in nn.batches(len(site.train.y), site.rng, training.batch, training.epochs, training.steps):
            for _ in range(self.inner_steps):
                sgd.push_back(module, own, site.train, places, nn.cross_entropy)
                module.gradient.add_(module.weights - copy, alpha=self.pull)
                sgd.descend(module.weights, module.gradient, speed, training)
            copy.add_(module.weights - copy, alpha=self.outer_rate * self.pull)
        own.vector = module.vector()
        vector = own.vector.copy()  # the copy has the same statistics, for it saw the same examples
        vector[: len(copy)] = copy.numpy()
        return Network(own.spec, vector, own.log_prior)

    def part(self, spec: Spec) -> Part:
        return find_part(spec, statistics=self.training.statistics == "shared")
