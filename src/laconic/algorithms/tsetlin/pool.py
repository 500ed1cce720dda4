"""A pool of clauses: what many clients offered, side by side in slots, and in which order others are told of it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from laconic import tsetlin as tm


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
