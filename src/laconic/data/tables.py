"""How many examples of each label each client gets: tables [clients, classes], one rule for each kind of partition."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # partition.py needs this file
    from laconic.data.datasets import Dataset
    from laconic.data.partition import Partitioning

Table = NDArray[np.int64]
Weights = NDArray[np.float64]

_MAX_REDRAWS = 50
_MAX_BALANCINGS = 300


def draw_train_table(dataset: Dataset, settings: Partitioning, rng: np.random.Generator, phase: int) -> Table:
    """The training examples each client gets; phase 1 is after a drift."""
    n_examples, n_due = len(dataset.y_train), settings.clients * settings.min_samples
    if n_due > n_examples:
        raise ValueError(
            f"{settings.clients} clients with >= {settings.min_samples} training examples need {n_due}; "
            f"{dataset.name} has {n_examples}. Use data.clients <= {max(1, n_examples // settings.min_samples)}"
            + (f" or data.min_samples <= {n_examples // settings.clients}." if settings.clients <= n_examples else ".")
        )
    table = RULES[settings.partition](
        np.bincount(dataset.y_train, minlength=len(dataset.classes)), settings, rng, phase
    )
    sizes = table.sum(axis=1)
    if (n_short := np.count_nonzero(sizes < settings.min_samples)) > 0:
        raise ValueError(
            f"{settings.partition} over {settings.clients} clients leaves {n_short} clients with "
            f"< {settings.min_samples} training examples (smallest: {sizes.min()}). "
            f"Use fewer data.clients or data.min_samples <= {max(1, sizes.min())}."
        )
    return table


def draw_test_table(train: Table, y_test: NDArray[np.int64], rng: np.random.Generator) -> Table:
    """Test examples in the proportions of the training table, and one at least for every client where there are any."""
    n_train, n_test = train.sum(axis=0), np.bincount(y_test, minlength=train.shape[1])
    table = apportion(train / np.maximum(n_train, 1), np.where(n_train > 0, n_test, 0), rng)
    sizes = table.sum(axis=1)
    for k in np.flatnonzero(sizes == 0):
        for label in np.argsort(-train[k], kind="stable")[: np.count_nonzero(train[k])]:
            spare = np.where(sizes > 1, table[:, label], 0)
            if spare.max() > 0:
                donor = spare.argmax()
                table[[donor, k], label] += [-1, 1]
                sizes[[donor, k]] += [-1, 1]
                break
    return table


def apportion(weights: Weights, totals: Table, rng: np.random.Generator) -> Table:
    """Whole numbers next to weights * totals, each column with its total; equal remainders are settled at random."""
    exact = weights * totals
    whole = np.floor(exact + 1e-9)
    remainders = np.where(weights > 0, exact - whole, -1) + 1e-9 * rng.random(weights.shape)
    rank = np.argsort(np.argsort(-remainders, axis=0), axis=0)
    table: Table = (whole + (rank < totals - whole.sum(axis=0))).astype(np.int64)
    return table


def _share_alike(n_of: Table, settings: Partitioning, rng: np.random.Generator, _phase: int) -> Table:
    """Like cards: the examples label by label, one to each client in turn."""
    turns = rng.permutation(settings.clients)
    owner = turns[np.arange(n_of.sum()) % settings.clients]
    return _tabulate(owner, np.repeat(np.arange(len(n_of)), n_of), settings.clients, len(n_of))


def _draw_dirichlet(n_of: Table, settings: Partitioning, rng: np.random.Generator, _phase: int) -> Table:
    """For each label a Dirichlet draw over clients; of at most 50 tables the one that leaves the fewest too small."""
    best: tuple[float, Table, Weights] | None = None
    for _ in range(_MAX_REDRAWS):
        wish = draw_log_dirichlet(settings.clients, len(n_of), settings.alpha, rng)
        table = apportion(np.exp(wish), n_of, rng)
        lack = float(np.maximum(settings.min_samples - table.sum(axis=1), 0).sum())
        if best is None or lack < best[0]:
            best = lack, table, wish
        if lack == 0:
            break
    assert best
    return _feed_smallest(*best[1:], settings.min_samples)


def draw_log_dirichlet(n_clients: int, n_labels: int, alpha: float, rng: np.random.Generator) -> Weights:
    """Logarithms [clients, labels] of one Dirichlet draw over clients for each label.

    In logarithms, because for alpha around 0.01 most shares are below the smallest float, and yet
    `dirichlet-equal` needs to know which of two such shares is the larger.
    """
    shape = (n_clients, n_labels)
    alpha = min(max(alpha, 1e-6), 1e9)  # beyond, shares are all or nothing, or all the same, and floats run out
    # a gamma variate of shape alpha is one of shape alpha + 1 times a uniform one to the power 1 / alpha
    log_gamma = np.log(rng.gamma(alpha + 1, size=shape)) + np.log1p(-rng.random(shape)) / alpha
    scaled: Weights = log_gamma - _log_sum_exp(log_gamma, axis=0)
    return scaled


def _log_sum_exp(a: Weights, axis: int) -> Weights:
    top = a.max(axis=axis, keepdims=True)
    total: Weights = top + np.log(np.exp(a - top).sum(axis=axis, keepdims=True))
    return total


def _feed_smallest(table: Table, wish: Weights, min_samples: int) -> Table:
    """Clients below min_samples get what they wish for most from its largest holder that can spare some."""
    sizes = table.sum(axis=1)
    for k in np.flatnonzero(sizes < min_samples):
        for label in np.argsort(-wish[k], kind="stable"):
            # ends: each turn either feeds k or leaves a donor nothing to spare
            while (need := min_samples - sizes[k]) > 0:
                spare = np.minimum(table[:, label], sizes - min_samples)
                donor = spare.argmax()
                if (n_moved := min(need, spare[donor])) <= 0:
                    break
                table[[donor, k], label] += [-n_moved, n_moved]
                sizes[[donor, k]] += [-n_moved, n_moved]
    return table


def _draw_equal_dirichlet(n_of: Table, settings: Partitioning, rng: np.random.Generator, _phase: int) -> Table:
    """Dirichlet draws, then rows and columns scaled in turn until clients have equally many and all is dealt out."""
    sizes = apportion(np.full((settings.clients, 1), 1 / settings.clients), n_of.sum(keepdims=True), rng)[:, 0]
    wish = draw_log_dirichlet(settings.clients, len(n_of), settings.alpha, rng)
    log_sizes, log_n_of = np.log(sizes)[:, None], np.log(np.maximum(n_of, 1e-300))
    for _ in range(_MAX_BALANCINGS):
        wish += log_sizes - _log_sum_exp(wish, axis=1)
        excess = _log_sum_exp(wish, axis=0) - log_n_of
        wish -= excess
        if np.abs(excess).max() < 1e-6:
            break
    # columns are right; rows may still be too long where very few clients wish for most labels
    too_long = np.maximum(_log_sum_exp(wish, axis=1) - log_sizes, 0)
    return round_table(np.exp(wish - too_long), wish, sizes, n_of)


def round_table(exact: Weights, wish: Weights, row_totals: Table, column_totals: Table) -> Table:
    """Whole numbers near exact (whose rows and columns are not above their totals) with just these totals."""
    table: Table = np.floor(exact + 1e-9).astype(np.int64)
    rows, columns = row_totals - table.sum(axis=1), column_totals - table.sum(axis=0)
    remainders = exact - table
    for cell in np.argsort(-remainders, axis=None, kind="stable"):
        k, label = divmod(cell, len(columns))
        if remainders[k, label] > 0 and rows[k] > 0 and columns[label] > 0:
            table[k, label] += 1
            rows[k] -= 1
            columns[label] -= 1
    for k in np.flatnonzero(rows):
        for label in np.argsort(-wish[k], kind="stable"):
            n_given = min(rows[k], columns[label])
            table[k, label] += n_given
            rows[k] -= n_given
            columns[label] -= n_given
    return table


def _cut_shards(n_of: Table, settings: Partitioning, rng: np.random.Generator, _phase: int) -> Table:
    """Examples sorted by label, cut into clients * labels shards of one size, so many to each client at random.

    So a client has about `labels` labels: fewer if it draws two shards of one, more if a cut is not between labels.
    """
    n_shards, n_examples = settings.clients * settings.labels, int(n_of.sum())
    if n_shards > n_examples:
        raise ValueError(
            f"data.labels = {settings.labels} makes {n_shards} shards of {n_examples} examples. "
            f"Use data.labels <= {n_examples // settings.clients}."
        )
    y = np.repeat(np.arange(len(n_of)), n_of)
    shard = np.arange(n_examples) * n_shards // n_examples
    owner = rng.permutation(n_shards) // settings.labels
    return _tabulate(owner[shard], y, settings.clients, len(n_of))


def _slide_windows(n_of: Table, settings: Partitioning, rng: np.random.Generator, phase: int) -> Table:
    """Client k has the labels k * labels, k * labels + 1, ... (mod classes), as in pFed1BS, evenly with other holders.

    Examples of labels in nobody's window are left out. After a drift client k has the window of client k + 1.
    """
    if settings.labels > len(n_of):
        raise ValueError(f"data.labels = {settings.labels} must be <= {len(n_of)}, the number of classes.")
    starts = (np.arange(settings.clients) + phase) * settings.labels
    is_holder = np.zeros((settings.clients, len(n_of)))
    np.put_along_axis(is_holder, (starts[:, None] + np.arange(settings.labels)) % len(n_of), 1, axis=1)
    n_holders = is_holder.sum(axis=0)
    return apportion(is_holder / np.maximum(n_holders, 1), np.where(n_holders > 0, n_of, 0), rng)


def _draw_sizes(n_of: Table, settings: Partitioning, rng: np.random.Generator, phase: int) -> Table:
    """Sizes from one Dirichlet draw, labels at random."""
    sizes = _draw_dirichlet(n_of.sum(keepdims=True), settings, rng, phase)[:, 0]
    y = rng.permutation(np.repeat(np.arange(len(n_of)), n_of))
    return _tabulate(np.repeat(np.arange(len(sizes)), sizes), y, settings.clients, len(n_of))


def _tabulate(owner: Table, y: Table, n_clients: int, n_labels: int) -> Table:
    return np.bincount(owner * n_labels + y, minlength=n_clients * n_labels).reshape(n_clients, n_labels)


RULES: dict[str, Callable[[Table, Partitioning, np.random.Generator, int], Table]] = {
    "iid": _share_alike,
    "dirichlet": _draw_dirichlet,
    "dirichlet-equal": _draw_equal_dirichlet,
    "shards": _cut_shards,
    "windows": _slide_windows,
    "quantity": _draw_sizes,
}
