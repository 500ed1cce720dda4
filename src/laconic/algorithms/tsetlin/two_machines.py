"""A client's private and shared machine, which split its clauses between them and vote together."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from laconic import tsetlin as tm
from laconic.algorithm import Examples, Task
from laconic.algorithms.tsetlin.machines import resize

Classes = NDArray[np.bool_]  # [class]
Sums = dict[str, NDArray[np.int32]]  # machine -> [example, class]


@dataclass
class TwoMachines:
    task: Task
    machines: dict[str, tm.Machine]  # "private" and "shared", those that have clauses; "trained": the shared one kept
    holds: Classes  # has training examples of it
    spans: dict[str, float]  # of each machine's sums on examples set aside
    is_gated: bool = False  # the shared machine does not help

    def prepare(
        self, labels: NDArray[np.int64], build: Callable[[Task, int], tm.Machine], **sizes: int
    ) -> NDArray[np.int64]:
        """Gives each machine so many clauses per class, and looks at what the client now has: [class] examples."""
        kept = {name: machine for name, machine in self.machines.items() if name not in sizes}
        self.machines = {
            name: resize(self.machines.get(name) or build(self.task, size), size)
            for name, size in sizes.items()
            if size
        } | kept
        per_class = np.bincount(labels, minlength=self.task.n_classes)
        self.holds = per_class > 0
        return per_class

    def mask_weights(self) -> None:
        for machine in self.machines.values():
            machine.weights[~self.holds] = 0

    def keep_trained(self) -> None:
        """The shared machine as it is votes, whatever comes in its place."""
        self.machines["trained"] = deepcopy(self.machines["shared"])

    def list_voters(self) -> dict[str, tm.Machine]:
        voters = dict(self.machines)
        if trained := voters.pop("trained", None):
            voters["shared"] = trained
        return voters

    def sum_votes(self, x: NDArray[np.uint8]) -> Sums:
        return {name: tm.clamped_sums(machine, x) for name, machine in self.list_voters().items()}

    def judge(self, examples: Examples, choose: Callable[[Sums], NDArray[np.int64]]) -> dict[str, float]:
        """Measures the machines' spans, by which `choose` may go; the accuracy of each machine, and of "both"."""
        sums = self.sum_votes(examples.x)
        self.spans = {name: tm.measure_span(each) for name, each in sums.items()}
        groups = {name: {name: each} for name, each in sums.items()} | {"both": sums}
        return {name: float(np.mean(choose(each) == examples.y)) for name, each in groups.items()}
