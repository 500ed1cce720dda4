"""Reads a machine's clauses as rules in the words of the user's features.

Of a fuzzy clause every literal counts by itself: nothing is merged, but a literal and its negation, of which one always
fails, are left out, and one failure less is borne.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from math import nan
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
    """One clause, its votes, and how it fared on a sample of the data."""

    bank: int
    clause: int
    votes: tuple[tuple[Any, int], ...]  # (class label, signed weight), strongest first; several only if coalesced
    literals: tuple[str, ...]
    n_needed: int  # how many of them must hold; each one more adds the weight once more
    place: str  # where in the image the patch may lie; empty for flat machines
    support: float  # share of samples on which it fires
    precision: float  # share of those that are (against: are not) of the class it speaks of; nan if it never fires

    @property
    def label(self) -> Any:
        return self.votes[0][0]

    @property
    def is_for(self) -> bool:
        return self.votes[0][1] > 0

    @property
    def weight(self) -> int:
        return abs(self.votes[0][1])

    def __str__(self) -> str:
        n_literals, beyond = len(self.literals), ""
        condition = " AND ".join(self.literals) or "anything"
        if self.n_needed < n_literals:
            condition = f"at least {self.n_needed} of these {n_literals}: {', '.join(self.literals)}"
            beyond = f"again for each beyond {self.n_needed}, "
        if self.place:
            condition = f"{self.place}: {condition}"
        if len(self.votes) == 1:
            verdict = f"{'' if self.is_for else 'NOT '}{self.label} (weight {self.weight}, {beyond}"
        else:
            verdict = ", ".join(f"{label} {vote:+d}" for label, vote in self.votes) + f" ({beyond}"
        return f"IF {condition} THEN {verdict}support {self.support:.2f}, precision {self.precision:.2f})"


@dataclass(frozen=True)
class Evidence:
    """On how many samples of each class the clauses fired."""

    fired: NDArray[np.int64]  # [class, bank, clause]
    n_samples: NDArray[np.int64]  # [class]

    @classmethod
    def count(cls, outputs: NDArray[np.bool_], y: NDArray[np.int64], n_classes: int) -> "Evidence":
        """From clause outputs [n, bank, clause] and class indices [n]."""
        fired = np.stack([outputs[y == label].sum(0) for label in range(n_classes)])
        return cls(fired, np.bincount(y, minlength=n_classes))


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
    """Included patch bits [literal] as text, nested thresholds merged; None if they contradict each other."""
    includes, negates = (side[: len(bits)] for side in np.split(include, 2))
    # sorted so that of a feature's bits the tightest comes last and stays
    low = {bit.feature: bit for bit in sorted(compress(bits, includes), key=_threshold)}
    high = {bit.feature: bit for bit in sorted(compress(bits, negates), key=_threshold, reverse=True)}
    if any(low[feature].threshold >= high[feature].threshold for feature in low.keys() & high.keys()):
        return None
    features = dict.fromkeys(bit.feature for bit in compress(bits, includes | negates))
    return tuple(_word(low.get(feature), high.get(feature)) for feature in features)


def list_literals(bits: Sequence[Bit], include: NDArray[np.bool_]) -> tuple[tuple[str, ...], int]:
    """Included literals as text, one by one, and how many pairs that contradict each other were left out."""
    includes, negates = np.split(include, 2)
    both = includes & negates
    true, false = compress(bits, includes & ~both), compress(bits, negates & ~both)
    return (*map(str, true), *(bit.negated for bit in false)), int(np.count_nonzero(both))


_threshold = attrgetter("threshold")


def _word(low: Bit | None, high: Bit | None) -> str:
    if low is None or high is None:
        return high.negated if high else str(low)
    return f"{str(low).removeprefix(f'{low.feature} > ')} < {high.negated}"


def _describe_place(shape: Shape, rows: range, columns: range) -> str:
    """The image rows and columns that the patch may cover."""
    if shape.is_flat:
        return ""
    if len(rows) == shape.n_rows and len(columns) == shape.n_columns:
        return "anywhere"
    last_row, last_column = rows[-1] + shape.patch_height - 1, columns[-1] + shape.patch_width - 1
    return f"somewhere in rows {rows[0]}-{last_row}, columns {columns[0]}-{last_column}"


def read_rules(machine: Machine, labels: Sequence[Any], bits: Sequence[Bit], evidence: Evidence) -> list[Rule]:
    """By class, heaviest first; empty, contradictory and voteless clauses are left out. bits: one per patch bit."""
    includes, all_votes = include_bits(machine), machine.votes
    rules = list[tuple[int, Rule]]()
    for bank, clause in np.ndindex(*includes.shape[:2]):
        spoken = range(machine.n_classes) if machine.coalesced else (bank,)
        votes = [(c, int(all_votes[c, clause])) for c in spoken if all_votes[c, clause]]
        condition = _read_condition(machine, bits, includes[bank, clause])
        if condition is None or not votes:
            continue
        votes.sort(key=lambda vote: -abs(vote[1]))
        leading, weight = votes[0]
        fired = evidence.fired[:, bank, clause]
        right = fired[leading] if weight > 0 else fired.sum() - fired[leading]
        rule = Rule(
            bank=bank,
            clause=clause,
            votes=tuple((labels[c], vote) for c, vote in votes),
            support=float(fired.sum() / evidence.n_samples.sum()),
            precision=float(right / fired.sum()) if fired.any() else nan,
            **condition,
        )
        rules.append((leading, rule))
    return [rule for _, rule in sorted(rules, key=lambda entry: (entry[0], -entry[1].weight))]


def _read_condition(machine: Machine, bits: Sequence[Bit], include: NDArray[np.bool_]) -> dict[str, Any] | None:
    """What must hold, as fields of a rule; None if nothing must, or nothing can."""
    shape = machine.shape
    if not include.any():
        return None
    if machine.fuzzy is not None:
        texts, n_pairs = list_literals([*bits, *_name_positions(shape)], include)
        n_borne = min(machine.fuzzy.failures, int(np.count_nonzero(include))) - 1 - n_pairs
        place = "" if shape.is_flat else "on some patch"
        return {"literals": texts, "n_needed": max(len(texts) - n_borne, 0), "place": place} if n_borne >= 0 else None
    rows, columns = patch_places(shape, include)
    literals = read_literals(bits, include)
    if not rows or not columns or literals is None:
        return None
    return {"literals": literals, "n_needed": len(literals), "place": _describe_place(shape, rows, columns)}


def _name_positions(shape: Shape) -> list[Bit]:
    """The features of a patch that tell where it lies."""
    places = {"patch row": shape.n_rows, "patch column": shape.n_columns}
    return [Bit(name, float(k)) for name, n_places in places.items() for k in range(n_places - 1)]
