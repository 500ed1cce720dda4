"""What a run wrote into its folder, checked and summed up. A run under way or killed is read as far as it came."""

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from laconic.report.checks import (
    LATER,
    LETTERS,
    LIST,
    MATRIX,
    PAIRS,
    PARTITION,
    ROUND,
    SCORE,
    SHARES,
    TABLE,
    TEXT,
    TIME,
    TRAFFIC,
    WHOLE,
    check,
    fault,
    is_number,
    read_json,
    read_lines,
    read_text,
)

ENVELOPE = "(envelope)"  # head and checksum of a message, which belong to no field
LEAST_TEST = 20  # examples; with fewer, one more right moves a client's accuracy by more than five points


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


class Seconds(NamedTuple):
    seconds: float
    evaluate_seconds: float


@dataclass(frozen=True)
class Round:
    """Bytes are of this round alone; accuracies are None where nothing was evaluated."""

    round: int
    accuracy_mean: float | None
    accuracy_p10: float | None
    accuracy_min: float | None
    accuracy_pooled: float | None
    upload_bytes: int
    download_bytes: int
    peer_bytes: int
    paper_upload_bytes: float
    paper_download_bytes: float
    n_sampled: int
    n_replied: int
    is_void: bool
    notes: dict[str, float | None]
    busiest_bytes: int | None  # of the client that sent and received most; None in records from before it was noted
    budget_bytes: int | None  # most that this could have been
    n_refused: int | None  # replies that no honest client sends

    @property
    def total_bytes(self) -> int:
        return self.upload_bytes + self.download_bytes + self.peer_bytes


class Score(NamedTuple):
    client: int
    n_test: int
    n_correct: int
    accuracy: float | None


class Pairs(NamedTuple):
    """What a method noted of every two clients: values[i][j] is of clients[i] and clients[j]."""

    round: int
    name: str
    clients: tuple[int, ...]
    values: tuple[tuple[float, ...], ...]


class Matrix(NamedTuple):
    """What was noted of two kinds of things: values[i] is the row of rows[i], one of `down`."""

    round: int
    down: str
    across: str
    rows: tuple[int, ...]
    values: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Labels:
    """Examples of each client and class: [client][class]."""

    train: tuple[tuple[int, ...], ...]
    test: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Partition:
    sha256: str
    classes: tuple[str, ...]
    clients: tuple[int, ...]
    start: Labels
    drift_round: int | None
    drifted: Labels | None


class Letters(NamedTuple):
    """Messages of the engine that carried a run over real nodes: replies are up."""

    n_letters: int = 0
    up_bytes: int = 0
    down_bytes: int = 0


@dataclass(frozen=True)
class Run:
    folder: Path
    config: dict[str, Any]
    env: dict[str, Any]
    partition: Partition
    rounds: tuple[Round, ...]
    scores: tuple[Score, ...]  # of the last evaluated round
    client_notes: dict[str, dict[int, float]]  # name -> round -> mean over the clients that noted it
    last_notes: dict[str, dict[int, float]]  # name -> client -> what it noted last
    pairs: tuple[Pairs, ...]
    matrices: dict[str, Matrix]  # name -> the last
    by_field: dict[tuple[str, str, str], Counts]  # (step, direction, field)
    by_client: dict[int, ClientBytes]
    seconds_by_round: dict[int, Seconds]
    letters: Letters | None  # None: it ran on no real nodes
    is_finished: bool
    status: str
    warnings: tuple[str, ...]

    @property
    def method(self) -> str:
        return str(self.config["method"]["name"])

    @property
    def seed(self) -> int:
        return int(self.config["seed"])

    @property
    def clients_have(self) -> tuple[str, ...]:
        """Equal for runs whose clients learn from and are tested on the same examples."""
        data = {"tested": "test", "shift": "none"} | self.config["data"]  # older records lack these
        return self.partition.sha256, data["tested"], data["shift"]

    @cached_property
    def evaluated(self) -> tuple[Round, ...]:
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

    def noted(self, name: str) -> dict[int, float]:
        """Round -> what the server noted."""
        some = {r.round: r.notes.get(name) for r in self.rounds}
        return {number: value for number, value in some.items() if value is not None and is_number(value)}

    @cached_property
    def counts(self) -> Counts:
        """Everything that travelled."""
        return add_counts(self.by_field.values())

    @property
    def envelope_bytes(self) -> int:
        return sum(counts.sent_bytes for (_, _, field), counts in self.by_field.items() if field == ENVELOPE)

    @property
    def seconds(self) -> float:
        return sum(s.seconds for s in self.seconds_by_round.values())


def rise(run: Run, base: Run) -> Iterator[tuple[Score, float, float]]:
    """Each client that was tested in both, how accurate it is in the base and how accurate here."""
    before = {score.client: score.accuracy for score in base.scores}
    for score in run.scores:
        if score.accuracy is not None and (start := before.get(score.client)) is not None:
            yield score, start, score.accuracy


