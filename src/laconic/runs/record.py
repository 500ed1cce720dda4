"""The run folder: append-only records that any later reader understands without the code that made them (schema 1)."""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from laconic import __version__
from laconic.files import write_atomically

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from laconic.fleets.base import BaseFleet
    from laconic.fleets.host import Score
    from laconic.runs.prepare import Prepared

SCHEMA = 1
LOGS = ("metrics.jsonl", "clients.jsonl", "pairs.jsonl", "matrices.jsonl", "traffic.jsonl", "times.jsonl")


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    write_atomically(path, (json.dumps({"schema": SCHEMA} | dict(content), indent=2) + "\n").encode())


def append_lines(path: Path, lines: Iterable[str]) -> int:
    """The file's length once the lines are safe."""
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
        file.flush()
        os.fsync(file.fileno())
        return file.tell()


def log_event(folder: Path, line: str) -> None:
    """What happened when, for people; the records proper hold nothing of it."""
    append_lines(folder / "events.log", [f"{datetime.now(UTC).isoformat(timespec='seconds')}  {line}"])


def cut(path: Path, n_bytes: int) -> None:
    """Drops what was written after a checkpoint."""
    if path.exists() or n_bytes:
        with path.open("ab") as file:
            if file.tell() < n_bytes:
                raise ValueError(
                    f"{path} has {file.tell()} bytes, {n_bytes} were due; restore a copy or start the run anew"
                )
            file.truncate(n_bytes)


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def describe_environment(command: str) -> dict[str, Any]:
    return {
        "laconic": __version__,
        "python": platform.python_version(),
        **{name: _version(name) for name in ("numpy", "numba", "torch")},
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "git": _git_commit(),
        "command": command,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def describe_partition(prepared: Prepared) -> dict[str, Any]:
    shares, dataset = prepared.partition, prepared.dataset

    def count(round: int) -> list[dict[str, Any]]:
        counts = zip(shares.counts(dataset, round), prepared.turns, strict=True)
        return [client | {"quarter_turns": turns} for client, turns in counts]

    drift = {"round": shares.drift_round, "clients": count(shares.drift_round)}
    return {
        "classes": list(dataset.classes),
        "clients": count(0),
        "sha256": shares.sha256,
        "drift": drift if shares.drifted else None,
    }


def describe_round(fleet: BaseFleet, scores: list[Score] | None, *, is_void: bool) -> dict[str, Any]:
    """A line of metrics.jsonl."""
    sent = {way: fleet.ledger.total(direction=way) for way in ("up", "down", "peer")}
    tested = [score for score in scores or () if score.n_test]
    accuracies = np.array([score.n_correct / score.n_test for score in tested])
    pooled = sum(score.n_correct for score in tested) / max(1, sum(score.n_test for score in tested))
    return {
        "round": fleet.round,
        "accuracy_mean": _number(accuracies, np.mean),
        "accuracy_p10": _number(accuracies, lambda values: np.percentile(values, 10)),
        "accuracy_min": _number(accuracies, np.min),
        "accuracy_pooled": pooled if tested else None,
        "upload_bytes": sent["up"].sent_bytes,
        "download_bytes": sent["down"].sent_bytes,
        "peer_bytes": sent["peer"].sent_bytes,
        "paper_upload_bytes": sent["up"].paper_bits / 8,
        "paper_download_bytes": sent["down"].paper_bits / 8,
        "busiest_bytes": max(fleet.spent.values(), default=0),
        "budget_bytes": fleet.conditions.budget_bytes,
        "n_reached": len(fleet.spent),
        "n_sampled": len(fleet.sampled) if fleet.round else 0,
        "n_replied": len(fleet.replied.intersection(fleet.sampled)) if fleet.round else 0,
        "n_lost": fleet.n_lost,
        "n_refused": len(fleet.refused),
        "is_void": is_void,
        "notes": fleet.notes,
    }


def describe_clients(fleet: BaseFleet, scores: list[Score]) -> list[dict[str, Any]]:
    """Lines of clients.jsonl."""
    return [
        {
            "round": fleet.round,
            "client": score.client,
            "n_test": score.n_test,
            "n_correct": score.n_correct,
            "accuracy": score.n_correct / score.n_test if score.n_test else None,
            "notes": split_notes(fleet.client_notes.get(score.client, {}))[0] | describe_also(score),
        }
        for score in scores
    ]


def describe_also(score: Score) -> dict[str, float]:
    """Accuracies of a client's further predictions, as notes."""
    return {f"{name}_accuracy": n_correct / score.n_test for name, n_correct in score.also}


def describe_pairs(fleet: BaseFleet) -> list[dict[str, Any]]:
    """Lines of pairs.jsonl; four digits, for a matrix is long and nobody sees more."""
    return [
        {"round": fleet.round, "name": name, "clients": clients, "values": np.round(matrix, 4).tolist()}
        for name, (clients, matrix) in fleet.pair_notes.items()
    ]


def describe_matrices(fleet: BaseFleet) -> list[dict[str, Any]]:
    """Lines of matrices.jsonl: what the server noted, and what clients noted of their classes, a row for each."""
    lines = [
        {"name": name, "down": down, "across": across, "rows": list(range(len(matrix))), "values": shorten(matrix)}
        for name, (down, across, matrix) in fleet.matrix_notes.items()
    ]
    noted = {client: split_notes(notes)[1] for client, notes in sorted(fleet.client_notes.items())}
    for name in dict.fromkeys(name for rows in noted.values() for name in rows):
        rows = {client: mine[name] for client, mine in noted.items() if name in mine}
        values = shorten(np.array(list(rows.values())))
        lines.append({"name": name, "down": "client", "across": "class", "rows": list(rows), "values": values})
    return [{"round": fleet.round} | line for line in lines]


def split_notes(notes: Mapping[str, float]) -> tuple[dict[str, float], dict[str, list[float]]]:
    """A client's numbers, and the rows it noted: `Site.note_classes` has a number for each class, name[class]."""
    numbers, rows = dict[str, float](), dict[str, list[float]]()
    for name, number in notes.items():
        if name.endswith("]"):
            rows.setdefault(name.partition("[")[0], []).append(number)
        else:
            numbers[name] = number
    return numbers, rows


def shorten(matrix: NDArray[np.floating[Any]]) -> list[list[float]]:
    """Four digits behind the point, as for pairs; what is no number becomes 0."""
    rows: list[list[float]] = np.nan_to_num(matrix.astype(np.float64), posinf=0, neginf=0).round(4).tolist()
    return rows


def _number(values: NDArray[np.float64], summary: Any) -> float | None:
    return float(summary(values)) if len(values) else None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _git_commit() -> str | None:
    """Of the source tree laconic runs from, if it is one."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def command_line() -> str:
    return shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
