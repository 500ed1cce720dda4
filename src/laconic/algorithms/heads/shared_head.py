"""A head that all train: what travels of it, and what a server keeps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from laconic import linear
from laconic.algorithm import ClientId
from laconic.algorithms.heads.one_shot import ClassMeans
from laconic.wire import Bits, Count, Due, Expected, Ints, Message


class Hello(Message):
    holds: Bits  # [class]
    n_examples: Count


class Head(Message):
    holds: Bits  # [class] those that have rows
    rows: Ints  # [such class, 1 + feature]
    exponents: Ints  # [such class]


class Change(Message):
    holds: Bits | None  # [class] those held now; None: those that the head has rows of
    rows: Ints  # as the head's
    exponents: Ints


def expect_change(head: Head) -> Expected:
    fields = {"rows": head.rows, "exponents": head.exponents}
    same = {name: Due(array.shape, item_bytes=array.itemsize) for name, array in fields.items()}
    return same | {"holds": Due(head.holds.shape, may_lack=True)}


@dataclass
class Member:
    holds: NDArray[np.bool_]  # [class]
    n_examples: int


@dataclass
class Server:
    head: linear.Matrix  # [class, 1 + feature]
    speed: linear.Matrix  # likewise; momentum
    means: ClassMeans
    members: dict[ClientId, Member] = field(default_factory=dict)

    def move(self, changes: Mapping[ClientId, Change], rows: Sequence[linear.Matrix], momentum: float) -> None:
        """By the mean of these rows over those who hold a class, and some of the last move."""
        blocks = [((self.members[client].holds,), mine) for client, mine in zip(changes, rows, strict=True)]
        sizes = [self.members[client].n_examples for client in changes]
        mean, is_held = linear.average_blocks(self.head.shape, blocks, sizes)
        self.speed = np.where(is_held, momentum * self.speed + mean, self.speed)
        self.head = self.head + np.where(is_held, self.speed, 0)
        for client, change in changes.items():
            if change.holds is not None:
                self.members[client].holds = change.holds