def read_run(folder: str | Path) -> Run:
    folder = Path(folder)
    for name in ("config.toml", "env.json", "partition.json"):
        if not (folder / name).is_file():
            raise ValueError(f"{folder} has no {name}, so it is no run folder; give one that `laconic run` made")
    config = read_config(folder / "config.toml")
    env = read_json(folder / "env.json", {"command": TEXT, "started": TEXT})
    partition = read_partition(folder / "partition.json")
    seconds = {
        line["round"]: Seconds(line["seconds"], line["evaluate_seconds"])
        for _, line in read_lines(folder / "times.jsonl", TIME)
    }
    # a round's time is written last, so what lies beyond the last time may lack its clients or traffic
    rounds = tuple(r for r in read_rounds(folder / "metrics.jsonl") if r.round in seconds)
    last = rounds[-1].round if rounds else -1
    evaluated = [r.round for r in rounds if r.accuracy_mean is not None]
    scores, client_notes, last_notes = read_clients(folder / "clients.jsonl", evaluated)
    by_field, by_client, by_round = read_traffic(folder / "traffic.jsonl", last)
    is_finished, status = read_end(folder, config, max(last, 0))
    doubts = (
        *find_untested(config),
        *find_lost(rounds),
        *find_small_tests(scores),
        *find_unequal_bytes(rounds, by_round),
    )
    return Run(
        folder=folder,
        config=config,
        env=env,
        partition=partition,
        rounds=rounds,
        scores=scores,
        client_notes=client_notes,
        last_notes=last_notes,
        pairs=tuple(pairs for pairs in read_pairs(folder / "pairs.jsonl") if pairs.round <= last),
        matrices=read_matrices(folder / "matrices.jsonl", last),
        by_field=by_field,
        by_client=by_client,
        seconds_by_round=seconds,
        letters=read_letters(folder / "letters.jsonl"),
        is_finished=is_finished,
        status=status,
        warnings=doubts if is_finished else (f"{status[0].upper()}{status[1:]}.", *doubts),
    )


def read_config(path: Path) -> dict[str, Any]:
    try:
        config = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        raise fault(f"{path}:{line[1]}" if line else str(path), str(error), "TOML") from None
    check(str(path), config, {"rounds": WHOLE, "seed": WHOLE, "method": TABLE, "data": TABLE})
    for section in ("method", "data"):
        check(f"{path} [{section}]", config[section], {"name": TEXT})
    return config


def read_partition(path: Path) -> Partition:
    found = read_json(path, PARTITION)
    classes = tuple(map(str, found["classes"]))
    start, drift = read_labels(str(path), found["clients"], len(classes)), found.get("drift")
    if drift is not None:
        check(str(path), drift, {"round": WHOLE, "clients": LIST})
    return Partition(
        sha256=found["sha256"],
        classes=classes,
        clients=tuple(shares["client"] for shares in found["clients"]),
        start=start,
        drift_round=drift and drift["round"],
        drifted=drift and read_labels(str(path), drift["clients"], len(classes)),
    )


def read_labels(place: str, clients: list[Any], n_classes: int) -> Labels:
    for shares in clients:
        check(place, shares, SHARES)
        for part in ("train", "test"):
            if len(shares[part]) != n_classes:
                came = f"client {shares['client']} has {len(shares[part])} counts under {part}"
                raise fault(place, came, f"one for each of {n_classes} classes")
    train, test = (tuple(tuple(shares[part]) for shares in clients) for part in ("train", "test"))
    return Labels(train, test)


def read_rounds(path: Path) -> tuple[Round, ...]:
    rounds: list[Round] = []
    for place, line in read_lines(path, ROUND):
        if rounds and line["round"] != rounds[-1].round + 1:
            raise fault(place, f"round {line['round']}", f"round {rounds[-1].round + 1}")
        known: dict[str, Any] = dict.fromkeys(LATER) | line
        check(place, known, LATER)
        rounds.append(Round(**{field.name: known[field.name] for field in fields(Round)}))
    return tuple(rounds)


def read_clients(
    path: Path, evaluated: list[int]
) -> tuple[tuple[Score, ...], dict[str, dict[int, float]], dict[str, dict[int, float]]]:
    """Last scores; name -> round -> mean of what was noted; name -> client -> what it noted last."""
    scores: list[Score] = []
    noted: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    last: dict[str, dict[int, float]] = defaultdict(dict)
    for place, line in read_lines(path, SCORE):
        if line["n_correct"] > line["n_test"]:
            raise fault(place, f"{line['n_correct']} right of {line['n_test']}", "at most as many as were tested")
        if evaluated and line["round"] == evaluated[-1]:
            scores.append(Score(*(line[name] for name in Score._fields)))
        for name, value in line["notes"].items():
            if is_number(value) and line["round"] in evaluated:
                noted[name][line["round"]].append(value)
                last[name][line["client"]] = value
    means = {name: {r: sum(v) / len(v) for r, v in by_round.items()} for name, by_round in noted.items()}
    return tuple(sorted(scores)), means, dict(last)


def read_pairs(path: Path) -> Iterator[Pairs]:
    for place, line in read_lines(path, PAIRS):
        n_clients, values = len(line["clients"]), line["values"]
        if [len(row) for row in values] != [n_clients] * n_clients:
            raise fault(place, f"{len(values)} rows of values", f"a row and a column for each of {n_clients} clients")
        yield Pairs(line["round"], line["name"], tuple(line["clients"]), tuple(map(tuple, values)))


