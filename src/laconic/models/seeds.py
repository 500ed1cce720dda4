"""Models with linear heads on features that are made from a seed, alone or beside clauses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from laconic import banks, linear
from laconic.models.base import PersonalModel, Scores
from laconic.models.machines import ClauseHeads


@dataclass
class SeedHead(PersonalModel):
    """Logits of one head on a bank's features."""

    kind = "seed-head"

    bank: banks.Choice
    head: linear.Matrix  # [held class, 1 + feature]
    holds: NDArray[np.bool_]  # [class]
    log_shares: linear.Matrix  # [held class] of the client's examples

    def scores(self, x: NDArray[np.uint8]) -> Scores:
        logits = linear.as_features(self.bank.read(x)) @ self.head.T + self.log_shares
        return linear.spread(logits, self.holds)


@dataclass
class SeededHeads(PersonalModel):
    """Heads on clauses, and beside them what the same heads say of a bank's features."""

    kind = "seeded-heads"

    heads: ClauseHeads
    bank: banks.Choice
    byte_layers: int  # the last so many layers are for the bank
    together: linear.Matrix | None  # [held class, 1 + feature] of the head that all train; None: it has not arrived
    alone: linear.Matrix | None  # [held class, 1 + feature of the wide bank] of the client's own

    def scores(self, x: NDArray[np.uint8]) -> Scores:
        heads, bits = self.heads, np.ascontiguousarray(x[..., : -self.byte_layers])
        logits = heads.own.logits(bits) + heads.log_shares
        if self.alone is not None:
            logits = (logits + linear.as_features(self.read_wide(x)) @ self.alone.T + heads.log_shares) / 2
        if self.together is not None:
            common = linear.as_features(self.read_bank(x)) @ self.together.T + heads.log_shares
            common = common if heads.pooled is None else common + heads.pooled.logits(bits)
            logits = common + heads.blend * logits
        return linear.spread(logits, heads.holds)

    def read_bank(self, x: NDArray[np.uint8]) -> linear.Matrix:
        """[example, feature] for the head that all train."""
        return self.bank.read(x, self.byte_layers) if self.bank.n_features else np.zeros((len(x), 0))

    def read_wide(self, x: NDArray[np.uint8]) -> linear.Matrix:
        """[example, feature of the wide bank] for the client's own head."""
        return self.bank.wide.read(x, self.byte_layers)
