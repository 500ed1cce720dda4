"""A bank for tables: columns, sums and differences of two columns, each against a threshold, all drawn from a seed."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from laconic.banks.photographs import draw

MIDDLE, ONE = 128, 32  # a column's mean and standard deviation as bytes; features are whole 32nds
SEED = 11


@dataclass(frozen=True, eq=False)
class TableBank:
    first: NDArray[np.int64]  # [feature] a column
    second: NDArray[np.int64]  # and another
    weights: NDArray[np.int32]  # [feature] of the other: 0, 1 or -1
    thresholds: NDArray[np.int32]

    @property
    def n_features(self) -> int:
        return len(self.first)

    def read(self, rows: NDArray[np.uint8]) -> NDArray[np.int8]:
        """[row, feature] how far above its threshold; a standard deviation or more is 1."""
        values = rows.reshape(len(rows), -1).astype(np.int32) - MIDDLE
        above = values[:, self.first] + self.weights * values[:, self.second] - self.thresholds
        return above.clip(-ONE, ONE).astype(np.int8)


@cache
def build_table(n_columns: int, n_features: int) -> TableBank:
    """Half of them on one column, half on two; a smaller bank is the beginning of a larger one."""
    numbers = draw(np.random.PCG64(SEED), 8 * n_features, 1 << 30).reshape(n_features, 8)
    weights = np.array([0, 1, 0, -1], np.int32)[numbers[:, 2] % 4]
    thresholds = (numbers[:, 3:7] % (ONE + 1)).sum(axis=1) - 2 * ONE  # nearly normal
    return TableBank(numbers[:, 0] % n_columns, numbers[:, 1] % n_columns, weights, thresholds.astype(np.int32))
