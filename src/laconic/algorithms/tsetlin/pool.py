"""A pool of clauses: what many clients offered, side by side in slots, and in which order others are told of it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from laconic import linear
from laconic import tsetlin as tm
from laconic.algorithm import count_affordable
from laconic.wire import Bits, Count, CountArray, Due, Expected, Ints, Message

BLENDS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)  # of the own model, tried on validation examples
LEAST_TOLD = 20  # clauses a round; with fewer, a pool would take too long to arrive


class Offer(Message):
    clauses: Bits  # [clause, literal]
    scales: Ints  # [clause, 2] what is much for it, see tsetlin.clauses
    holds: Bits  # [class]
    n_examples: Count
    n_val: Count


class Clauses(Message):
    is_new: Bits  # [slot of the pool]
    clauses: Bits  # [new slot, literal]
    scales: Ints  # [new slot, 2]


class Head(Message):
    holds: Bits  # [class] those that have rows
    slots: Bits | None  # [slot] those that have columns; None: all
    rows: Ints  # [such class, 1 + seed feature + such slot]
    exponents: Ints  # [such class]
    blend: float


class Change(Message):
    holds: Bits | None  # [class] those held now; None: those that the head has rows of
    rows: Ints  # as the head's
    exponents: Ints
    n_right: CountArray  # [blend] validation examples guessed right with each of BLENDS


def expect_change(head: Head) -> Expected:
    fields = {"rows": head.rows, "exponents": head.exponents}
    same = {name: Due(array.shape, item_bytes=array.itemsize) for name, array in fields.items()}
    return same | {"holds": Due(head.holds.shape, may_lack=True), "n_right": Due((len(BLENDS),))}


@dataclass
class Pool:
    clauses: NDArray[np.bool_]  # [slot, literal]
    scales: NDArray[np.int8]  # [slot, 2]
    owners: NDArray[np.int64]  # [slot]
    serials: NDArray[np.int64]  # [slot] of its last writing; from 1, and each later one is higher
    n_writings: int = 0


def empty_pool(n_literals: int) -> Pool:
    nobody = np.zeros(0, np.int64)
    return Pool(np.zeros((0, n_literals), np.bool_), np.zeros((0, 2), np.int8), nobody, nobody)


def write_offer(pool: Pool, client: int, offered: tm.Clauses) -> NDArray[np.int64]:
    """In the client's old slots, if it has any, and in new ones; those left over fall silent. Returns all of them."""
    slots = np.flatnonzero(pool.owners == client)
    n_offered = len(offered.includes)
    n_more = max(0, n_offered - len(slots))
    slots = np.append(slots, len(pool.owners) + np.arange(n_more))
    pool.clauses = np.pad(pool.clauses, ((0, n_more), (0, 0)))
    pool.scales = np.pad(pool.scales, ((0, n_more), (0, 0)))
    pool.owners, pool.serials = (np.pad(old, (0, n_more)) for old in (pool.owners, pool.serials))
    pool.clauses[slots], pool.scales[slots] = False, 0
    pool.clauses[slots[:n_offered]], pool.scales[slots[:n_offered]] = offered
    pool.owners[slots], pool.serials[slots] = client, pool.n_writings + 1 + np.arange(len(slots))
    pool.n_writings += len(slots)
    return slots


def choose_news(pool: Pool, told: int, n_told: int, n_known: int) -> NDArray[np.bool_]:
    """[slot] for who has all up to the serial `told`: the next n_told, as long as it knows no more than n_known."""
    is_new = np.zeros(len(pool.serials), np.bool_)
    order = np.argsort(pool.serials)[:n_known]
    is_new[order[pool.serials[order] > told][:n_told]] = True
    return is_new


def plan_telling(
    n_slots: int, n_bytes: int, list_messages: Callable[[int, int], Iterable[Message]], *, may_cut: bool
) -> tuple[int, int]:
    """Slots that a client may know, and be told in a round: all, or what so many bytes leave; 0: no limit.

    The pool arrives in as many rounds as that takes; only if it may be cut are the latest slots left out, where even
    that is too much. list_messages(known, told): the largest of a round.
    """
    if not n_bytes:
        return n_slots, n_slots
    n_known, least = n_slots, min(LEAST_TOLD, n_slots)
    sizes = range(least + 1, n_slots + 1)
    if may_cut:
        n_known = least + count_affordable(n_bytes, sizes, lambda n: list_messages(n, least))
    n_told = least + count_affordable(n_bytes, sizes, lambda n: list_messages(n_known, n))
    return n_known, min(n_known, n_told)


def list_largest(
    n_classes: int, n_literals: int, n_offered: int, n_slots: int, n_told: int, n_columns: int, limits: linear.Limits
) -> list[Message]:
    """An offer of so many clauses, news of n_told of all the slots, a head of so many columns and its change."""
    offered, told = (np.zeros((n, n_literals), np.bool_) for n in (n_offered, n_told))
    per_class, slots = np.zeros(n_classes, np.int8), np.zeros(n_slots, np.bool_)
    rows = np.zeros((n_classes, n_columns), np.int8)
    return [
        Offer(offered, np.zeros((n_offered, 2), np.int8), per_class > 0, 0, 0),
        Clauses(slots, told, np.zeros((n_told, 2), np.int8)),
        Head(per_class > 0, slots, rows, per_class, 0.0).limited(rows=limits.head),
        Change(per_class > 0, rows, per_class, np.zeros(len(BLENDS), np.int64)).limited(rows=limits.change),
    ]
