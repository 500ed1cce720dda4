"""mean-label: clients learn the mean label of all, and predict the class next to it.

paper   none: an example
round   sampled clients tell the mean of their labels; everyone gets the mean of these
sent    up: a mean and how many examples it is of; down: the mean of all
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from laconic.algorithm import Algorithm, Fleet, Site, Task, on_client
from laconic.wire import EMPTY, Count, Message


class Opinion(Message):
    mean: float
    n_examples: Count


class Verdict(Message):
    mean: float


@dataclass
class Server:
    mean: float


@dataclass
class Client:
    mean: float


class MeanLabel(Algorithm):
    blend: float = 0.5  # share of the new mean in the verdict

    def start_server(self, task: Task, fleet: Fleet) -> Server:
        return Server(mean=0.0)

    def run_round(self, server: Server, fleet: Fleet) -> None:
        opinions = fleet.ask(self.tell, dict.fromkeys(fleet.sampled, EMPTY)).values()
        mean = np.average([o.mean for o in opinions], weights=[o.n_examples for o in opinions])
        server.mean += self.blend * (float(mean) - server.mean)
        fleet.ask(self.install, dict.fromkeys(fleet.everyone, Verdict(server.mean)), at_least=0)

    def start_client(self, task: Task, site: Site) -> Client:
        return Client(mean=0.0)

    @on_client
    def tell(self, client: Client, _: Message, site: Site) -> Opinion:
        return Opinion(float(site.train.y.mean()), len(site.train.y))

    @on_client
    def install(self, client: Client, verdict: Verdict, site: Site) -> None:
        client.mean = verdict.mean

    def predict(self, client: Client, x: NDArray[np.uint8]) -> NDArray[np.int64]:
        return np.full(len(x), round(client.mean))
