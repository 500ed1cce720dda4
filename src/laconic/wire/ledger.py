"""What was sent: bytes by round, step, direction, client, field; and what packing, entropy and the paper make of it."""

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import NDArray

from laconic.wire.bits import entropy_bytes
from laconic.wire.codec import Encoded
from laconic.wire.floats import rotate
from laconic.wire.message import Message, Sparse, plain

Direction = Literal["up", "down", "peer"]
ENVELOPE = "(envelope)"  # head and checksum; no field can be called so
NOTES = "(notes)"  # for the record, behind a reply of a real node that lets them go


class Hop(NamedTuple):
    """One message's way. client: who sent it up or to a peer, or got it down; peer: who got it from that client."""

    round: int
    step: str
    direction: Direction
    client: int
    peer: int | None = None


class Counts(NamedTuple):
    sent_bytes: int = 0
    packed_bytes: int = 0  # each number in the fewest bits that hold all numbers of its array
    entropy_bytes: float = 0.0  # if every bit, integer or byte plane were drawn independently from its own frequencies
    paper_bits: float = 0.0  # by the paper's own rule


KEYS = (*Hop._fields, "field")
COLUMNS = (*KEYS, *Counts._fields)


class Ledger:
    """Columns that only grow: one row for each field of each message, and one for its envelope."""

    def __init__(self) -> None:
        self.columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}

    def __len__(self) -> int:
        return len(self.columns["round"])

    def record(self, hop: Hop, message: Message, encoded: Encoded, counts: Mapping[str, Counts] | None = None) -> None:
        """counts: those of count_fields, where they are known; the same message often goes to many."""
        if hop.direction not in get_args(Direction) or (hop.peer is not None) != (hop.direction == "peer"):
            raise ValueError(f"{hop}: direction is up, down or peer; a peer is named for the last and for it alone")
        if counts is None:
            counts = count_fields(message, encoded)
        way = Hop(int(hop.round), hop.step, hop.direction, int(hop.client), None if hop.peer is None else int(hop.peer))
        for field, numbers in counts.items():
            self._append(*way, field, *numbers)

    def strike(self, receivers: Collection[int], start: int) -> Counter[int]:
        """Takes back, of the rows from `start` on, what was addressed to these but never left: bytes of each client."""
        kept, saved = [*range(start)], Counter[int]()
        for row in range(start, len(self)):
            receiver = {"down": "client", "peer": "peer"}.get(self.columns["direction"][row])
            if receiver is None or self.columns[receiver][row] not in receivers:
                kept.append(row)
                continue
            for end in {"client", receiver}:
                saved[self.columns[end][row]] += self.columns["sent_bytes"][row]
        self.columns = {name: [column[row] for row in kept] for name, column in self.columns.items()}
        return saved

    def totals(self, *by: str, **where: Any) -> dict[tuple[Any, ...], Counts]:
        """Sums for each combination of the keys `by` that occurs, sorted; `totals("round", direction="up")`."""
        if strangers := {*by, *where} - set(KEYS):
            raise ValueError(f"no keys called {sorted(strangers)}; there are {', '.join(KEYS)}")
        wanted = [(self.columns[key], value) for key, value in where.items()]
        keys, amounts = [self.columns[name] for name in by], [self.columns[name] for name in Counts._fields]
        sums: dict[tuple[Any, ...], list[Any]] = {}
        for row in range(len(self)):
            if all(column[row] == value for column, value in wanted):
                total = sums.setdefault(tuple(column[row] for column in keys), [0, 0, 0.0, 0.0])
                for k, column in enumerate(amounts):
                    total[k] += column[row]
        ordered = sorted(sums.items(), key=lambda item: [(part is not None, part) for part in item[0]])
        return {key: Counts(*total) for key, total in ordered}

    def total(self, **where: Any) -> Counts:
        return self.totals(**where).get((), Counts())

    def to_jsonl(self, start: int = 0) -> Iterator[str]:
        """A line for each row from `start` on, in the order recorded."""
        for row in range(start, len(self)):
            yield json.dumps({name: column[row] for name, column in self.columns.items()})

    @classmethod
    def from_jsonl(cls, lines: Iterable[str]) -> Self:
        ledger = cls()
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
            except json.JSONDecodeError:  # cut short by a crash, say
                row = None
            if not isinstance(row, dict) or tuple(row) != COLUMNS:
                raise ValueError(
                    f"line {number} is {line.strip()[:60]!r}; an object with {', '.join(COLUMNS)} was expected"
                )
            ledger._append(*row.values())
        return ledger

    def _append(self, *row: Any) -> None:
        for column, value in zip(self.columns.values(), row, strict=True):
            column.append(value)


def count_fields(message: Message, encoded: Encoded) -> dict[str, Counts]:
    """Every field's, and the envelope's, whose bytes are neither packed nor in any paper."""
    counts = {name: count_field(message, name, len(part.data)) for name, part in encoded.fields.items()}
    return counts | {ENVELOPE: Counts(encoded.envelope_bytes)}


def count_field(message: Message, name: str, sent_bytes: int) -> Counts:
    value = getattr(message, name)
    if value is None:
        return Counts(sent_bytes)
    parts = value if isinstance(value, Sparse) else (value,)
    rule = message.paper_bits.get(name, usual_paper_bits)
    return Counts(
        sent_bytes,
        sum(pack_bytes(part) for part in parts),
        sum(float(estimate_entropy_bytes(part)) for part in parts),
        float(rule(value) if callable(rule) else rule * sum(np.size(part) for part in parts[-1:])),
    )


def usual_paper_bits(value: Any) -> float:
    """As papers count: bits one each, numbers 32 or as narrow as they are stored, single numbers not at all."""
    if isinstance(value, Sparse):
        return usual_paper_bits(value.mask) + usual_paper_bits(value.values)
    if not isinstance(value, np.ndarray):
        return 0
    return value.size * (1 if value.dtype == bool else min(32, 8 * value.itemsize))


def pack_bytes(value: Any) -> int:
    if isinstance(value, str):
        return len(value.encode())
    if not isinstance(value, np.ndarray):
        return 1 if isinstance(value, bool) else 8
    if value.dtype.kind == "f" or value.size == 0:
        return value.nbytes
    n_bits = 1 if value.dtype == bool else (int(value.max()) - int(value.min())).bit_length()
    return math.ceil(value.size * n_bits / 8)


def estimate_entropy_bytes(value: Any) -> float:
    if not isinstance(value, np.ndarray):
        return pack_bytes(value)
    if value.dtype == bool:
        return entropy_bytes(int(np.count_nonzero(value)), value.size)
    if value.dtype.kind == "f":  # whole floats hardly ever repeat; their leading bytes do
        from laconic.wire import kernels

        return sum(map(frequencies_to_bytes, kernels.count_bytes(rotate(plain(value)), value.itemsize)))
    return frequencies_to_bytes(np.unique(value, return_counts=True)[1])


def frequencies_to_bytes(frequencies: NDArray[np.int64]) -> float:
    some = frequencies[frequencies > 0]
    return float((some * np.log2(some.sum() / some)).sum() / 8) if some.size else 0.0