def read_matrices(path: Path, last: int) -> dict[str, Matrix]:
    found = {}
    for place, line in read_lines(path, MATRIX):
        rows, values = line["rows"], line["values"]
        if len(values) != len(rows) or len({len(row) for row in values}) > 1:
            raise fault(place, f"{len(values)} rows of values", f"a row for each of {len(rows)}, all as long")
        if line["round"] <= last:
            names = (line["round"], line["down"], line["across"])
            found[line["name"]] = Matrix(*names, tuple(rows), tuple(map(tuple, values)))
    return found


def read_traffic(
    path: Path, last: int
) -> tuple[dict[tuple[str, str, str], Counts], dict[int, ClientBytes], dict[tuple[int, str], int]]:
    """Sums by (step, direction, field), by client and by (round, direction), up to the last round that ended."""
    by_field: dict[tuple[str, str, str], list[float]] = defaultdict(lambda: [0, 0, 0.0, 0.0])
    sent, received, by_round = (defaultdict[Any, int](int) for _ in range(3))
    for place, line in read_lines(path, TRAFFIC):
        if line["round"] > last:
            continue
        n_bytes, direction = line["sent_bytes"], line["direction"]
        if (line["peer"] is None) == (direction == "peer"):
            raise fault(place, f"direction {direction!r} and peer {line['peer']}", "a peer for that direction alone")
        total = by_field[line["step"], direction, line["field"]]
        amounts = (n_bytes, line["packed_bytes"], line["entropy_bytes"], line["paper_bits"] / 8)
        total[:] = (a + b for a, b in zip(total, amounts, strict=True))
        by_round[line["round"], direction] += n_bytes
        if direction != "down":
            sent[line["client"]] += n_bytes
        if direction != "up":
            received[line["peer"] if direction == "peer" else line["client"]] += n_bytes
    clients = {client: ClientBytes(sent[client], received[client]) for client in sorted({*sent, *received})}
    return {key: Counts(*total) for key, total in by_field.items()}, clients, dict(by_round)  # type: ignore[arg-type]


def read_letters(path: Path) -> Letters | None:
    """Also of rounds that were played again: they went through the wire."""
    rows = [line for _, line in read_lines(path, LETTERS)]
    return Letters(*(sum(row[name] for row in rows) for name in Letters._fields)) if rows else None


def read_end(folder: Path, config: dict[str, Any], n_rounds: int) -> tuple[bool, str]:
    if (folder / "FAILED.json").exists():
        error = read_json(folder / "FAILED.json", {"error": TEXT})["error"]
        return False, f"failed after {n_rounds} of {config['rounds']} rounds: {error}"
    if (folder / "DONE.json").exists():
        read_json(folder / "DONE.json", {"method": TEXT, "rounds": WHOLE})
        return True, f"finished, {n_rounds} rounds"
    return False, f"unfinished, {n_rounds} of {config['rounds']} rounds"


# --- what a reader should know before trusting the numbers ---


def find_untested(config: dict[str, Any]) -> Iterator[str]:
    if config["data"].get("tested") == "validation":
        yield "Accuracies are of validation examples, by which settings may have been chosen; none is of test examples."


def find_lost(rounds: tuple[Round, ...]) -> Iterator[str]:
    void = [str(r.round) for r in rounds if r.is_void]
    if void:
        some = ", ".join(void[:8]) + (f" and {len(void) - 8} more" if len(void) > 8 else "")
        yield f"Too few replies: {len(void)} of {len(rounds)} rounds were void ({some})."
    n_sampled, n_replied = sum(r.n_sampled for r in rounds), sum(r.n_replied for r in rounds)
    if n_replied < n_sampled:
        yield f"Lost replies: {n_sampled - n_replied} of {n_sampled} never arrived."
    if n_refused := sum(r.n_refused or 0 for r in rounds):
        yield f"Refused replies: {n_refused} were not what an honest client sends (events.log names them)."


def find_small_tests(scores: tuple[Score, ...]) -> Iterator[str]:
    small = [score.n_test for score in scores if score.n_test < LEAST_TEST]
    if small:
        yield (
            f"Small test sets: {len(small)} of {len(scores)} clients have fewer than {LEAST_TEST} test examples "
            f"(the smallest {min(small)}), so their own accuracies, and p10, are coarse."
        )


def find_unequal_bytes(rounds: tuple[Round, ...], by_round: dict[tuple[int, str], int]) -> Iterator[str]:
    for r in rounds:
        recorded = {"up": r.upload_bytes, "down": r.download_bytes, "peer": r.peer_bytes}
        for direction, n_bytes in recorded.items():
            if by_round.get((r.round, direction), 0) != n_bytes:
                yield (
                    f"The records disagree: round {r.round} has {n_bytes} B {direction} in metrics.jsonl and "
                    f"{by_round.get((r.round, direction), 0)} B in traffic.jsonl; by-field figures may be off."
                )
                return
