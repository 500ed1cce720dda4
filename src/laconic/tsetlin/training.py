"""Training: who speaks for and against which class, epoch by epoch, and the kernel that does it."""

import logging
from collections.abc import Callable, Iterator
from functools import cache, partial
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from laconic import trial
from laconic.tsetlin import balance, fuzzy_kernels, kernels
from laconic.tsetlin.compiling import is_cached
from laconic.tsetlin.failing import failing
from laconic.tsetlin.geometry import geometry
from laconic.tsetlin.machine import Machine
from laconic.tsetlin.packing import Packed, include_stride, pack
from laconic.tsetlin.threads import workers

logger = logging.getLogger(__name__)
_compiling = Lock()

TRIED_AT_ONCE = 50  # samples, in a trial
EVENTS_PER_CHUNK = 1 << 20  # bounds training's memory, whatever the number of epochs


def fit(
    machine: Machine,
    x: ArrayLike | Packed,
    y: ArrayLike,
    rng: np.random.Generator,
    *,
    epochs: int = 1,
    negatives: ArrayLike | None = None,
    threads: int = 1,
    on_epoch: Callable[[int], None] | None = None,
) -> None:
    """Trains in place on 0/1 samples and labels below n_classes; `on_epoch` hears the number of epochs done.

    Each sample also speaks against one other class, drawn from `negatives`: a set with all labels in it, by default all
    classes; evenly, or, if the machine is balanced, rather from those that vote for such samples (balance.py). Classes
    outside it stay untrained.

    The result depends on machine, data and rng alone. Classes train in parallel; a coalesced machine has one bank and
    trains on one thread.
    """
    if trial.is_under_way() and not isinstance(x, Packed):  # what was packed at once is trained at once
        _try_out(machine, np.asarray(x), np.asarray(y), rng, epochs, negatives)
    else:
        _fit(machine, x, y, rng, epochs=epochs, negatives=negatives, threads=threads, on_epoch=on_epoch)


