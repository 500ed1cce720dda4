"""A Tsetlin Machine: plain arrays, and the functions that build, ask, read and write them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from laconic.tsetlin import balance, fuzzy_inference, inference
from laconic.tsetlin.fuzzy import Fuzzy, check_fuzzy
from laconic.tsetlin.geometry import INCLUDE, SLOTS_PER_WORD, Shape, aligned, geometry
from laconic.tsetlin.packing import Packed, include_stride, pack
from laconic.tsetlin.threads import workers

FRESH = INCLUDE - 1
Number = TypeVar("Number", bound=np.generic)


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
    # how clauses vote and grow, see fuzzy.py; None: all of their literals must hold
    fuzzy: Fuzzy | None = field(default=None, metadata={"later": True})

    @property
    def n_classes(self) -> int:
        return len(self.weights)

    @property
    def n_clauses(self) -> int:
        """Per bank."""
        return int(self.weights.shape[1])

    @property
    def votes(self) -> NDArray[np.int32]:
        """[class, clause] what a clause adds to a class when it fires; multi-class: odd clauses speak against it.

        A fuzzy clause adds it as many times as clause_votes says.
        """
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
    fuzzy: Fuzzy | None = None,
    signs: np.random.Generator | None = None,
) -> Machine:
    """A fresh machine with n_clauses clauses per class. signs: see build_coalesced."""
    _check_sizes(n_classes, n_clauses, threshold, specificity)
    is_coalesced, weights = signs is not None, np.ones((n_classes, n_clauses), np.int32)
    if signs is not None:
        weights = signs.integers(0, 2, weights.shape, dtype=np.int32) * 2 - 1
    states = _fresh_states(shape, 1 if is_coalesced else n_classes, n_clauses)
    rivalry = balance.start_rivalry(n_classes) if balanced else None
    numbers = int(threshold), float(specificity), bool(boost)
    return Machine(shape, *numbers, is_coalesced, states, weights, rivalry, check_fuzzy(fuzzy))


def build_coalesced(shape: Shape, n_classes: int, n_clauses: int, rng: np.random.Generator, **options: Any) -> Machine:
    """A fresh machine whose n_clauses clauses serve all classes, weights +1 or -1 at random. options: as of build."""
    return build(shape, n_classes, n_clauses, signs=rng, **options)


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


# ---------------------------------------------------------------- inference
def class_sums(machine: Machine, x: ArrayLike | Packed, *, threads: int = 1) -> NDArray[np.int32]:
    """[sample, class] votes, not clamped, and a balanced machine's bias; the largest is the prediction."""
    packed = pack(machine.shape, x)
    sums = np.zeros((len(packed), machine.n_classes), np.int32)
    if machine.rivalry is not None:
        sums += balance.choose_bias(machine.rivalry)

    kernel = inference.add_votes if machine.fuzzy is None else fuzzy_inference.add_votes

    def add_votes(span: tuple[int, int], program: Any, block: Any) -> None:
        bank, place = np.divmod(program.clauses, np.int32(machine.n_clauses))
        if machine.coalesced:
            votes, per_clause = machine.votes.T[place], machine.n_classes
        else:
            votes, per_clause = machine.votes[bank, place], 1
        ballot = inference.Ballot(machine.n_classes, per_clause, bank, np.ascontiguousarray(votes).reshape(-1))
        kernel(packed.samples, span, program, block, ballot, sums)

    _evaluate(machine, packed, threads, add_votes)
    return sums


def clause_outputs(machine: Machine, x: ArrayLike | Packed, *, threads: int = 1) -> NDArray[np.bool_]:
    """[sample, bank, clause] whether a clause fires; empty clauses are silent. A fuzzy clause fires where it votes."""
    if machine.fuzzy is None:
        return _write_clauses(machine, x, threads, inference.write_outputs, np.bool_)
    fires: NDArray[np.bool_] = clause_votes(machine, x, threads=threads) > 0
    return fires


def clause_votes(machine: Machine, x: ArrayLike | Packed, *, threads: int = 1) -> NDArray[np.int32]:
    """[sample, bank, clause] how strongly a clause votes, its weight apart: 0 or 1, or up to fuzzy.failures."""
    if machine.fuzzy is None:
        return clause_outputs(machine, x, threads=threads).astype(np.int32)
    return _write_clauses(machine, x, threads, fuzzy_inference.write_votes, np.int32)


def clause_counts(machine: Machine, x: ArrayLike | Packed, *, threads: int = 1) -> NDArray[np.int32]:
    """[sample, bank, clause] on how many patches a clause holds, or votes; of flat samples 1 where it fires."""
    if machine.shape.is_flat:
        return clause_outputs(machine, x, threads=threads).astype(np.int32)
    write = inference.write_counts if machine.fuzzy is None else fuzzy_inference.write_counts
    return _write_clauses(machine, x, threads, write, np.int32)


def _write_clauses(
    machine: Machine, x: ArrayLike | Packed, threads: int, write: Callable[..., None], kind: type[Number]
) -> NDArray[Number]:
    """[sample, bank, clause] as the kernel `write` fills it in."""
    packed, n_banks = pack(machine.shape, x), len(machine.states)
    written = np.zeros((len(packed), n_banks * machine.n_clauses), kind)

    def visit(span: tuple[int, int], program: Any, block: Any) -> None:
        write(packed.samples, span, program, block, written)

    _evaluate(machine, packed, threads, visit)
    return written.reshape(len(packed), n_banks, machine.n_clauses)


def _evaluate(machine: Machine, packed: Packed, threads: int, visit: Callable[..., None]) -> None:
    """Calls visit(span of samples, program, room) until every clause has met every sample."""
    tables, stride, n_samples = geometry(machine.shape), include_stride(machine.shape), len(packed)
    n_clauses = len(machine.states) * machine.n_clauses
    starts = range(0, n_clauses, inference.CLAUSES_PER_PROGRAM)
    if machine.fuzzy is None:
        per_program = min(n_clauses, inference.CLAUSES_PER_PROGRAM)
        counts = inference.count_places(machine.shape, packed.samples, n_samples)
        make_room: Callable[[], Any] = partial(inference.make_block, tables, per_program, machine.n_classes)
        compile_from: Callable[[int], Any] = partial(
            inference.compile_clauses, tables, machine.states, stride=stride, counts=counts
        )
    else:
        make_room = partial(fuzzy_inference.make_block, machine.shape, machine.n_classes)
        compile_from = partial(
            fuzzy_inference.compile_clauses,
            machine.shape,
            machine.states,
            stride=stride,
            failures=machine.fuzzy.failures,
        )
    with workers(threads) as run:
        rooms = [make_room() for _ in range(threads)]
        share = -(-n_samples // (rooms[0].size * threads)) * rooms[0].size  # whole blocks
        spans = [(first, min(n_samples, first + share)) for first in range(0, n_samples, max(1, share))]
        for first in starts:
            program = compile_from(first)

            def visit_span(span: tuple[int, int], program: Any = program) -> None:
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
            f"include bits are {includes.dtype} of shape {list(includes.shape)}, bool of {list(due)} was expected; "
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
