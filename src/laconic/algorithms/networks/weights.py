"""What travels of a vector that all clients hold, and what both ends keep of it; see shared_vector.py."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from laconic import networks as nn
from laconic.algorithms.broadcast import Broadcast
from laconic.networks import Network, Packed, Part, Spec, Vector
from laconic.wire import Count, Floats, Ints, Message


class Weights(Message, paper_bits={"exact": 32}, stateless=True):
    """Nothing in it: the client holds the latest."""

    exact: Floats | None  # [entry of the part]
    levels: Ints | None  # [entry] whole numbers, where these were asked for
    scales: Floats | None  # [row] what a level is worth

    @property
    def is_news(self) -> bool:
        return self.exact is not None or self.levels is not None

    @property
    def packed(self) -> Packed:
        return Packed(self.exact, self.levels, self.scales)


NO_NEWS = Weights(None, None, None)


class Update(Message, paper_bits={"exact": 32, "n_examples": 0}, stateless=True):
    """How training changed what was received."""

    exact: Floats | None
    levels: Ints | None
    scales: Floats | None
    n_examples: Count

    @property
    def packed(self) -> Packed:
        return Packed(self.exact, self.levels, self.scales)


@dataclass
class Shared(Broadcast):
    """The server's side."""

    vector: Vector  # [entry of the part]

    def move(self, change: NDArray[np.floating[Any]]) -> None:
        """What rounding took from the vector on its way down stays in it."""
        self.vector = (self.vector + change).astype(np.float32)
        self.version += 1


@dataclass
class Server:
    """Of methods whose server has nothing but the vector; others add to it."""

    spec: Spec
    shared: Shared


@dataclass
class Client:
    """The client's side, and what is its own. A state with more in it has this as its `common`."""

    spec: Spec
    shared: Vector  # as received; clients that got the same message hold one array
    personal: Vector  # [entry beyond the part]
    log_prior: NDArray[np.float32] | None = None  # see Training.prior
    trained: Network | None = None  # as it last was before it was averaged, if that is what is tested

    @property
    def common(self) -> Self:
        return self

    def receive(self, weights: Weights, part: Part) -> None:
        if weights.is_news:
            self.shared = nn.unpack(weights.packed, part.row_starts)

    def compose(self, part: Part) -> Network:
        if part.size == part.mask.size:  # nothing to put together, so clients may go on sharing one array
            return Network(self.spec, self.shared, self.log_prior)
        vector = np.empty(part.mask.size, np.float32)
        vector[part.mask], vector[~part.mask] = self.shared, self.personal
        return Network(self.spec, vector, self.log_prior)

    def keep_personal(self, network: Network, part: Part) -> None:
        self.personal, self.log_prior = network.vector[~part.mask], network.log_prior


@dataclass
class Twofold:
    """A client with a network of its own beside the common one."""

    common: Client
    own: Network  # the one it is tested with
