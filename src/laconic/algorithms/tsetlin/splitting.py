"""How many clauses are shared: a reference round tells how alike clients are, their bytes how many there may be."""

from abc import abstractmethod
from typing import Literal

import numpy as np

from laconic import tsetlin as tm
from laconic.aggregate import jaccard, mean_of_pairs
from laconic.algorithm import Fleet, Site, Task, count_affordable, on_client
from laconic.algorithms.settings import check_at_least
from laconic.algorithms.tsetlin.machines import MergedMethod, paper_clause_bytes
from laconic.algorithms.tsetlin.two_machines import TwoMachines
from laconic.records import Panel
from laconic.wire import EMPTY, Bits, Due, Message


class Reference(Message):
    used: Bits  # [class, clause] includes any literal; at bit level [class, clause, literal]


class SplitMethod(MergedMethod):
    """A shape: of a client's clauses, the more are shared the more alike the clients are."""

    panels = (
        Panel.of_two_models({"private_accuracy": "private", "shared_accuracy": "shared", "both_accuracy": "both"}),
        Panel(
            "lines",
            "Shared and private",
            {
                "n_shared": "shared",
                "n_private": "private",
                "n_shared_by_paper": "shared, by the paper’s count of these bytes",
            },
            "How much of a client’s model is the same for all, and how alike the clients were when that was decided.",
            "clauses of each class",
        ),
        Panel("lines", "Shared and private", {"similarity": "similarity"}, axis="similarity of the clients"),
        Panel("clients", "Donors", {"donor_1": "first", "donor_2": "second"}, "Whose include bits were asked for."),
        Panel("budget", "", {"n_shared": "Clauses shared", "n_shared_by_paper": "by the paper’s count"}),
    )

    n_clauses: int = 200  # per class, private and shared together
    n_shared: int | None = None  # of these; unset: by similarity, within the bytes; 0: nothing is shared
    download_bytes: int = 10_000  # tau: most that the shared machine may take in a round, by the paper's count
    budget_bytes: int = 0  # real bytes per client and round, in place of tau; filled in by the run's budget
    n_reference: int = 10  # clauses per class of the reference machine
    similarity: Literal["clause", "clause-unmasked", "bit"] = "clause"  # clauses used: of held or all classes; or bits
    reestimate_every: int = 0  # rounds from one reference round to the next; 0: the first is the only one

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, n_shared=0, download_bytes=0, budget_bytes=0, n_reference=1, reestimate_every=0)
        if self.n_shared is not None and self.n_shared > self.n_clauses:
            raise ValueError(f"method.n_shared = {self.n_shared} must be at most n_clauses, {self.n_clauses}")

    @abstractmethod
    def list_messages(self, task: Task, n_shared: int) -> list[Message]:
        """The largest that a client may get and send in a round in which so many clauses per class are shared."""

    # ---------------------------------------------------------------- server
    def costliest_round(self, task: Task) -> list[Message]:
        return self.list_messages(task, self.afford(task) if self.n_shared is None else self.n_shared)

    def estimate_split(self, task: Task, fleet: Fleet, similarity: float) -> tuple[int, float]:
        """Clauses per class to share, and how alike clients are: as last time, if there are not two to compare."""
        used = self.describe(self.build(task, self.n_reference)).used.shape
        replies = fleet.ask(
            self.train_reference,
            dict.fromkeys(fleet.sampled, EMPTY),
            at_least=0,
            expect={"used": Due(used)},
        )
        if len(replies) > 1:
            alike = jaccard([reply.used for reply in replies.values()])
            similarity = mean_of_pairs(alike)
            fleet.note_pairs(list(replies), similarity=alike)
        n_affordable = self.afford(task)
        fleet.note(
            similarity=similarity,
            n_affordable=n_affordable,
            n_affordable_by_paper=self.afford_by_paper(task),
            paper_reference_bytes=self.n_reference * paper_clause_bytes(task, self.patch) * len(replies),
        )
        return self.count_shared(n_affordable, similarity), similarity

    def note_split(self, task: Task, fleet: Fleet, n_shared: int, similarity: float) -> None:
        fleet.note(n_shared=n_shared, n_private=self.n_clauses - n_shared)
        if self.n_shared is None:
            fleet.note(similarity=similarity)
            if self.budget_bytes:
                fleet.note(n_shared_by_paper=self.count_shared(self.afford_by_paper(task), similarity))

    def count_shared(self, n_affordable: int, similarity: float) -> int:
        """From none, if clients have nothing in common, to all that is affordable, if they use the same clauses."""
        least_private = 1 - n_affordable / self.n_clauses
        n_private = int(self.n_clauses * least_private**similarity + 1e-9)  # 1e-9: rounding must not cost a clause
        return self.n_clauses - n_private

    def afford(self, task: Task) -> int:
        """Most clauses per class to share: at most half, and no more than the bytes allow in the worst case."""
        if not self.budget_bytes:
            return self.afford_by_paper(task)
        sizes = range(1, self.n_clauses // 2 + 1)
        return count_affordable(self.budget_bytes, sizes, lambda n: self.list_messages(task, n))

    def afford_by_paper(self, task: Task) -> int:
        """The same by the paper's count: of tau, for the download, or of a budget, for both ways."""
        n_bytes = self.budget_bytes // 2 if self.budget_bytes else self.download_bytes
        return min(n_bytes // paper_clause_bytes(task, self.patch), self.n_clauses // 2)

    # ---------------------------------------------------------------- client
    @on_client
    def train_reference(self, client: TwoMachines, _: Message, site: Site) -> Reference:
        machine = self.build(client.task, self.n_reference)
        machine.threshold = max(1, self.threshold * self.n_reference // self.n_clauses)
        tm.fit(machine, *site.train, site.rng, epochs=self.epochs)
        reference = self.describe(machine)
        if self.similarity == "clause":
            reference.used[np.bincount(site.train.y, minlength=client.task.n_classes) == 0] = False
        return reference

    def describe(self, machine: tm.Machine) -> Reference:
        return Reference(tm.include_bits(machine) if self.similarity == "bit" else tm.clause_activity(machine))
