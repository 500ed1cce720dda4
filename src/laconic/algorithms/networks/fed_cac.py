"""FedCAC: everyone sends its whole network, and says which half of each layer is critical to it.

paper   Bold but Cautious: Unlocking the Potential of Personalized Federated Learning through Cautiously Aggressive
        Collaboration, 2023
round   sampled clients train, and score each parameter by its size times its change
merge   critical parameters: mean over clients that find much the same critical, fewer and fewer of them, none in the
        end; the others: mean over everyone
sent    up: the network, and a bit for each parameter; down: the mix, without what stays as it is
"""

import numpy as np

from laconic import networks as nn
from laconic.algorithm import Fleet, Site, Task, expect_like, on_client
from laconic.algorithms.networks import critical
from laconic.algorithms.networks.critical import Client, CriticalParameters, Server, Start
from laconic.algorithms.networks.settings import choose_spec
from laconic.models.networks import Logits
from laconic.networks import Part, Spec, Vector
from laconic.networks.precision import DTYPES
from laconic.networks.selection import pick_share
from laconic.wire import Bits, Floats, Message


class Upload(Message, stateless=True):
    mask: Bits  # [entry of the part] is it critical
    values: Floats  # [entry of the part]

    def read(self) -> Vector:
        return self.values.astype(np.float32)


class FedCAC(CriticalParameters):
    name = "fedcac"

    def part(self, spec: Spec) -> Part:
        """All that is trained."""
        return nn.find_part(spec, statistics=False)

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        return Server(choose_spec(task, self.training))

    def run_round(self, server: Server, fleet: Fleet) -> None:
        starts = {client: server.starts.pop(client, critical.STAY) for client in fleet.sampled}
        expected = expect_like(self.largest_up(server.spec), most=nn.LARGEST)
        self.merge(server, fleet.ask(self.train, starts, expect=expected), fleet)

    def costliest_round(self, task: Task) -> list[Message]:
        """However many are critical, values come to the number of parameters."""
        up = self.largest_up(choose_spec(task, self.training))
        down = up.values.astype(DTYPES[self.training.down])
        return [Start(0, down[:0], down.size, up.mask, down), up]

    def largest_up(self, spec: Spec) -> Upload:
        n_values = self.part(spec).size
        return Upload(np.zeros(n_values, np.bool_), np.zeros(n_values, DTYPES[self.training.up]))

    # ---------------------------------------------------------------- client
    @on_client
    def train(self, client: Client, start: Start, site: Site) -> Upload:
        part = self.part(client.network.spec)
        critical.go_on(client, start, part)
        before = part.take(client.network.vector)
        nn.fit(client.network, site.train, site.rng, self.training)
        after = part.take(client.network.vector)
        scores = np.abs((after - before) * after)
        client.critical = pick_share(scores, critical.list_places(client.network.spec, part), self.keep)
        client.sent_round = site.round
        return Upload(client.critical, after.astype(DTYPES[self.training.up]))

    def personal_model(self, client: Client) -> Logits:
        return Logits(client.network)
