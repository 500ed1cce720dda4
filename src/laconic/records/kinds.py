"""What a run folder holds: a dataclass for each kind of record, with the file it lies in; its fields are the keys.

A field that older folders lack has a default. Whatever else changes raises SCHEMA in folder.py.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, get_args, get_type_hints

from laconic.records.schema import Amount, Count, Finite, Mismatch, Share

Notes = dict[str, float | None]  # a method may note NaN

SocketKind = Literal["exchange", "connect", "idle"]  # what bytes were for: messages, connecting, or staying so
ENVELOPE = "(envelope)"  # head and checksum of a message, which belong to no field
PARTS = ("train", "val", "test")


# ---------------------------------------------------------------- lines, some for each round
@dataclass(frozen=True, kw_only=True)
class Round:
    """Bytes are of this round alone; accuracies are None where nothing was evaluated."""

    file: ClassVar[str] = "metrics.jsonl"

    round: Count
    accuracy_mean: Share | None
    accuracy_p10: Share | None
    accuracy_min: Share | None
    accuracy_pooled: Share | None
    upload_bytes: Count
    download_bytes: Count
    peer_bytes: Count
    paper_upload_bytes: Amount
    paper_download_bytes: Amount
    busiest_bytes: Count | None = None  # of the client that sent and received most
    budget_bytes: Count | None = None  # most that this could have been
    n_reached: Count | None = None  # clients that sent or received something
    n_sampled: Count
    n_replied: Count
    n_lost: Count | None = None
    n_refused: Count | None = None  # replies that no honest client sends
    is_void: bool
    notes: Notes

    @property
    def total_bytes(self) -> int:
        return self.upload_bytes + self.download_bytes + self.peer_bytes


@dataclass(frozen=True)
class ClientScore:
    file: ClassVar[str] = "clients.jsonl"

    round: Count
    client: Count
    n_test: Count
    n_correct: Count
    accuracy: Share | None
    notes: Notes

    def __post_init__(self) -> None:
        if self.n_correct > self.n_test:
            raise Mismatch(f"{self.n_correct} right of {self.n_test}", "at most as many as were tested")


@dataclass(frozen=True)
class Pairs:
    """What a method noted of every two clients: values[i][j] is of clients[i] and clients[j]."""

    file: ClassVar[str] = "pairs.jsonl"

    round: Count
    name: str
    clients: list[Count]
    values: list[list[Finite]]

    def __post_init__(self) -> None:
        n_clients = len(self.clients)
        if [len(row) for row in self.values] != [n_clients] * n_clients:
            expected = f"a row and a column for each of {n_clients} clients"
            raise Mismatch(f"{len(self.values)} rows of values", expected)


@dataclass(frozen=True)
class Matrix:
    """What was noted of two kinds of things: values[i] is the row of rows[i], one of `down`."""

    file: ClassVar[str] = "matrices.jsonl"

    round: Count
    name: str
    down: str
    across: str
    rows: list[Count]
    values: list[list[Finite]]

    def __post_init__(self) -> None:
        if len(self.values) != len(self.rows) or len({len(row) for row in self.values}) > 1:
            raise Mismatch(f"{len(self.values)} rows of values", f"a row for each of {len(self.rows)}, all as long")


@dataclass(frozen=True)
class Traffic:
    """A row of the ledger: one field of one message, its envelope, or the notes of a real node behind it."""

    file: ClassVar[str] = "traffic.jsonl"

    round: Count
    step: str
    direction: Literal["up", "down", "peer"]
    client: Count  # who sent it up or to a peer, or got it down
    peer: Count | None  # who got it from that client
    field: str
    sent_bytes: Count
    packed_bytes: Count
    entropy_bytes: Amount
    paper_bits: Amount

    def __post_init__(self) -> None:
        if (self.peer is None) == (self.direction == "peer"):
            raise Mismatch(f"direction {self.direction!r} and peer {self.peer}", "a peer for that direction alone")


@dataclass(frozen=True)
class Times:
    """Written last in a round: a round without them may lack other records too."""

    file: ClassVar[str] = "times.jsonl"

    round: Count
    seconds: Amount
    evaluate_seconds: Amount


@dataclass(frozen=True, kw_only=True)
class Letters:
    """An exchange with real nodes: messages of the engine that carried it, and what they weighed; replies are up."""

    file: ClassVar[str] = "letters.jsonl"

    round: Count
    kind: str
    n_letters: Count
    down_bytes: Count
    up_bytes: Count


@dataclass(frozen=True)
class Sockets:
    """What a real node's connection took in a round, TLS and all."""

    file: ClassVar[str] = "sockets.jsonl"

    round: Count
    client: Count
    kind: SocketKind
    up_bytes: Count
    down_bytes: Count


