"""The clauses that can match at all, sorted by window width and list length.

Neighbours then take the same branches, and the loops over clauses are hardly ever mispredicted. The order is a matter
of speed only, so it is made anew every few events; in between, clauses whose window changed its width are *strays*,
listed once more at the end.
"""

from typing import NamedTuple

import numpy as np
from numba import int64
from numpy.typing import NDArray

from laconic.tsetlin.compiling import kernel
from laconic.tsetlin.vectors import keep_apart
from laconic.tsetlin.windows import NEVER, WIDE

WIDTHS, STRAY = 7, 8  # of Agenda.listed: the width under which a clause is listed (WIDE and more: WIDE), and a flag
LIST_KEYS = 19  # lists of 18 groups and more sort together
N_KEYS = 1 + 4 * LIST_KEYS


class Agenda(NamedTuple):
    order: NDArray[np.int32]  # clauses by key, then strays
    listed: NDArray[np.uint8]  # per clause: under which width it was sorted, and whether it is a stray
    keys: NDArray[np.uint8]  # per clause, room to sort: by width, then by the length of the list; 0: never matches
    starts: NDArray[np.int32]  # per key


def make_agenda(n_clauses: int) -> Agenda:
    order, starts = np.zeros(2 * n_clauses + 1, np.int32), np.zeros(N_KEYS, np.int32)
    return Agenda(order, np.zeros(n_clauses, np.uint8), np.zeros(n_clauses, np.uint8), starts)


@kernel
def sort_agenda(agenda, windows, n_clauses):
    """Counting sort by key; the number of clauses on the agenda."""
    keep_apart()
    order, listed, keys, starts = agenda.order, agenda.listed, agenda.keys, agenda.starts
    for key in range(N_KEYS):
        starts[key] = 0
    for clause in range(n_clauses):
        width, n_groups = windows.width[clause], windows.n_groups[clause]
        key = 1 + (min(width, WIDE) - 1) * LIST_KEYS + min(n_groups, LIST_KEYS - 1)
        keys[clause] = key if width != NEVER else 0
        listed[clause] = min(width, WIDE)
        starts[keys[clause]] += 1
    total = 0
    for key in range(1, N_KEYS):
        count = starts[key]
        starts[key] = total
        total += count
    starts[0] = n_clauses  # clauses that never match go behind the agenda
    for clause in range(n_clauses):
        key = keys[clause]
        order[starts[key]] = clause
        starts[key] += 1
    return int64(total)


@kernel
def add_strays(n_changed, n_listed, windows, agenda):
    """Lists changed clauses once more if their width is a new one; how many are listed now."""
    keep_apart()
    for i in range(n_changed):
        clause = windows.changed[i]
        width, listed = min(windows.width[clause], WIDE), agenda.listed[clause]
        is_stray = (width != NEVER) & (width != listed & WIDTHS) & (listed < STRAY)
        agenda.order[n_listed] = clause
        agenda.listed[clause] = listed | (STRAY if is_stray else 0)
        n_listed += 1 if is_stray else 0
    return n_listed