def _try_out(
    machine: Machine,
    x: NDArray[Any],
    y: NDArray[Any],
    rng: np.random.Generator,
    epochs: int,
    negatives: ArrayLike | None,
) -> None:
    """As many samples as there is time for, a few at a time."""
    starts = [start for _ in range(epochs) for start in range(0, len(y), TRIED_AT_ONCE)]
    pieces = (slice(start, start + TRIED_AT_ONCE) for start in starts)
    few = slice(0, TRIED_AT_ONCE // 10)
    kind = f"samples of {machine.states.shape} automata"
    for some in trial.some(pieces, len(starts), kind, lambda _: few):
        _fit(machine, x[some], y[some], rng, epochs=1, negatives=negatives, threads=1, on_epoch=None)


def _fit(
    machine: Machine,
    x: ArrayLike | Packed,
    y: ArrayLike,
    rng: np.random.Generator,
    *,
    epochs: int,
    negatives: ArrayLike | None,
    threads: int,
    on_epoch: Callable[[int], None] | None,
) -> None:
    packed = pack(machine.shape, x)
    labels = _check_labels(y, len(packed), machine.n_classes)
    drawn_from = _check_negatives(negatives, labels, machine.n_classes)
    shape, is_flat = machine.shape, machine.shape.is_flat
    tables, stride = geometry(shape), include_stride(shape)
    train = _trainer(is_flat, machine.fuzzy is not None)
    feedback = kernels.Feedback(machine.threshold, 256.0 / machine.specificity, machine.boost, not machine.coalesced)
    n_banks = len(machine.states)
    random = rng.integers(0, 1 << 64, (n_banks, kernels.N_RANDOM), dtype=np.uint64)
    row = -(-machine.n_clauses // 32) * 32
    votes = np.zeros((machine.n_classes, row), np.int32)
    votes[:, : machine.n_clauses] = machine.votes
    banks = kernels.Bank(
        machine.n_clauses,
        shape.n_words,
        stride,
        machine.states.reshape(-1),
        votes.reshape(-1),
        row,
        machine.n_classes // n_banks,
        random.reshape(-1),
    )

    with workers(threads) as run:
        if machine.fuzzy is None:
            make_room: Callable[..., Any] = partial(kernels.make_room, tables)
            rule: tuple[Any, ...] = feedback, tables
        else:
            fails, limits = failing(shape), fuzzy_kernels.Limits(machine.fuzzy.failures, machine.fuzzy.literals)
            make_room = partial(fuzzy_kernels.make_space, tables, fails)
            rule = feedback, limits, tables, fails
        rooms = [make_room(machine.n_clauses, stride, is_flat=is_flat) for _ in range(threads)]
        is_watched = on_epoch is not None
        for done, events, votes_seen in _event_chunks(labels, drawn_from, machine, rng, epochs, is_watched=is_watched):

            def train_banks(span: tuple[int, int], events: kernels.Events = events) -> None:
                room = rooms.pop()
                train(packed.samples, events, banks, span, *rule, room)
                rooms.append(room)

            run(train_banks, [(0, n_banks)] if threads == 1 else _spans_by_work(events))
            if machine.rivalry is not None and votes_seen is not None:
                balance.remember(machine.rivalry, machine.threshold, votes_seen)
            weights = votes[:, : machine.n_clauses]
            machine.weights[...] = weights if machine.coalesced else np.abs(weights)
            if on_epoch is not None:
                on_epoch(done)


def _spans_by_work(events: kernels.Events) -> list[tuple[int, int]]:
    """A span for each bank, those with most events first, so that threads end together."""
    banks = np.argsort(-np.diff(events.starts), kind="stable").tolist()
    return [(bank, bank + 1) for bank in banks]


def _trainer(is_flat: bool, is_fuzzy: bool) -> Any:
    with _compiling:  # else threads that start together would each compile one
        return _make_trainer(is_flat, is_fuzzy)


@cache
def _make_trainer(is_flat: bool, is_fuzzy: bool) -> Any:
    train = fuzzy_kernels.make_trainer(is_flat) if is_fuzzy else kernels.make_trainer(is_flat)
    if not is_cached(train):
        logger.warning("laconic: compiling the Tsetlin kernels for this CPU; takes about 10 s, once")
    return train


def _check_labels(y: ArrayLike, n_samples: int, n_classes: int) -> NDArray[np.int32]:
    labels = np.asarray(y)
    if labels.shape != (n_samples,):
        raise ValueError(f"y has shape {list(labels.shape)}, [{n_samples}] was expected; give one label per sample")
    if labels.dtype.kind not in "iu":
        raise ValueError(f"y is {labels.dtype}, integers were expected; number the classes from 0")
    if n_samples and (labels.min() < 0 or labels.max() >= n_classes):
        raise ValueError(
            f"y holds labels from {labels.min()} to {labels.max()}, 0 to {n_classes - 1} were expected; "
            f"build the machine with n_classes={max(int(labels.max()) + 1, 1)} or leave those samples out"
        )
    return labels.astype(np.int32)


def _check_negatives(negatives: ArrayLike | None, labels: NDArray[np.int32], n_classes: int) -> NDArray[np.int32]:
    """Sorted; all classes by default."""
    if negatives is None:
        return np.arange(n_classes, dtype=np.int32)
    chosen = np.unique(np.asarray(negatives, np.int32))
    if not np.isin(chosen, np.arange(n_classes)).all() or not np.isin(labels, chosen).all():
        raise ValueError(
            f"negatives are {chosen.tolist()}, classes below {n_classes} with all labels {np.unique(labels).tolist()} "
            "among them were expected; np.unique(y) is the least"
        )
    return chosen


def _event_chunks(
    labels: NDArray[np.int32],
    negatives: NDArray[np.int32],
    machine: Machine,
    rng: np.random.Generator,
    epochs: int,
    *,
    is_watched: bool,
) -> Iterator[tuple[int, kernels.Events, balance.VotesSeen | None]]:
    """(epochs done, events, what training will see in them and is to be remembered).

    Several epochs are drawn at once, and trained at once where nobody watches.
    """
    if not isinstance(epochs, int | np.integer) or epochs < 0:
        raise ValueError(f"epochs is {epochs!r}; give a whole number of at least 0")
    balanced = machine.rivalry is not None and len(negatives) > 1
    at_once = max(1, (balance.EVENTS_PER_LOOK if balanced else EVENTS_PER_CHUNK) // max(1, 2 * len(labels)))
    for start in range(0, epochs, at_once):
        done, end = start, min(epochs, start + at_once)
        drawn = [_draw_epoch(labels, negatives, machine, rng) for _ in range(start, end)]
        for part in [[epoch] for epoch in drawn] if is_watched else [drawn]:
            done += len(part)
            order, target, other = (np.concatenate(column) for column in zip(*part, strict=True))
            classes = np.stack([target, other], axis=1).ravel()  # raised, lowered
            if machine.coalesced:
                sums, last = np.empty(classes.size, np.int32), slice(-2 * len(labels), None)
                events = kernels.Events(np.array([0, len(order)]), order, target, other, sums)
                seen = balance.VotesSeen(np.repeat(target, 2)[last], classes[last], sums[last])
            else:
                place = _place_by_class(classes, machine.n_classes, len(part), balanced=balanced)
                events, seen = _events_by_class(place, order, target, classes, machine.n_classes, len(part))
            yield done, events, seen if balanced and done == end else None


def _draw_epoch(
    labels: NDArray[np.int32], negatives: NDArray[np.int32], machine: Machine, rng: np.random.Generator
) -> tuple[NDArray[np.int32], ...]:
    """Samples in random order, their classes, and for each one other class (-1 if there is none)."""
    order = rng.permutation(len(labels)).astype(np.int32)
    target = labels[order]
    if len(negatives) < 2:
        return order, target, np.full_like(target, -1)
    if machine.rivalry is not None:
        return order, target, balance.draw_rivals(machine.rivalry, machine.threshold, target, negatives, rng)
    place = rng.integers(0, len(negatives) - 1, len(order), dtype=np.int32)
    return order, target, negatives[place + (place >= np.searchsorted(negatives, target))]


def _place_by_class(classes: NDArray[np.int32], n_classes: int, n_epochs: int, *, balanced: bool) -> NDArray[np.int64]:
    """One sort for all classes: small fleets train so briefly that ten searches would show."""
    if n_classes < 1 << 14:
        classes = classes.astype(np.int16)  # NumPy sorts these by counting
    if not balanced:
        return np.argsort(classes, kind="stable")
    epochs = enumerate(np.split(classes, n_epochs))
    place = np.concatenate([balance.order_by_class(part, n_classes) + k * len(part) for k, part in epochs])
    return place if n_epochs == 1 else place[np.argsort(classes[place], kind="stable")]


def _events_by_class(
    place: NDArray[np.int64],
    order: NDArray[np.int32],
    target: NDArray[np.int32],
    classes: NDArray[np.int32],
    n_classes: int,
    n_epochs: int,
) -> tuple[kernels.Events, balance.VotesSeen]:
    draw, ordered = place >> 1, classes[place]
    lowered, sums = (place & 1).astype(np.int32) - 1, np.empty((len(place), 2), np.int32)
    starts = np.searchsorted(ordered, np.arange(n_classes + 1))
    events = kernels.Events(starts, order[draw], -1 - lowered, lowered, sums.reshape(-1))
    last = slice(None) if n_epochs == 1 else draw >= len(order) // n_epochs * (n_epochs - 1)
    return events, balance.VotesSeen(target[draw], ordered, sums[:, 0], last)
