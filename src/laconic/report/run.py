"""What a run wrote into its folder, summed up. A run under way or killed is read as far as it came."""

import math
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from laconic.records import ENVELOPE, Mismatch, fault, kinds, read, read_lines, read_record, read_rounds, read_text
from laconic.records.schema import Count
from laconic.report.caveats import find_caveats

NODES_OWN = "the nodes’ own data"


class Counts(NamedTuple):
    sent_bytes: int = 0
    packed_bytes: int = 0
    entropy_bytes: float = 0.0
    paper_bytes: float = 0.0


def add_counts(some: Iterable[Counts]) -> Counts:
    sent, packed, entropy, paper = map(sum, zip(Counts(), *some, strict=True))
    return Counts(int(sent), int(packed), entropy, paper)


class ClientBytes(NamedTuple):
    sent_bytes: int = 0  # to the server or to peers
    received_bytes: int = 0


class Carried(NamedTuple):
    """By the engine that runs over real nodes, tests and what was sent again among them; replies are up."""

    n_letters: int
    up_bytes: int
    down_bytes: int


class Sums(NamedTuple):
    """Of the ledger, up to the last round that ended."""

    by_field: dict[tuple[str, str, str], Counts]  # (step, direction, field)
    by_client: dict[int, ClientBytes]
    by_client_round: dict[tuple[int, int], ClientBytes]  # (round, client)
    by_round: dict[tuple[int, str], int]  # (round, direction) -> bytes


class Clients(NamedTuple):
    scores: list[kinds.ClientScore]  # of the last evaluated round
    mean_notes: dict[str, dict[int, float]]  # name -> round -> mean over the clients that noted it
    last_notes: dict[str, dict[int, float]]  # name -> client -> what it noted last


@dataclass(frozen=True)
class Run:
    folder: Path
    config: dict[str, Any]  # as it was run: [data] is what clients had, which is not for the settings of a run to say
    env: kinds.Environment
    partition: kinds.Partition
    rounds: list[kinds.Round]
    clients: Clients
    panels: list[kinds.Panel]  # what its method says of its notes; none in older folders
    pairs: list[kinds.Pairs]
    matrices: dict[str, kinds.Matrix]  # name -> the last
    sums: Sums
    times: dict[int, kinds.Times]  # by round
    carried: Carried | None  # None: Flower had no part in it
    sockets: list[kinds.Sockets]  # as real nodes told, also of rounds that were played again; empty: nobody counted
    is_finished: bool
    status: str
    warnings: tuple[str, ...]

    @property
    def method(self) -> str:
        return str(self.config["method"]["name"])

    @property
    def seed(self) -> int:
        return int(self.config["seed"])

    @cached_property
    def names(self) -> dict[int, str]:
        """Of clients, as far as they have any."""
        return {holding.client: holding.name for holding in self.partition.clients if holding.name}

    def name_client(self, client: int) -> str:
        return self.names.get(client, str(client))

    @property
    def shares(self) -> str:
        """Equal for runs whose clients have the same examples; of those that nobody knows, for no other run."""
        return self.partition.sha256 or str(self.folder)

    @property
    def clients_have(self) -> tuple[str, ...]:
        """Equal for runs whose clients learn from and are tested on the same examples."""
        data = {"tested": "test", "shift": "none"} | self.config["data"]  # older records lack these
        return self.shares, data["tested"], data["shift"]

    @property
    def scores(self) -> list[kinds.ClientScore]:
        return self.clients.scores

    @cached_property
    def evaluated(self) -> tuple[kinds.Round, ...]:
        return tuple(r for r in self.rounds if r.accuracy_mean is not None)

    @property
    def accuracy_mean(self) -> float | None:
        return self.evaluated[-1].accuracy_mean if self.evaluated else None

    @property
    def accuracy_p10(self) -> float | None:
        return self.evaluated[-1].accuracy_p10 if self.evaluated else None

    @property
    def accuracy_best(self) -> float | None:
        return max((r.accuracy_mean for r in self.evaluated if r.accuracy_mean is not None), default=None)

    @property
    def upload_bytes(self) -> int:
        return sum(r.upload_bytes for r in self.rounds)

    @property
    def download_bytes(self) -> int:
        return sum(r.download_bytes for r in self.rounds)

    @property
    def peer_bytes(self) -> int:
        return sum(r.peer_bytes for r in self.rounds)

    @property
    def is_silent(self) -> bool:
        """Nothing was sent, so each client learnt alone."""
        return bool(self.evaluated) and not any(r.total_bytes for r in self.rounds)

    def noted(self, name: str) -> dict[int, float]:
        """Round -> what the server noted."""
        some = {r.round: r.notes.get(name) for r in self.rounds}
        return {number: value for number, value in some.items() if value is not None and math.isfinite(value)}

    @cached_property
    def counts(self) -> Counts:
        """Everything that travelled."""
        return add_counts(self.sums.by_field.values())

    @property
    def envelope_bytes(self) -> int:
        return sum(counts.sent_bytes for (_, _, field), counts in self.sums.by_field.items() if field == ENVELOPE)

    @property
    def seconds(self) -> float:
        return sum(times.seconds for times in self.times.values())


def rise(run: Run, base: Run) -> Iterator[tuple[kinds.ClientScore, float, float]]:
    """Each client that was tested in both, how accurate it is in the base and how accurate here."""
    before = {score.client: score.accuracy for score in base.scores}
    for score in run.scores:
        if score.accuracy is not None and (start := before.get(score.client)) is not None:
            yield score, start, score.accuracy


