"""FedCAC: everyone sends its whole network, and says which half of each layer is critical to it.

round   sampled clients train, and score each parameter by its size times its change
merge   critical parameters: mean over clients that find much the same critical, fewer and fewer of them, none in the
        end; the others: mean over everyone
sent    up: the network, and a bit for each parameter; down: the mix, without what stays as it is
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic import networks as nn
from laconic.aggregate import Averaging
from laconic.algorithm import Algorithm, ClientId, Fleet, Site, Task, on_client
from laconic.algorithms.networks.averaging import choose_spec, find_part
from laconic.algorithms.networks.critical import (
    STAY,
    Client,
    Overlap,
    Server,
    Start,
    check_training,
    choose_critical,
    go_on,
    list_places,
    measure_overlap,
    mix,
)
from laconic.algorithms.networks.picking import DTYPES
from laconic.algorithms.settings import check_at_least, check_share
from laconic.networks import Part, Spec, Training
from laconic.wire import Bits, Floats, Message


class Upload(Message, is_afresh=True):
    mask: Bits  # [entry of the part] is it critical
    values: Floats  # [entry of the part]


class FedCAC(Algorithm):
    keep: float = 0.5  # share of each tensor that is critical (tau)
    alone_after: int = 100  # from the round after this one critical parameters are averaged with nobody's (beta)
    training: Training = Training(epochs=5, batch=100, rate=0.1, momentum=0.9, statistics="local")

    takes = "values"

    def __post_init__(self) -> None:
        check_share(self, "keep")
        check_at_least(self, alone_after=0)
        check_training(self.training)

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        return Server(choose_spec(task, self.training))

    def run_round(self, server: Server, fleet: Fleet) -> None:
        uploads = fleet.ask(self.train, {client: server.starts.pop(client, STAY) for client in fleet.sampled})
        overlap = measure_overlap([upload.mask for upload in uploads.values()])
        fleet.note_pairs(list(uploads), overlap=overlap)
        server.starts |= self.mix(uploads, overlap, fleet.round, fleet.averaging)

    def mix(
        self, uploads: Mapping[ClientId, Upload], overlap: Overlap, round: int, how: Averaging = "mean"
    ) -> dict[ClientId, Start]:
        masks = [upload.mask for upload in uploads.values()]
        vectors = [upload.values.astype(np.float32) for upload in uploads.values()]
        starts = mix(masks, vectors, overlap, round, self.alone_after, self.training.down, how)
        return dict(zip(uploads, starts, strict=True))

    def costliest_round(self, task: Task) -> list[Message]:
        """However many are critical, values come to the number of parameters."""
        n_values = self.part(choose_spec(task, self.training)).size
        up, down = (np.zeros(n_values, DTYPES[kept]) for kept in (self.training.up, self.training.down))
        mask = np.zeros(n_values, np.bool_)
        return [Start(0, down[:0], n_values, mask, down), Upload(mask, up)]

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        return Client(nn.build(choose_spec(task, self.training), self.training.init_seed))

    @on_client
    def train(self, client: Client, start: Start, site: Site) -> Upload:
        part = self.part(client.network.spec)
        go_on(client, start, part)
        before = part.take(client.network.vector)
        nn.fit(client.network, site.train, site.rng, self.training)
        after = part.take(client.network.vector)
        scores = np.abs((after - before) * after)
        client.critical = choose_critical(scores, list_places(client.network.spec, part), self.keep)
        client.sent_round = site.round
        return Upload(client.critical, after.astype(DTYPES[self.training.up]))

    def predict(self, client: Client, x: NDArray[Any]) -> NDArray[np.int64]:
        return nn.classify(client.network, x)

    # ---------------------------------------------------------------- pieces
    def part(self, spec: Spec) -> Part:
        """All that is trained."""
        return find_part(spec, statistics=False)
