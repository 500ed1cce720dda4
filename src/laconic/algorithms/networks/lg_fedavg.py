"""LG-FedAvg: a body for each, of any kind, and one head for all.

paper   Think Locally, Act Globally: Federated Learning with Local and Global Representations, 2020
round   sampled clients get the head, train it together with their own body and send how the head changed
merge   the mean change, by examples, is added
sent    down: the head, to whom lacks the latest; up: its change
"""

from laconic.algorithm import ClientId, Fleet, Task
from laconic.algorithms.networks.settings import choose_spec
from laconic.algorithms.networks.shared_vector import SharedPart
from laconic.algorithms.networks.weights import Server
from laconic.networks import Part, Spec, Training, find_part


class LGFedAvg(SharedPart):
    name = "lg-fedavg"

    training: Training = Training()
    models: tuple[str, ...] = ()  # taken by clients in turn, e.g. ["resnet8", "mobilenetv2"]; none: training.model
    n_features: int = 0  # that the head gets from any body; 0: as many as the body makes

    def __post_init__(self) -> None:
        if len(self.models) > 1 and self.n_features < 1:
            raise ValueError(
                f"method.n_features = {self.n_features}: bodies of several kinds share a head only if all make as many "
                "features; say how many, e.g. 500"
            )

    def choose_spec(self, task: Task, client: ClientId = 0) -> Spec:
        return choose_spec(task, self.training, self.models, self.n_features, client)

    def part(self, spec: Spec) -> Part:
        return find_part(spec, body=False, statistics=False)

    def start_server(self, task: Task, fleet: Fleet) -> Server:
        server = super().start_server(task, fleet)
        if self.models:  # bodies of other kinds start with other heads, so nobody has this one yet
            server.shared.version = 1
        return server