def read_run(folder: str | Path) -> Run:
    folder = Path(folder)
    for name in ("config.toml", kinds.Environment.file, kinds.Partition.file):
        if not (folder / name).is_file():
            raise ValueError(f"{folder} has no {name}, so it is no run folder; give one that `laconic run` made")
    partition = read(folder, kinds.Partition)
    config = read_config(folder / "config.toml", partition)
    times = {row.round: row for row in read_lines(folder, kinds.Times)}
    # a round's time is written last, so what lies beyond the last time may lack its clients or traffic
    rounds = [r for r in read_rounds(folder) if r.round in times]
    last = rounds[-1].round if rounds else -1
    clients = read_clients(folder, [r.round for r in rounds if r.accuracy_mean is not None])
    sums = add_traffic(folder, last)
    is_finished, status = read_end(folder, config, max(last, 0))
    caveats = find_caveats(config, rounds, clients.scores, sums.by_round)
    return Run(
        folder=folder,
        config=config,
        env=read(folder, kinds.Environment),
        partition=partition,
        rounds=rounds,
        clients=clients,
        panels=read(folder, kinds.Panels).panels if (folder / kinds.Panels.file).exists() else [],
        pairs=[pairs for pairs in read_lines(folder, kinds.Pairs) if pairs.round <= last],
        matrices={matrix.name: matrix for matrix in read_lines(folder, kinds.Matrix) if matrix.round <= last},
        sums=sums,
        times=times,
        carried=add_letters(folder),
        sockets=list(read_lines(folder, kinds.Sockets)),
        is_finished=is_finished,
        status=status,
        warnings=tuple(caveats) if is_finished else (f"{status[0].upper()}{status[1:]}.", *caveats),
    )


@dataclass(frozen=True)
class Named:
    name: str


@dataclass(frozen=True)
class Basics:
    """What a report needs of a config.toml; settings come and go with methods and versions."""

    rounds: Count
    seed: Count
    method: Named
    data: Named


def read_config(path: Path, partition: kinds.Partition) -> dict[str, Any]:
    try:
        config = tomllib.loads(read_text(path))
        read_record(Basics, config)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        raise fault(f"{path}:{line[1]}" if line else path, Mismatch(str(error), "TOML")) from None
    except Mismatch as error:
        raise fault(path, error) from None
    # of a run on real nodes its own [data] says only whose examples are tested
    tested = {key: value for key, value in config["data"].items() if key == "tested"}
    if partition.is_nodes_own:
        config["data"] = {"name": NODES_OWN} | tested
    elif partition.data is not None:
        config["data"] = partition.data | tested
    return config


def read_clients(folder: Path, evaluated: list[int]) -> Clients:
    tested = {*evaluated}
    scores: list[kinds.ClientScore] = []
    noted: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    last: dict[str, dict[int, float]] = defaultdict(dict)
    for score in read_lines(folder, kinds.ClientScore):
        if evaluated and score.round == evaluated[-1]:
            scores.append(score)
        for name, value in score.notes.items():
            if value is not None and math.isfinite(value) and score.round in tested:
                noted[name][score.round].append(value)
                last[name][score.client] = value
    means = {name: {r: sum(v) / len(v) for r, v in by_round.items()} for name, by_round in noted.items()}
    return Clients(sorted(scores, key=lambda score: score.client), means, dict(last))


def add_traffic(folder: Path, last: int) -> Sums:
    by_field: dict[tuple[str, str, str], list[float]] = defaultdict(lambda: [0, 0, 0.0, 0.0])
    carried: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])  # sent, received
    by_round = defaultdict[tuple[int, str], int](int)
    for row in read_lines(folder, kinds.Traffic):
        if row.round > last:
            continue
        total = by_field[row.step, row.direction, row.field]
        amounts = (row.sent_bytes, row.packed_bytes, row.entropy_bytes, row.paper_bits / 8)
        total[:] = (a + b for a, b in zip(total, amounts, strict=True))
        by_round[row.round, row.direction] += row.sent_bytes
        if row.direction != "down":
            carried[row.round, row.client][0] += row.sent_bytes
        if row.direction != "up":
            getter = row.client if row.peer is None else row.peer
            carried[row.round, getter][1] += row.sent_bytes
    by_client: dict[int, ClientBytes] = {}
    for (_, client), (sent, received) in sorted(carried.items(), key=lambda item: item[0][1]):
        before = by_client.get(client, ClientBytes())
        by_client[client] = ClientBytes(before.sent_bytes + sent, before.received_bytes + received)
    counts = {key: Counts(*total) for key, total in by_field.items()}  # type: ignore[arg-type]
    return Sums(counts, by_client, {key: ClientBytes(*both) for key, both in carried.items()}, dict(by_round))


def add_letters(folder: Path) -> Carried | None:
    """Also of rounds that were played again: they went through the wire."""
    rows = list(read_lines(folder, kinds.Letters))
    return Carried(*(sum(getattr(row, name) for row in rows) for name in Carried._fields)) if rows else None


def read_end(folder: Path, config: dict[str, Any], n_rounds: int) -> tuple[bool, str]:
    if (folder / kinds.Failure.file).exists():
        return False, f"failed after {n_rounds} of {config['rounds']} rounds: {read(folder, kinds.Failure).error}"
    if (folder / kinds.Summary.file).exists():
        read(folder, kinds.Summary)
        return True, f"finished, {n_rounds} rounds"
    return False, f"unfinished, {n_rounds} of {config['rounds']} rounds"
