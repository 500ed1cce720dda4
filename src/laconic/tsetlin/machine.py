"""A Tsetlin Machine: plain arrays, and the functions that build, train, read and write them."""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from laconic.tsetlin import balance, inference, kernels
from laconic.tsetlin.geometry import SLOTS_PER_WORD, Shape, aligned, geometry
from laconic.tsetlin.packing import Packed, include_stride, pack

logger = logging.getLogger(__name__)
_compiling = Lock()

INCLUDE = 128  # an automaton in this state or above includes its literal
FRESH = INCLUDE - 1
EVENTS_PER_CHUNK = 1 << 20  # bounds training's memory, whatever the number of epochs


@dataclass
class Machine:
    """Weighted Tsetlin Machine; a bank of clauses per class, or one shared by all classes (coalesced)."""

    shape: Shape
    threshold: int  # T: votes beyond which a class needs no more training
    specificity: float  # s: the larger, the more literals a clause keeps
    boost: bool  # true literals of a matching clause are reinforced every time
    coalesced: bool
    states: NDArray[np.uint8]  # [bank, clause, slot]
    weights: NDArray[np.int32]  # [class, clause]; multi-class: size of the vote, coalesced: the signed vote
    rivalry: NDArray[np.float64] | None  # [label, class] of balanced machines, see balance.py

    @property
    def n_classes(self) -> int:
        return len(self.weights)

    @property
    def n_clauses(self) -> int:
        """Per bank."""
        return int(self.weights.shape[1])

    @property
    def votes(self) -> NDArray[np.int32]:
        """[class, clause] what a clause adds to a class when it fires; multi-class: odd clauses speak against it."""
        if self.coalesced:
            return self.weights
        return self.weights * np.where(np.arange(self.n_clauses) % 2, -1, 1).astype(np.int32)


def build(
    shape: Shape,
    n_classes: int,
    n_clauses: int,
    *,
    threshold: int = 1000,
    specificity: float = 5.0,
    boost: bool = True,
    balanced: bool = False,
) -> Machine:
    """A fresh machine with n_clauses clauses per class."""
    _check_sizes(n_classes, n_clauses, threshold, specificity)
    weights = np.ones((n_classes, n_clauses), np.int32)
    states = _fresh_states(shape, n_classes, n_clauses)
    rivalry = balance.start_rivalry(n_classes) if balanced else None
    return Machine(shape, int(threshold), float(specificity), bool(boost), False, states, weights, rivalry)


def build_coalesced(
    shape: Shape,
    n_classes: int,
    n_clauses: int,
    rng: np.random.Generator,
    *,
    threshold: int = 1000,
    specificity: float = 5.0,
    boost: bool = True,
    balanced: bool = False,
) -> Machine:
    """A fresh machine whose n_clauses clauses serve all classes, with weights of +1 or -1 at random."""
    _check_sizes(n_classes, n_clauses, threshold, specificity)
    weights = rng.integers(0, 2, (n_classes, n_clauses), dtype=np.int32) * 2 - 1
    states = _fresh_states(shape, 1, n_clauses)
    rivalry = balance.start_rivalry(n_classes) if balanced else None
    return Machine(shape, int(threshold), float(specificity), bool(boost), True, states, weights, rivalry)


def _check_sizes(n_classes: int, n_clauses: int, threshold: int, specificity: float) -> None:
    for name, value in (("n_classes", n_classes), ("n_clauses", n_clauses), ("threshold", threshold)):
        if not isinstance(value, int | np.integer) or value < 1:
            raise ValueError(f"{name} is {value!r}; give a whole number of at least 1")
    if threshold > 1 << 30:
        raise ValueError(f"threshold is {threshold}; give at most {1 << 30}, votes are 32-bit numbers")
    if not 1 <= specificity < np.inf:
        raise ValueError(f"specificity is {specificity!r}; give a number of at least 1 (5 is common)")


def _fresh_states(shape: Shape, n_banks: int, n_clauses: int) -> NDArray[np.uint8]:
    clause = np.zeros(shape.n_words * SLOTS_PER_WORD, np.uint8)
    clause[shape.literal_slots] = FRESH  # unused slots stay at 0 for good
    states = aligned((n_banks, n_clauses, len(clause)), np.uint8)
    states[...] = clause
    return states


