"""The shape of methods that share one vector, but send changes of it in a code of few bits of their own."""

from laconic import networks as nn
from laconic.algorithm import Site, Task
from laconic.algorithms.networks.shared_vector import SharedVector, Tested
from laconic.algorithms.networks.weights import Client
from laconic.networks import Network


class CodedChange(SharedVector):
    tested: Tested = "averaged"  # with the latest mean, or as last trained, before it was averaged

    def start_client(self, task: Task, site: Site) -> Client:
        return self.start_common(task, site)

    def fit(self, network: Network, client: Client, site: Site) -> None:
        trained = nn.fit(network, site.train, site.rng, self.training)
        site.note(train_loss=trained.loss)
