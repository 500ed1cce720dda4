"""One vector that all clients hold: the shape of methods that average weights, or a part of them.

round   sampled clients get the vector, train the network that it is a part of, and send how it changed
merge   the mean change, by examples, is added
test    everyone gets the vector
sent    down: the vector, to whom lacks the latest; up: its change

A method says which part of the network the vector is (`part`; the rest is the client's own) and how a client trains
(`fit`). A method whose clients keep or send more than that has its own `start_client` or `train`; one that sends no
plain change also has its own `decode_change` and `largest_up`, after which its replies are checked.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Literal

from laconic import networks as nn
from laconic.aggregate import EVERY_AVERAGING, Averaging, average
from laconic.algorithm import Algorithm, ClientId, Fleet, Site, Task, expect_like, on_client
from laconic.algorithms.networks.settings import choose_spec
from laconic.algorithms.networks.weights import NO_NEWS, Client, Server, Shared, Twofold, Update, Weights
from laconic.models.networks import Logits
from laconic.networks import Network, Packed, Part, Spec, Training, Vector
from laconic.wire import Expected, Message

Tested = Literal["averaged", "trained"]  # a client is tested with the latest mean, or with what it made of the last


class SharedVector(Algorithm):
    training: Training

    takes = "values"
    tested = "averaged"  # with the latest vector; who is tested with something else need not be brought that
    blend = 1.0  # how far the vector moves to the mean of what clients made of it

    # ---------------------------------------------------------------- what a method may say
    def part(self, spec: Spec) -> Part:
        """What is shared."""
        return nn.find_part(spec, statistics=self.training.shares_statistics)

    def fit(self, network: Network, client: Any, site: Site) -> None:
        """Trains, in place, the network that the vector is a part of."""
        nn.fit(network, site.train, site.rng, self.training)

    @abstractmethod
    def train(self, client: Any, message: Any, site: Site) -> Any:
        """The client's step in a round."""

    def decode_change(self, reply: Any, spec: Spec, seed: int) -> Vector:
        """[entry of the part]; seed: see choose_seed."""
        return nn.unpack(reply.packed, self.part(spec).row_starts)

    def expect_reply(self, spec: Spec) -> Expected:
        """What any honest client's reply is like."""
        return expect_like(self.largest_up(spec), most=nn.LARGEST)

    def largest_up(self, spec: Spec) -> Message:
        return Update(*self.pack_change(self.start_shared(spec).vector, spec), n_examples=0)

    def choose_spec(self, task: Task, client: ClientId = 0) -> Spec:
        return choose_spec(task, self.training)

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        spec = self.choose_spec(task)
        return Server(spec, self.start_shared(spec))

    def start_shared(self, spec: Spec) -> Shared:
        return Shared(nn.start_vector(spec, self.training.init_seed)[self.part(spec).mask])

    def run_round(self, server: Any, fleet: Fleet) -> None:
        offered = server.shared.offer(fleet.sampled, Weights(*self.pack_latest(server)), NO_NEWS)
        replies = fleet.ask(self.train, offered, expect=self.expect_reply(server.spec))
        self.merge(server, replies, fleet.round, fleet.averaging)

    def merge(self, server: Any, replies: Mapping[ClientId, Any], round: int, averaging: Averaging = "mean") -> None:
        server.shared.acknowledge(replies)
        changes = [
            self.decode_change(reply, server.spec, choose_seed(round, client)) for client, reply in replies.items()
        ]
        server.shared.move(self.blend * average(changes, [reply.n_examples for reply in replies.values()], averaging))

    def deliver(self, server: Any, fleet: Fleet) -> None:
        if self.tested == "averaged":
            news = server.shared.offer(fleet.everyone, Weights(*self.pack_latest(server)))
            server.shared.acknowledge(fleet.ask(self.install, news, at_least=0))

    def pack_latest(self, server: Any) -> Packed:
        return nn.pack(server.shared.vector, self.part(server.spec).row_starts, self.training.down)

    def costliest_round(self, task: Task) -> list[Message]:
        """A client's change goes up, and the vector comes to train and, where that needs it, to be tested."""
        spec = self.choose_spec(task)
        down, up = self.largest_down(spec), self.largest_up(spec)
        return [down, up, down] if self.tested in ("averaged", "tuned") else [down, up]

    def largest_down(self, spec: Spec) -> Weights:
        return Weights(*self.pack_latest(Server(spec, self.start_shared(spec))))

    # ---------------------------------------------------------------- client
    def start_common(self, task: Task, site: Site) -> Client:
        spec = self.choose_spec(task, site.id)
        vector, mask = nn.start_vector(spec, self.training.init_seed), self.part(spec).mask
        return Client(spec, vector[mask], vector[~mask])

    def tell_change(self, client: Any, weights: Weights, site: Site) -> Update:
        """What most return from `train`."""
        change = self.learn(client, weights, site)
        return Update(*self.pack_change(change, client.common.spec), n_examples=len(site.train.y))

    def learn(self, client: Any, weights: Weights, site: Site) -> Vector:
        """[entry of the part] how training changed what came; the client keeps what is its own."""
        network = self.receive(client.common, weights)
        self.fit(network, client, site)
        return self.find_change(client.common, network)

    def receive(self, client: Client, weights: Weights) -> Network:
        """What came, and what is the client's own."""
        part = self.part(client.spec)
        client.receive(weights, part)
        return client.compose(part)

    def find_change(self, client: Client, network: Network) -> Vector:
        self.keep(client, network)
        return self.part(client.spec).take(network.vector) - client.shared

    def keep(self, client: Client, network: Network) -> None:
        """What of a trained network is the client's own, and what it is tested with."""
        client.keep_personal(network, self.part(client.spec))
        if self.tested == "trained":
            client.trained = network

    def pack_change(self, change: Vector, spec: Spec) -> Packed:
        return nn.pack(change, self.part(spec).row_starts, self.training.up)

    @on_client
    def install(self, client: Any, weights: Weights, site: Site) -> None:
        client.common.receive(weights, self.part(client.common.spec))

    def personal_model(self, client: Any) -> Logits:
        common = client.common
        return Logits(common.trained or common.compose(self.part(common.spec)))


