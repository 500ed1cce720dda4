"""Separate: every client trains a network of its own and shares nothing; the control of all methods on networks.

paper   none: the control without sharing
round   sampled clients train
sent    nothing
"""

from dataclasses import dataclass

from laconic import networks as nn
from laconic.algorithm import Algorithm, Fleet, Site, Task, on_client
from laconic.algorithms.networks.settings import check_networks, choose_spec
from laconic.models.networks import Logits
from laconic.networks import Network, Training
from laconic.wire import EMPTY, Message


@dataclass
class Server:
    """Knows nothing."""


class Separate(Algorithm):
    name = "separate"

    training: Training = Training()
    models: tuple[str, ...] = ()  # taken by clients in turn; none: training.model
    n_features: int = 0  # that every head gets; 0: as its body makes them

    takes = "values"

    def check_task(self, task: Task) -> None:
        super().check_task(task)
        check_networks(task, self.training, self.models, self.n_features)

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        return Server()

    def run_round(self, server: Server, fleet: Fleet) -> None:
        fleet.ask(self.train, dict.fromkeys(fleet.sampled, EMPTY))

    def costliest_round(self, task: Task) -> list[Message]:
        return []

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Network:
        spec = choose_spec(task, self.training, self.models, self.n_features, site.id)
        return nn.build(spec, self.training.init_seed)

    @on_client
    def train(self, client: Network, _: Message, site: Site) -> None:
        nn.fit(client, site.train, site.rng, self.training)

    def personal_model(self, client: Network) -> Logits:
        return Logits(client)
