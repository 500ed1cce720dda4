"""How a figure is measured again: settings of a run at three scales, and what of the run is the figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Scale = Literal["tiny", "small", "paper"]
SCALES: tuple[Scale, ...] = ("tiny", "small", "paper")

# tiny: embedded digits and two rounds; shows that a command works, and nothing of a paper
TINY = ("data.name=digits", "data.booleanize=auto", "data.clients=4", "rounds=2", "evaluate_every=1")
TINY_MACHINES: tuple[str, ...] = (
    *TINY,
    "method.patch=3",
    "method.n_clauses=20",
    "method.threshold=10",
    "method.epochs=1",
)
TINY_NETWORKS: tuple[str, ...] = (*TINY, "method.training.model=cnn-small", "method.training.epochs=1")


@dataclass(frozen=True)
class Recipe:
    run: str  # folder of the runs, which rows may share
    settings: tuple[str, ...]  # on the paper's scale, as --set takes them
    small: tuple[str, ...]  # what a smaller scale has otherwise
    tiny: tuple[str, ...]
    measure: str = "best"  # see measures.py
    core_hours: float = 0.0  # of one seed on the paper's scale, roughly
    small_hours: float = 0.0

    def settings_at(self, scale: Scale) -> list[str]:
        return [*self.settings, *{"tiny": self.tiny, "small": self.small, "paper": ()}[scale]]

    @property
    def rounds(self) -> int:
        """The paper's."""
        return int(self.setting("rounds"))

    @property
    def data(self) -> str:
        return self.setting("data.name").partition("@")[0]

    def setting(self, key: str) -> str:
        return next(value for each in self.settings for name, _, value in [each.partition("=")] if name == key)

    def hours_at(self, scale: Scale) -> float:
        return {"tiny": 0.01, "small": self.small_hours, "paper": self.core_hours}[scale]


@dataclass(frozen=True)
class Computed:
    """A figure that follows from sizes; nothing is run."""

    ours: float
    how: str


@dataclass(frozen=True)
class Impossible:
    why: str


Way = Recipe | Computed | Impossible
