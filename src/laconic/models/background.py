"""What a run knows of a client's model that the model alone does not say."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

UNKNOWN = -1  # a clause that its owner has replaced since


@dataclass(frozen=True)
class Background:
    owners: NDArray[np.int64] | None = None  # [clause of the pool] the client that offered it
    n_holders: NDArray[np.int64] | None = None  # [clause of the pool] clients that have it
    critical: dict[str, NDArray[np.bool_]] = field(default_factory=dict)  # layer -> [parameter]
