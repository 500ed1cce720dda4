"""From a fleet and its conditions to the records of a run folder."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from laconic import __version__
from laconic.records import (
    ClientScore,
    Drift,
    Environment,
    Holding,
    Matrix,
    Pairs,
    Partition,
    Round,
    Sockets,
    Summary,
    read_lines,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from laconic.fleets.base import BaseFleet
    from laconic.fleets.host import Score
    from laconic.runs.config import Config
    from laconic.runs.prepare import Prepared


def describe_environment() -> Environment:
    return Environment(
        laconic=__version__,
        python=platform.python_version(),
        **{name: _version(name) for name in ("numpy", "numba", "torch")},
        cpu=_cpu_name(),
        cores=os.cpu_count(),
        git=_git_commit(),
        command=shlex.join([_program(Path(sys.argv[0])), *sys.argv[1:]]),
        started=datetime.now(UTC).isoformat(timespec="milliseconds"),  # runs of a comparison are told apart by it
    )


def describe_partition(prepared: Prepared) -> Partition:
    shares, dataset = prepared.partition, prepared.dataset

    def count(round: int) -> list[Holding]:
        counts = zip(shares.counts(dataset, round), prepared.turns, prepared.names, strict=True)
        return [Holding(**parts, quarter_turns=turns, name=name) for parts, turns, name in counts]

    return Partition(
        classes=list(dataset.classes),
        clients=count(0),
        sha256=shares.sha256,
        drift=Drift(shares.drift_round, count(shares.drift_round)) if shares.drifted else None,
    )


def describe_round(fleet: BaseFleet, scores: list[Score] | None, *, is_void: bool) -> Round:
    sent = {way: fleet.ledger.total(direction=way) for way in ("up", "down", "peer")}
    tested = [score for score in scores or () if score.n_test]
    accuracies = np.array([score.n_correct / score.n_test for score in tested])
    pooled = sum(score.n_correct for score in tested) / max(1, sum(score.n_test for score in tested))
    return Round(
        round=fleet.round,
        accuracy_mean=_number(accuracies, np.mean),
        accuracy_p10=_number(accuracies, lambda values: np.percentile(values, 10)),
        accuracy_min=_number(accuracies, np.min),
        accuracy_pooled=pooled if tested else None,
        upload_bytes=sent["up"].sent_bytes,
        download_bytes=sent["down"].sent_bytes,
        peer_bytes=sent["peer"].sent_bytes,
        paper_upload_bytes=sent["up"].paper_bits / 8,
        paper_download_bytes=sent["down"].paper_bits / 8,
        busiest_bytes=max(fleet.spent.values(), default=0),
        budget_bytes=fleet.conditions.budget_bytes,
        n_reached=len(fleet.spent),
        n_sampled=len(fleet.sampled) if fleet.round else 0,
        n_replied=len(fleet.replied.intersection(fleet.sampled)) if fleet.round else 0,
        n_lost=fleet.n_lost,
        n_refused=len(fleet.refused),
        is_void=is_void,
        notes=dict(fleet.notes),
    )


def describe_clients(fleet: BaseFleet, scores: list[Score]) -> list[ClientScore]:
    return [
        ClientScore(
            round=fleet.round,
            client=score.client,
            n_test=score.n_test,
            n_correct=score.n_correct,
            accuracy=score.n_correct / score.n_test if score.n_test else None,
            notes={**split_notes(fleet.client_notes.get(score.client, {}))[0], **describe_also(score)},
        )
        for score in scores
    ]


def describe_also(score: Score) -> dict[str, float]:
    """Accuracies of a client's further predictions, as notes."""
    return {f"{name}_accuracy": n_correct / score.n_test for name, n_correct in score.also}


def describe_pairs(fleet: BaseFleet) -> list[Pairs]:
    """Four digits, for a matrix is long and nobody sees more."""
    return [
        Pairs(fleet.round, name, clients, np.round(matrix, 4).tolist())
        for name, (clients, matrix) in fleet.pair_notes.items()
    ]


def describe_matrices(fleet: BaseFleet) -> list[Matrix]:
    """What the server noted, and what clients noted of their classes, a row for each."""
    lines = [
        Matrix(fleet.round, name, down, across, list(range(len(matrix))), shorten(matrix))
        for name, (down, across, matrix) in fleet.matrix_notes.items()
    ]
    noted = {client: split_notes(notes)[1] for client, notes in sorted(fleet.client_notes.items())}
    for name in dict.fromkeys(name for rows in noted.values() for name in rows):
        rows = {client: mine[name] for client, mine in noted.items() if name in mine}
        values = shorten(np.array(list(rows.values())))
        lines.append(Matrix(fleet.round, name, "client", "class", list(rows), values))
    return lines


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


def summarize(config: Config, folder: Path, rows: Sequence[Round], seconds: float) -> Summary:
    means = [row.accuracy_mean for row in rows if row.accuracy_mean is not None]
    sockets = list(read_lines(folder, Sockets))
    return Summary(
        run=str(folder),
        method=config.method_name,
        rounds=rows[-1].round,
        tested=config.data.tested,
        accuracy_mean=rows[-1].accuracy_mean,
        accuracy_best=max(means, default=None),
        accuracy_p10=rows[-1].accuracy_p10,
        upload_bytes=sum(row.upload_bytes for row in rows),
        download_bytes=sum(row.download_bytes for row in rows),
        paper_upload_bytes=sum(row.paper_upload_bytes for row in rows),
        paper_download_bytes=sum(row.paper_download_bytes for row in rows),
        seconds=round(seconds, 3),
        socket_upload_bytes=sum(row.up_bytes for row in sockets) if sockets else None,
        socket_download_bytes=sum(row.down_bytes for row in sockets) if sockets else None,
    )


def _program(path: Path) -> str:
    """As one would type it: python -m laconic has its file there."""
    return path.parent.name if path.name == "__main__.py" else path.name


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