# ---------------------------------------------------------------- training
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
    packed = pack(machine.shape, x)
    labels = _check_labels(y, len(packed), machine.n_classes)
    drawn_from = _check_negatives(negatives, labels, machine.n_classes)
    shape, is_flat = machine.shape, machine.shape.is_flat
    tables, stride = geometry(shape), include_stride(shape)
    train = _trainer(is_flat)
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
    rooms = [kernels.make_room(tables, machine.n_clauses, stride, is_flat=is_flat) for _ in range(max(1, threads))]

    with _workers(threads) as run:
        is_watched = on_epoch is not None
        for done, events, votes_seen in _event_chunks(labels, drawn_from, machine, rng, epochs, is_watched=is_watched):

            def train_banks(span: tuple[int, int], events: kernels.Events = events) -> None:
                room = rooms.pop()
                train(packed.samples, events, banks, span, feedback, tables, room)
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


def _trainer(is_flat: bool) -> Any:
    with _compiling:  # else threads that start together would each compile one
        return _make_trainer(is_flat)


@cache
def _make_trainer(is_flat: bool) -> Any:
    train = kernels.make_trainer(is_flat)
    if not any(Path(train.stats.cache_path).glob(f"{Path(kernels.__file__).stem}.*.nbi")):
        logger.warning("laconic: compiling the Tsetlin kernels for this CPU; takes about 10 s, once")
    return train


