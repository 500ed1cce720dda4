"""Models made of neural networks: their logits, or how near their features are to a target of each class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic import networks as nn
from laconic.models.base import PersonalModel, Scores
from laconic.networks.prototypes import find_distances


@dataclass
class Logits(PersonalModel):
    kind = "network"

    network: nn.Network

    def scores(self, x: NDArray[Any]) -> Scores:
        return nn.outputs(self.network, x)[1]

    def renew(self, x: NDArray[Any]) -> Logits:
        return replace(self, network=nn.renew_statistics(self.network, x))


@dataclass
class NearestTarget(PersonalModel):
    """The class whose target is nearest to the features, among those that have one."""

    kind = "prototypes"

    network: nn.Network
    targets: nn.Vector  # [class, feature]
    has_target: NDArray[np.bool_]  # [class], one at least

    def renew(self, x: NDArray[Any]) -> NearestTarget:
        return replace(self, network=nn.renew_statistics(self.network, x))

    def scores(self, x: NDArray[Any]) -> Scores:
        """Squared distances less the features' own squares, the same for all classes; the nearer the higher."""
        votes = np.full((len(x), len(self.has_target)), -np.inf)
        features = nn.outputs(self.network, x)[0]
        votes[:, self.has_target] = -find_distances(features, self.targets[self.has_target])
        return votes
