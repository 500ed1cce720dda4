"""local-tm: every client trains a Tsetlin Machine of its own and shares nothing.

round   sampled clients train on their own examples
sent    nothing
why     the control: what sharing must beat
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from laconic import tsetlin as tm
from laconic.algorithm import Algorithm, Fleet, Site, Task, on_client
from laconic.algorithms.settings import check_at_least
from laconic.algorithms.tsetlin.machines import choose_shape, classify
from laconic.wire import EMPTY, Message


@dataclass
class Server:
    pass


@dataclass
class Client:
    machine: tm.Machine
    chooses: NDArray[np.bool_]  # [class] among which


class LocalTM(Algorithm):
    n_clauses: int = 100  # per class
    threshold: int = 1000  # T: votes beyond which a class needs no more training
    specificity: float = 5.0  # s: the larger, the more literals a clause keeps
    patch: int | None = None  # side of the square patches; 0: the whole image; unset: 10, or the whole if it is small
    epochs: int = 10  # local epochs a round
    own_negatives: bool = False  # clauses learn to tell apart, and choose among, only the classes a client holds

    def __post_init__(self) -> None:
        check_at_least(self, n_clauses=1, threshold=1, specificity=1, patch=0, epochs=1)

    def start_server(self, task: Task, fleet: Fleet) -> Server:
        return Server()

    def run_round(self, server: Server, fleet: Fleet) -> None:
        fleet.ask(self.train, dict.fromkeys(fleet.sampled, EMPTY), at_least=0)

    def start_client(self, task: Task, site: Site) -> Client:
        shape = choose_shape(task, self.patch)
        machine = tm.build(
            shape, task.n_classes, self.n_clauses, threshold=self.threshold, specificity=self.specificity
        )
        return Client(machine, np.ones(task.n_classes, np.bool_))

    @on_client
    def train(self, client: Client, _: Message, site: Site) -> None:
        if self.own_negatives:
            client.chooses = np.bincount(site.train.y, minlength=client.machine.n_classes) > 0
        negatives = np.flatnonzero(client.chooses)
        tm.fit(client.machine, *site.train, site.rng, epochs=self.epochs, negatives=negatives)

    def costliest_round(self, task: Task) -> list[Message]:
        return []

    def predict(self, client: Client, x: NDArray[np.uint8]) -> NDArray[np.int64]:
        return classify(client.machine, x, client.chooses)
