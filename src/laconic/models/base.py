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

    def renew(self, x: NDArray[Any]) -> PersonalModel:
        """With statistics of its inputs, where it has such, as these examples of its client give them."""
        return self

    def chances(self, x: NDArray[Any]) -> NDArray[np.float64]:
        """[example, class] that add up to 1 and rise with the scores; as votes are not calibrated, nor are these."""
        scores = self.scores(x).astype(np.float64) / self.unit
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        likely: NDArray[np.float64] = shares / shares.sum(axis=1, keepdims=True)
        return likely

    @property
    def unit(self) -> float:
        """By so much a score must be higher for a class to be e times as likely."""
        return 1.0

    def classify(self, x: NDArray[Any]) -> NDArray[np.int64]:
        """[example] classes."""
        winners: NDArray[np.int64] = self.scores(x).argmax(axis=1)
        return winners