# ---------------------------------------------------------------- how lines are drawn
@dataclass(frozen=True)
class Panel:
    """Notes that a method wants to be seen together: how, and what each is called there.

    lines: numbers of the server, by round. clients: its numbers of clients, which have names and no mean. classes: of
    each client a number of a class. models: accuracies that a client noted of its models, against the first. matrix:
    cells by row and column. labels: a matrix of clients and classes, beside the examples that they have. budget: what
    it buys, in its table; the first grows with it.
    """

    kind: Literal["lines", "clients", "classes", "models", "matrix", "labels", "budget"]
    title: str
    notes: dict[str, str]  # by the name that they were noted under
    text: str = ""
    axis: str = ""  # lines: what the numbers are

    def __post_init__(self) -> None:
        known = get_args(get_type_hints(Panel)["kind"])
        if self.kind not in known:
            raise Mismatch(f"panel “{self.title}” is of kind {self.kind!r}", f"one of {', '.join(known)}")

    @classmethod
    def of_two_models(cls, notes: dict[str, str]) -> Panel:
        return cls("models", "Two models of each client", notes)


@dataclass(frozen=True)
class Panels:
    """As the method said when the run was started or went on."""

    file: ClassVar[str] = "panels.json"

    panels: list[Panel]


# cut back together when a run goes on from a checkpoint; letters and sockets are not, for what was sent was sent
LINES = (Round, ClientScore, Pairs, Matrix, Traffic, Times)


# ---------------------------------------------------------------- one for each run
@dataclass(frozen=True, kw_only=True)
class Environment:
    file: ClassVar[str] = "env.json"

    laconic: str | None = None
    python: str | None = None
    numpy: str | None = None
    numba: str | None = None
    torch: str | None = None
    cpu: str | None = None
    cores: Count | None = None
    git: str | None = None
    command: str
    started: str


@dataclass(frozen=True)
class Holding:
    """Examples of each class that a client has; None: only the client knows."""

    client: Count
    train: list[Count] | None = None
    val: list[Count] | None = None
    test: list[Count] | None = None
    quarter_turns: Count = 0  # by which its images are turned
    name: str = ""  # where it has one: its value of the column that says who owns a row


@dataclass(frozen=True)
class Drift:
    round: Count
    clients: list[Holding]  # from that round on


@dataclass(frozen=True, kw_only=True)
class Partition:
    file: ClassVar[str] = "partition.json"

    classes: list[str]
    clients: list[Holding]
    sha256: str  # equal for equal examples; of examples that only the nodes know, for one deployment; "": not known
    drift: Drift | None = None
    # settings by which examples were dealt out when nodes were set up; None: those of the run's config.toml
    data: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        for holding in (*self.clients, *(self.drift.clients if self.drift else ())):
            for part in PARTS:
                counts = getattr(holding, part)
                if counts is not None and len(counts) != len(self.classes):
                    came = f"client {holding.client} has {len(counts)} counts under {part}"
                    raise Mismatch(came, f"one for each of {len(self.classes)} classes")

    @property
    def is_nodes_own(self) -> bool:
        """Every node brought its examples, and nobody else knows them."""
        return all(holding.train is None for holding in self.clients)

    def at(self, round: int) -> list[Holding]:
        return self.drift.clients if self.drift and round >= self.drift.round else self.clients

    @staticmethod
    def upgrade(found: dict[str, Any], schema: int) -> dict[str, Any]:
        """Schema 1 said of examples that only the nodes know that there were none, and did not number clients."""
        if schema > 1 or found.get("sha256") != "" or type(found.get("clients")) is not list:
            return found
        return found | {"clients": [{"client": number} for number in range(len(found["clients"]))]}


@dataclass(frozen=True)
class Deployed:
    """A run on real nodes."""

    file: ClassVar[str] = "deployed.json"

    run: str  # hexadecimal digits, which name its folder at the nodes
    server: str  # path of the server's folder
    wait_seconds: Amount = 600.0  # for a node that is there to reply
    absent_seconds: Amount = 60.0  # for a node that has left to return


@dataclass(frozen=True)
class Progress:
    """Where a run is within a round, while it goes: for those who watch, so it is rewritten and never made safe."""

    file: ClassVar[str] = "progress.json"

    round: Count
    step: str
    n_done: Count
    n_asked: Count


@dataclass(frozen=True)
class Failure:
    file: ClassVar[str] = "FAILED.json"

    error: str


@dataclass(frozen=True, kw_only=True)
class Summary:
    """How a run ended; bytes are of all clients over the whole run."""

    file: ClassVar[str] = "DONE.json"

    run: str
    method: str
    rounds: Count
    tested: str = "test"  # or validation: whose examples the accuracies are of
    accuracy_mean: Share | None  # over clients, after the last round
    accuracy_best: Share | None  # the best round's mean
    accuracy_p10: Share | None
    upload_bytes: Count
    download_bytes: Count
    paper_upload_bytes: Amount
    paper_download_bytes: Amount
    seconds: Amount
    # of all real nodes, connecting included, as they told; None: there were none, or nobody counted
    socket_upload_bytes: Count | None = None
    socket_download_bytes: Count | None = None

    def to_json(self) -> dict[str, Any]:
        shown = asdict(self)
        if self.socket_upload_bytes is None:
            del shown["socket_upload_bytes"], shown["socket_download_bytes"]
        return shown