def choose_seed(round: int, client: ClientId) -> int:
    """Of what both ends draw for a client in a round."""
    return round << 32 | client


class SharedPart(SharedVector):
    """A client's network is the vector and what is its own; the plain change travels."""

    averagings = EVERY_AVERAGING

    def start_client(self, task: Task, site: Site) -> Client:
        return self.start_common(task, site)

    @on_client
    def train(self, client: Client, weights: Weights, site: Site) -> Update:
        return self.tell_change(client, weights, site)


class TwoNetworks(SharedVector):
    """A client has a network of its own beside the common one, which is all that travels."""

    averagings = EVERY_AVERAGING
    tested = "own"

    def start_client(self, task: Task, site: Site) -> Twofold:
        return Twofold(self.start_common(task, site), nn.build(self.choose_spec(task), self.training.init_seed))

    @on_client
    def train(self, client: Twofold, weights: Weights, site: Site) -> Update:
        return self.tell_change(client, weights, site)

    def personal_model(self, client: Twofold) -> Logits:
        return Logits(client.own)


class TunedNetwork(TwoNetworks):
    """A client's own network is what it makes of the common one before it is tested (`tune_own`)."""

    tested = "tuned"

    @abstractmethod
    def tune_own(self, network: Network, site: Site) -> None: ...

    def deliver(self, server: Any, fleet: Fleet) -> None:
        everyone = server.shared.offer(fleet.everyone, Weights(*self.pack_latest(server)), NO_NEWS)
        server.shared.acknowledge(fleet.ask(self.tune, everyone, at_least=0))

    @on_client
    def tune(self, client: Twofold, weights: Weights, site: Site) -> None:
        client.own = self.receive(client.common, weights)
        self.tune_own(client.own, site)
