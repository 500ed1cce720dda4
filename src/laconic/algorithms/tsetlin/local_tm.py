"""local-tm: every client trains a Tsetlin Machine of its own and shares nothing.

paper   none: the control without sharing
round   sampled clients train on their own examples
sent    nothing
why     the control: what sharing must beat
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from laconic import tsetlin as tm
from laconic.algorithm import Fleet, Site, Task, on_client
from laconic.algorithms.tsetlin.machines import MachineMethod
from laconic.models.machines import Ballot
from laconic.wire import EMPTY, Message


@dataclass
class Server:
    pass


@dataclass
class Client:
    machine: tm.Machine
    chooses: NDArray[np.bool_]  # [class] among which


class LocalTM(MachineMethod):
    name = "local-tm"

    epochs: int = 10  # local epochs a round
    own_negatives: bool = False  # clauses learn to tell apart, and choose among, only the classes a client holds

    def start_server(self, task: Task, fleet: Fleet) -> Server:
        return Server()

    def run_round(self, server: Server, fleet: Fleet) -> None:
        fleet.ask(self.train, dict.fromkeys(fleet.sampled, EMPTY), at_least=0)

    def start_client(self, task: Task, site: Site) -> Client:
        return Client(self.build(task), np.ones(task.n_classes, np.bool_))

    @on_client
    def train(self, client: Client, _: Message, site: Site) -> None:
        if self.own_negatives:
            client.chooses = np.bincount(site.train.y, minlength=client.machine.n_classes) > 0
        negatives = np.flatnonzero(client.chooses)
        tm.fit(client.machine, *site.train, site.rng, epochs=self.epochs, negatives=negatives)

    def costliest_round(self, task: Task) -> list[Message]:
        return []

    def personal_model(self, client: Client) -> Ballot:
        return Ballot(client.machine, client.chooses)
