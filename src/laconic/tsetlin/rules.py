"""Reads a machine's clauses as rules in the words of the user's features.

Of a fuzzy clause every literal counts by itself: nothing is merged, but a literal and its negation, of which one always
fails, are left out, and one failure less is borne.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import compress
from math import isnan, nan
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.tsetlin.booleanize import Bit
from laconic.tsetlin.geometry import Shape
from laconic.tsetlin.machine import Machine, include_bits


@dataclass(frozen=True)
class Flag(Bit):
    """A feature that is itself 0 or 1."""

    threshold: float = 0.5

    def __str__(self) -> str:
        return self.feature

    @property
    def negated(self) -> str:
        return f"NOT {self.feature}"


@dataclass(frozen=True)
class Rule:
    """One clause, its votes, and how it fared on some examples."""

    bank: int
    clause: int
    votes: tuple[tuple[Any, float], ...]  # (class label, what it adds to it), strongest first
    literals: tuple[str, ...]
    n_needed: int  # how many of them must hold; each one more adds the weight once more
    place: str  # where in the image the patch may lie; empty for flat machines
    support: float  # share of examples on which it fires; nan if none were counted
    precision: float  # share of those that are (against: are not) of the class it speaks of; nan if it never fires

    @property
    def label(self) -> Any:
        return self.votes[0][0]

    @property
    def is_for(self) -> bool:
        return self.votes[0][1] > 0

    @property
    def weight(self) -> float:
        return abs(self.votes[0][1])

    @property
    def condition(self) -> str:
        condition = " AND ".join(self.literals) or "anything"
        if self.is_fuzzy:
            condition = f"at least {self.n_needed} of these {len(self.literals)}: {', '.join(self.literals)}"
        return f"{self.place}: {condition}" if self.place else condition

    @property
    def is_fuzzy(self) -> bool:
        return self.n_needed < len(self.literals)

    def __str__(self) -> str:
        facts = [f"again for each beyond {self.n_needed}"] if self.is_fuzzy else []
        facts += [] if isnan(self.support) else [f"support {self.support:.2f}", f"precision {self.precision:.2f}"]
        if len(self.votes) == 1:
            verdict, facts = f"{'' if self.is_for else 'NOT '}{self.label}", [f"weight {self.weight:g}", *facts]
        else:
            verdict = ", ".join(f"{label} {vote:+.4g}" for label, vote in self.votes)
        return f"IF {self.condition} THEN {verdict}" + (f" ({', '.join(facts)})" if facts else "")


@dataclass(frozen=True)
class Evidence:
    """On how many examples the clauses fired, and of these how many they were right about."""

    fired: NDArray[np.int64]  # [bank, clause]
    right: NDArray[np.int64]  # [bank, clause] that are, or if it speaks against it are not, of its strongest class
    n_examples: int

    @classmethod
    def count(cls, outputs: NDArray[np.bool_], y: NDArray[np.integer[Any]], votes: NDArray[Any]) -> "Evidence":
        """From clause outputs [n, bank, clause], class indices [n] and votes [bank, clause, class]."""
        leading = np.abs(votes).argmax(axis=2)
        is_for = np.take_along_axis(votes, leading[..., None], axis=2)[..., 0] > 0
        fired, right = np.zeros((2, *leading.shape), np.int64)
        for label in np.unique(y):
            times = outputs[y == label].sum(axis=0)
            fired += times
            right += np.where((leading == label) == is_for, times, 0)
        return cls(fired, right, len(y))


def votes_by_class(machine: Machine) -> NDArray[np.int32]:
    """[bank, clause, class] what a clause adds to each class."""
    if machine.coalesced:
        return machine.votes.T[None]
    votes = np.zeros((machine.n_classes, machine.n_clauses, machine.n_classes), np.int32)
    votes[np.arange(machine.n_classes), :, np.arange(machine.n_classes)] = machine.votes
    return votes


def patch_places(shape: Shape, include: NDArray[np.bool_]) -> tuple[range, range]:
    """Rows and columns where a clause lets the patch's top left corner lie; empty where it contradicts itself."""
    includes, negates = np.split(include, 2)
    places, start = [], shape.n_pixels
    for n_places in (shape.n_rows, shape.n_columns):
        after, up_to = (np.flatnonzero(side[start : start + n_places - 1]) for side in (includes, negates))
        places.append(range(after.max(initial=-1) + 1, up_to.min(initial=n_places - 1) + 1))
        start += n_places - 1
    return places[0], places[1]


def best_places(shape: Shape, include: NDArray[np.bool_]) -> list[NDArray[np.int64]]:
    """Rows and columns of the patch's top left corner where fewest of a clause's position literals fail."""
    includes, negates = np.split(include, 2)
    places, start = [], shape.n_pixels
    for n_places in (shape.n_rows, shape.n_columns):
        above = np.arange(n_places)[:, None] > np.arange(n_places - 1)  # [place, literal] it holds there
        wanted, unwanted = (side[start : start + n_places - 1] for side in (includes, negates))
        n_failing = (wanted & ~above).sum(axis=1) + (unwanted & above).sum(axis=1)
        places.append(np.flatnonzero(n_failing == n_failing.min()))
        start += n_places - 1
    return places


