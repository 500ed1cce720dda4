"""The shape of FedProto and FedTGP: class means of features go up, targets come down, networks stay.

Three options, each on its own: only some dimensions of a class travel (CPS), sums travel instead of means so that no
message shows how many examples of a class a client has (PPA), and a client holds to targets in proportion to what it
has of their classes (CPKD).
"""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from laconic import networks as nn
from laconic.aggregate import mean_of_pairs
from laconic.algorithm import ClientId, Fleet, Site, Task, on_client
from laconic.algorithms.networks.class_targets import ClassTargets, Client, Kept, Means, Server, Targets
from laconic.algorithms.settings import check_at_least
from laconic.models.networks import Logits, NearestTarget
from laconic.networks import Batch
from laconic.networks.prototypes import cosines, find_error, head_norms, nearest, sum_features, write_rows
from laconic.networks.vector import readable
from laconic.records import Panel

MOST_NOTED = 50  # classes whose targets are recorded; records are to stay small beside the traffic's


class Prototyping(ClassTargets):
    n_features: int = 500  # d: dimensions of a prototype
    pull: float = 1.0  # lambda: of the squared distance from the target, averaged over dimensions
    cps_dims: int = 500  # s: dimensions of a class that travel (CPS); n_features or more: all
    cps_loss: Literal["masked", "full"] = "full"  # features are drawn to zero elsewhere, or left free ("masked")
    ppa: bool = False  # sums travel instead of means, so that no message shows how many examples a class has
    cpkd: bool = False  # clients hold to a target in proportion to what they have of its class
    kept: Kept = "fp32"  # precision of prototypes, both ways
    tested: Literal["prototype", "head"] = "prototype"  # what a prediction is made by; both are recorded

    budget_knob = ("kept", "cps_dims")
    panels = (
        Panel.of_two_models(
            {"head_accuracy": "head", "prototype_accuracy": "prototype", "kept_dims_accuracy": "kept_dims"}
        ),
        Panel(
            "labels",
            "Heads and labels",
            {"head_norm": "lengths of the head’s weights"},
            "The nearer a head is to its labels, the more it is the client’s own.",
        ),
        Panel("matrix", "Prototypes of the classes", {"prototypes": ""}),
        Panel(
            "matrix",
            "How alike the prototypes are",
            {"prototype_cosine": ""},
            "The cosine of every two targets; fainter is further apart.",
        ),
    )

    def __post_init__(self) -> None:
        check_at_least(self, n_features=1, cps_dims=1)

    def count_dims(self, task: Task) -> tuple[int, int]:
        return self.n_features, min(self.cps_dims, self.n_features)

    # ---------------------------------------------------------------- server
    def deliver(self, server: Any, fleet: Fleet) -> None:
        """Targets are recorded, how alike they are, and what rounding takes of them."""
        exchange: Server = server.exchange
        exchange.acknowledge(fleet.ask(self.install, self.offer(exchange, fleet.everyone), at_least=0))
        shown = exchange.targets[:MOST_NOTED]
        fleet.note_matrix("class", "dimension", prototypes=shown)
        fleet.note_matrix("class", "class", prototype_cosine=cosines(shown))
        targets = exchange.targets[exchange.has_target]
        fleet.note(
            prototype_cosine=mean_of_pairs(cosines(targets)),
            prototype_error=find_error(targets, exchange.masks[exchange.has_target], self.kept),
        )

    # ---------------------------------------------------------------- client
    @on_client
    def install(self, client: Client, targets: Targets, site: Site) -> None:
        client.receive(targets)

    def hold(self, client: Client, site: Site) -> nn.Loss:
        """Cross-entropy and the squared distance of features from the target of their class, averaged over dimensions.

        cps_loss: "masked" looks at the kept dimensions alone, "full" draws all others to zero. Either way the mean is
        over all dimensions: what is kept is drawn as hard as it is where nothing is left out.
        """
        counts = np.bincount(site.train.y, minlength=len(client.targets))
        shares = counts / max(counts.max(), 1) if self.cpkd else np.ones(len(counts))
        weights = torch.from_numpy((shares * client.has_target).astype(np.float32))
        targets = torch.from_numpy(client.targets)
        is_masked = self.cps_loss == "masked"
        looked_at = torch.from_numpy(readable(client.masks) if is_masked else np.ones_like(client.masks))

        def total(batch: Batch) -> torch.Tensor:
            squares = (batch.features - targets[batch.labels]) ** 2 * looked_at[batch.labels]
            return nn.cross_entropy(batch) + self.pull * (squares.mean(dim=1) * weights[batch.labels]).mean()

        return total if client.has_target.any() else nn.cross_entropy

    def tell_means(self, client: Client, site: Site) -> Means:
        site.note_classes(head_norm=head_norms(client.network.vector, client.network.layout))
        features, _ = nn.outputs(client.network, site.train.x)
        sums, counts = sum_features(features, site.train.y, len(client.masks))
        held = counts > 0
        rows = sums[held] if self.ppa else sums[held] / counts[held, None]
        packed = write_rows(rows.astype(np.float32), client.masks[held], self.kept)
        return Means(held, *packed, n_examples=len(site.train.y) if self.ppa else None)

    def personal_model(self, client: Client) -> Logits | NearestTarget:
        if self.tested == "head" or not client.has_target.any():
            return Logits(client.network)
        return NearestTarget(client.network, client.targets, client.has_target)

    def predict_also(self, client: Client, x: NDArray[Any]) -> dict[str, NDArray[np.integer[Any]]]:
        return {**self.classify(client, x)}

    def classify(self, client: Client, x: NDArray[Any]) -> dict[str, NDArray[np.int64]]:
        """By the nearest target, by the nearest in the dimensions that its class keeps, and by the head.

        As long as there are no targets, by the head alone.
        """
        features, logits = nn.outputs(client.network, x)
        found: dict[str, NDArray[np.int64]] = {"head": logits.argmax(axis=1)}
        if client.has_target.any():
            found["prototype"] = nearest(features, client.targets, client.has_target)
            if not client.masks.all():
                found["kept_dims"] = nearest(features, client.targets, client.has_target, client.masks)
        return found


def count_examples(replies: Mapping[ClientId, Means]) -> int:
    return sum(reply.n_examples or 0 for reply in replies.values())
