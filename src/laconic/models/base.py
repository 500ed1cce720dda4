"""What a client predicts by, whatever method made it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.number[Any]]


class PersonalModel(ABC):
    """A dataclass of plain data and machines; a kind of its own in the file of a model, see file.py."""

    kind: ClassVar[str] = ""

    @abstractmethod
    def scores(self, x: NDArray[Any]) -> Scores:
        """[example, class] the higher the likelier; -inf where a class is not to be chosen."""

    def classify(self, x: NDArray[Any]) -> NDArray[np.int64]:
        """[example] classes."""
        winners: NDArray[np.int64] = self.scores(x).argmax(axis=1)
        return winners
