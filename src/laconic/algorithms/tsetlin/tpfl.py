"""TPFL: clients that are surest of the same class share how their clauses vote on it.

paper   TPFL: Tsetlin-Personalized Federated Learning with Confidence-Based Clustering, 2024
round   sampled clients train coalesced machines; each sends its surest class and the weights of its clauses for it
merge   each class named: mean of its centre so far, with one vote, and of the weights that came
sent    up: a class, and the clause weights for it; down, to those who named it: its centre, in place of their weights
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from laconic import tsetlin as tm
from laconic.aggregate import EVERY_AVERAGING, Averaging, average
from laconic.algorithm import Fleet, Site, Task, on_client
from laconic.algorithms.tsetlin.machines import LARGEST_VOTE, MachineMethod, choose_shape, held_out
from laconic.models.machines import Ballot
from laconic.records import Panel
from laconic.wire import EMPTY, Due, Ints, Message

LEAST_VOTES = 3  # for a class, where an average is to bear liars: of two nobody can tell who lies


class Vote(Message, paper_bits={"label": 8, "weights": 32}):
    label: int  # the class this client is surest of
    weights: Ints  # [clause] of that class


@dataclass
class Server:
    n_classes: int
    centres: dict[int, NDArray[np.float64]] = field(default_factory=dict)  # class -> [clause] mean weights


@dataclass
class Client:
    machine: tm.Machine


class TPFL(MachineMethod):
    name = "tpfl"
    client_notes = ("surest_class",)
    panels = (Panel("classes", "Surest classes", {"surest_class": "the class that each client was surest of"}),)
    averagings = EVERY_AVERAGING
    budget_knob = "n_clauses"

    n_clauses: int = 1000  # shared by all classes
    specificity: float = 10.0  # s: the larger, the more literals a clause keeps

    # ---------------------------------------------------------------- server
    def start_server(self, task: Task, fleet: Fleet) -> Server:
        return Server(task.n_classes)

    def run_round(self, server: Server, fleet: Fleet) -> None:
        def check_vote(_: Message, vote: Vote) -> None:
            if not 0 <= vote.label < server.n_classes:
                raise ValueError(f"label is {vote.label}, one from 0 to {server.n_classes - 1} was expected")

        expected = {"weights": Due((self.n_clauses,), LARGEST_VOTE)}
        votes = fleet.ask(self.train, dict.fromkeys(fleet.sampled, EMPTY), expect=expected, check=check_vote)
        centres = self.merge(server, list(votes.values()), fleet.averaging)
        fleet.note(n_clusters=len(centres))
        news = {client: centres[vote.label] for client, vote in votes.items() if vote.label in centres}
        fleet.ask(self.install, news, at_least=0)

    def merge(self, server: Server, votes: list[Vote], averaging: Averaging = "mean") -> dict[int, Vote]:
        """The new centre of each class named, in whole numbers; the server keeps the fractions."""
        for label in sorted({vote.label for vote in votes}):
            so_far = [server.centres[label]] if label in server.centres else []
            came = [vote.weights for vote in votes if vote.label == label]
            if averaging != "mean" and len(came) < LEAST_VOTES:
                continue
            server.centres[label] = average([*so_far, *came], [1] * (len(so_far) + len(came)), averaging)
        named = {vote.label: server.centres[vote.label] for vote in votes if vote.label in server.centres}
        return {label: Vote(label, np.trunc(centre).astype(np.int32)) for label, centre in named.items()}

    def costliest_round(self, task: Task) -> list[Message]:
        vote = Vote(0, np.zeros(self.n_clauses, np.int32))
        return [EMPTY, vote, vote]

    # ---------------------------------------------------------------- client
    def start_client(self, task: Task, site: Site) -> Client:
        shape, settings = choose_shape(task, self.patch), (task.n_classes, self.n_clauses, site.rng)
        return Client(tm.build_coalesced(shape, *settings, **self.options))

    @on_client
    def train(self, client: Client, _: Message, site: Site) -> Vote:
        tm.fit(client.machine, *site.train, site.rng, epochs=self.epochs)
        label = self.find_surest(client.machine, held_out(site).x)
        site.note(surest_class=label)
        return Vote(label, client.machine.weights[label])

    @on_client
    def install(self, client: Client, centre: Vote, site: Site) -> None:
        client.machine.weights[centre.label] = centre.weights

    def personal_model(self, client: Client) -> Ballot:
        return Ballot(client.machine)

    def find_surest(self, machine: tm.Machine, x: NDArray[np.uint8]) -> int:
        """The class with most votes over all these examples together."""
        return int(tm.class_sums(machine, x).sum(axis=0).argmax())