def read_literals(bits: Sequence[Bit], include: NDArray[np.bool_]) -> tuple[str, ...] | None:
    """Included patch bits [literal] as text; None if they contradict each other.

    Nested thresholds are merged, and what follows from other literals is left out.
    """
    includes, negates = (side[: len(bits)] for side in np.split(include, 2))
    # sorted so that of a feature's bits the tightest comes last and stays
    low = {bit.feature: bit for bit in sorted(compress(bits, includes), key=_threshold)}
    high = {bit.feature: bit for bit in sorted(compress(bits, negates), key=_threshold, reverse=True)}
    if any(low[feature].threshold >= high[feature].threshold for feature in low.keys() & high.keys()):
        return None
    ruled_out = {rival for bit in low.values() for rival in bit.rivals}
    if ruled_out & low.keys():
        return None
    filled = {bit.gap for bit in high.values()} & high.keys()  # "is not missing" goes without saying beside "<= 6.9"
    features = dict.fromkeys(bit.feature for bit in compress(bits, includes | negates))
    told = [feature for feature in features if feature not in ruled_out | filled]
    return tuple(_word(low.get(feature), high.get(feature), filled) for feature in told)


def list_literals(bits: Sequence[Bit], include: NDArray[np.bool_]) -> tuple[tuple[str, ...], int]:
    """Included literals as text, one by one, and how many pairs that contradict each other were left out."""
    includes, negates = np.split(include, 2)
    both = includes & negates
    true, false = compress(bits, includes & ~both), compress(bits, negates & ~both)
    return (*map(str, true), *(bit.negated for bit in false)), int(np.count_nonzero(both))


_threshold = attrgetter("threshold")


def _word(low: Bit | None, high: Bit | None, filled: Set[str]) -> str:
    if high is None:
        return str(low)
    if low is None:
        return high.below if high.gap in filled else high.negated
    return f"{str(low).removeprefix(f'{low.feature} > ')} < {high.below}"


def describe_place(shape: Shape, rows: range, columns: range, least: int = 1) -> str:
    """The image rows and columns that the patch may cover, and on how many patches there the clause must hold."""
    if shape.is_flat:
        return ""
    often = "somewhere" if least == 1 else f"on at least {least} patches"
    if len(rows) == shape.n_rows and len(columns) == shape.n_columns:
        return "anywhere" if least == 1 else often
    last_row, last_column = rows[-1] + shape.patch_height - 1, columns[-1] + shape.patch_width - 1
    return f"{often} in rows {rows[0]}-{last_row}, columns {columns[0]}-{last_column}"


def read_rules(
    machine: Machine,
    labels: Sequence[Any],
    bits: Sequence[Bit],
    evidence: Evidence | None,
    *,
    votes: NDArray[Any] | None = None,
    least: NDArray[np.integer[Any]] | None = None,
) -> list[Rule]:
    """By class, heaviest first; empty, contradictory and voteless clauses are left out. bits: one per patch bit.

    votes [bank, clause, class]: what clauses say where that is not the machine's votes. least [bank, clause]: on how
    many patches they must hold to fire; None: on one.
    """
    includes = include_bits(machine)
    votes = votes_by_class(machine) if votes is None else votes
    rules = list[tuple[int, Rule]]()
    for bank, clause in np.ndindex(*includes.shape[:2]):
        said = [(int(c), votes[bank, clause, c].item()) for c in np.flatnonzero(votes[bank, clause])]
        condition = _read_condition(
            machine, bits, includes[bank, clause], 1 if least is None else int(least[bank, clause])
        )
        if condition is None or not said:
            continue
        said.sort(key=lambda vote: -abs(vote[1]))
        fired, right = (0, 0) if evidence is None else (evidence.fired[bank, clause], evidence.right[bank, clause])
        rule = Rule(
            bank=bank,
            clause=clause,
            votes=tuple((labels[c], vote) for c, vote in said),
            support=nan if evidence is None else float(fired / max(evidence.n_examples, 1)),
            precision=float(right / fired) if fired else nan,
            **condition,
        )
        rules.append((said[0][0], rule))
    return [rule for _, rule in sorted(rules, key=lambda entry: (entry[0], -entry[1].weight))]


def _read_condition(
    machine: Machine, bits: Sequence[Bit], include: NDArray[np.bool_], least: int
) -> dict[str, Any] | None:
    """What must hold, as fields of a rule; None if nothing must, or nothing can. least: on how many patches."""
    shape = machine.shape
    if not include.any():
        return None
    if machine.fuzzy is not None:
        texts, n_pairs = list_literals([*bits, *_name_positions(shape)], include)
        n_borne = min(machine.fuzzy.failures, int(np.count_nonzero(include))) - 1 - n_pairs
        place = "" if shape.is_flat else "on some patch" if least == 1 else f"on at least {least} patches"
        return {"literals": texts, "n_needed": max(len(texts) - n_borne, 0), "place": place} if n_borne >= 0 else None
    rows, columns = patch_places(shape, include)
    literals = read_literals(bits, include)
    if not rows or not columns or literals is None:
        return None
    return {"literals": literals, "n_needed": len(literals), "place": describe_place(shape, rows, columns, least)}


def _name_positions(shape: Shape) -> list[Bit]:
    """The features of a patch that tell where it lies."""
    places = {"patch row": shape.n_rows, "patch column": shape.n_columns}
    return [Bit(name, float(k)) for name, n_places in places.items() for k in range(n_places - 1)]