def _check_labels(y: ArrayLike, n_samples: int, n_classes: int) -> NDArray[np.int32]:
    labels = np.asarray(y)
    if labels.shape != (n_samples,):
        raise ValueError(f"y has shape {list(labels.shape)}, [{n_samples}] was due; give one label per sample")
    if labels.dtype.kind not in "iu":
        raise ValueError(f"y is {labels.dtype}, integers were due; number the classes from 0")
    if n_samples and (labels.min() < 0 or labels.max() >= n_classes):
        raise ValueError(
            f"y holds labels from {labels.min()} to {labels.max()}, 0 to {n_classes - 1} were due; "
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
            "among them were due; np.unique(y) is the least"
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


@contextmanager
def _workers(threads: int) -> Iterator[Callable[[Callable[[Any], None], Any], None]]:
    """A way to run a function over items, on so many threads."""
    if not isinstance(threads, int | np.integer) or threads < 1:
        raise ValueError(f"threads is {threads!r}; give a whole number of at least 1")

    def run_here(task: Callable[[Any], None], items: Any) -> None:
        for item in items:
            task(item)

    if threads == 1:
        yield run_here
        return

    with ThreadPoolExecutor(threads) as pool:

        def run(task: Callable[[Any], None], items: Any) -> None:
            for _ in pool.map(task, items):
                pass

        yield run


# ---------------------------------------------------------------- inference
def class_sums(machine: Machine, x: ArrayLike | Packed, *, threads: int = 1) -> NDArray[np.int32]:
    """[sample, class] votes, not clamped, and a balanced machine's bias; the largest is the prediction."""
    packed = pack(machine.shape, x)
    sums = np.zeros((len(packed), machine.n_classes), np.int32)
    if machine.rivalry is not None:
        sums += balance.choose_bias(machine.rivalry)

    def add_votes(span: tuple[int, int], program: inference.Program, block: inference.Block) -> None:
        bank, place = np.divmod(program.clauses, np.int32(machine.n_clauses))
        if machine.coalesced:
            votes, per_clause = machine.votes.T[place], machine.n_classes
        else:
            votes, per_clause = machine.votes[bank, place], 1
        ballot = inference.Ballot(machine.n_classes, per_clause, bank, np.ascontiguousarray(votes).reshape(-1))
        inference.add_votes(packed.samples, span, program, block, ballot, sums)

    _evaluate(machine, packed, threads, add_votes)
    return sums


def clause_outputs(machine: Machine, x: ArrayLike | Packed, *, threads: int = 1) -> NDArray[np.bool_]:
    """[sample, bank, clause] whether a clause fires; empty clauses do not."""
    packed = pack(machine.shape, x)
    outputs = np.zeros((len(packed), len(machine.states) * machine.n_clauses), np.bool_)

    def write_outputs(span: tuple[int, int], program: inference.Program, block: inference.Block) -> None:
        inference.write_outputs(packed.samples, span, program, block, outputs)

    _evaluate(machine, packed, threads, write_outputs)
    return outputs.reshape(len(packed), len(machine.states), machine.n_clauses)


def clause_counts(machine: Machine, x: ArrayLike | Packed, *, threads: int = 1) -> NDArray[np.int32]:
    """[sample, bank, clause] on how many patches a clause holds; of flat samples 1 where it fires."""
    if machine.shape.is_flat:
        return clause_outputs(machine, x, threads=threads).astype(np.int32)
    packed = pack(machine.shape, x)
    counts = np.zeros((len(packed), len(machine.states) * machine.n_clauses), np.int32)

    def write_counts(span: tuple[int, int], program: inference.Program, block: inference.Block) -> None:
        inference.write_counts(packed.samples, span, program, block, counts)

    _evaluate(machine, packed, threads, write_counts)
    return counts.reshape(len(packed), len(machine.states), machine.n_clauses)


def _evaluate(machine: Machine, packed: Packed, threads: int, visit: Callable[..., None]) -> None:
    """Calls visit(span of samples, program, room) until every clause has met every sample."""
    tables, stride = geometry(machine.shape), include_stride(machine.shape)
    n_clauses = len(machine.states) * machine.n_clauses
    starts = range(0, n_clauses, inference.CLAUSES_PER_PROGRAM)
    with _workers(threads) as run:
        per_program = min(n_clauses, inference.CLAUSES_PER_PROGRAM)
        rooms = [inference.make_block(tables, per_program, machine.n_classes) for _ in range(threads)]
        size, n_samples = rooms[0].size, len(packed)
        counts = inference.count_places(machine.shape, packed.samples)
        share = -(-n_samples // (size * threads)) * size  # whole blocks
        spans = [(first, min(n_samples, first + share)) for first in range(0, n_samples, max(1, share))]
        for first in starts:
            program = inference.compile_clauses(tables, machine.states, first, stride, counts)

            def visit_span(span: tuple[int, int], program: inference.Program = program) -> None:
                room = rooms.pop()
                visit(span, program, room)
                rooms.append(room)

            run(visit_span, spans)


# ---------------------------------------------------------------- reading and writing clauses
def literal_states(machine: Machine) -> NDArray[np.uint8]:
    """[bank, clause, literal] automaton states, features first, then their negations."""
    return machine.states[:, :, machine.shape.literal_slots]


def include_bits(machine: Machine) -> NDArray[np.bool_]:
    """[bank, clause, literal] which literals a clause includes."""
    bits: NDArray[np.bool_] = literal_states(machine) >= INCLUDE
    return bits


def clause_activity(machine: Machine) -> NDArray[np.bool_]:
    """[bank, clause] whether a clause includes anything."""
    active: NDArray[np.bool_] = np.any(machine.states >= INCLUDE, axis=2)
    return active


def load_include_bits(
    machine: Machine, bits: ArrayLike, *, include_state: int = 128, exclude_state: int = 95, keep_depth: bool = False
) -> None:
    """Sets the automata from include bits [bank, clause, literal].

    Includes start weak and excludes some way below the boundary, so that training first thins clauses out; with
    keep_depth an automaton that already agrees with its bit keeps its state.
    """
    includes = np.asarray(bits)
    due = (*machine.states.shape[:2], machine.shape.n_literals)
    if includes.shape != due or includes.dtype != np.bool_:
        raise ValueError(
            f"include bits are {includes.dtype} of shape {list(includes.shape)}, bool of shape {list(due)} was due; "
            "take them from include_bits() of a machine of the same shape"
        )
    if not (INCLUDE <= include_state <= 255 and 0 <= exclude_state < INCLUDE):
        raise ValueError(
            f"include_state={include_state}, exclude_state={exclude_state}; "
            "give 128 to 255 for includes and 0 to 127 for excludes"
        )
    states = np.where(includes, np.uint8(include_state), np.uint8(exclude_state))
    if keep_depth:
        own = literal_states(machine)
        states = np.where(includes == (own >= INCLUDE), own, states)
    machine.states[:, :, machine.shape.literal_slots] = states
