"""What a client costs as clients become many: seconds and CPU seconds per client and round, memory, disk.

    python benchmarks/scale.py [--clients 100,10000] [--fleet local] [--rounds 2] [SETTING=VALUE ...]

Every client has 12 training and 4 test examples of two digits, drawn from the embedded ones with a tenth of the pixels
changed. cs-pfedtm, state on disk; in a round a tenth of the clients trains and all of them install the result; only the
last round is evaluated. Each number of clients runs in a process of its own. Rounds from 1 on count, with checkpoints.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from laconic.data import load
from laconic.records import Round
from laconic.runs.config import read_config
from laconic.runs.run import run

N_TRAIN, N_TEST, N_LABELS, NOISE = 12, 4, 2, 0.1
SETTINGS = (
    "method.name=cs-pfedtm",
    "method.n_clauses=20",
    "data.partition=natural",
    "data.group=owner",
    "data.booleanize=threshold:7",
    "fleet.participation=0.1",
    "fleet.state=disk",
    "evaluate_every=1000",
)


def make_data(path: Path, n_clients: int) -> None:
    digits, rng = load("digits"), np.random.default_rng(0)
    arrays = {}
    wanted = rng.integers(len(digits.classes), size=(n_clients, N_LABELS))
    for part, count in (("train", N_TRAIN), ("test", N_TEST)):
        labels = np.tile(wanted, count // N_LABELS).ravel()
        images, truth = (digits.x_train, digits.y_train) if part == "train" else (digits.x_test, digits.y_test)
        pools = [np.flatnonzero(truth == label) for label in range(len(digits.classes))]
        chosen = np.array([rng.choice(pools[label]) for label in labels])
        pixels = images[chosen]
        arrays |= {
            f"x_{part}": np.where(rng.random(pixels.shape) < NOISE, 16 - pixels, pixels).astype(np.uint8),
            f"y_{part}": labels,
            f"owner_{part}": np.repeat(np.arange(n_clients), count),
        }
    np.savez(path, **arrays)


class Clock:
    """When each round was over, checkpoint and all."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def started(self, title: str, rounds: int, first_round: int) -> None:
        self.tick()

    def progressed(self, round: int, done: int, total: int, what: str) -> None: ...

    def finished_round(self, row: Round, seconds: float) -> None:
        self.tick()

    def said(self, line: str) -> None:
        print(line, file=sys.stderr)

    def tick(self) -> None:
        self.wall.append(time.perf_counter())
        self.cpu.append(sum(read_cpu_seconds(pid) for pid in list_family()))


class Scale(threading.Thread):
    """Weighs this process and all that come from it, until told to stop."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak_bytes, self.is_over = 0, threading.Event()

    def run(self) -> None:
        while not self.is_over.wait(1):
            self.peak_bytes = max(self.peak_bytes, sum(read_memory_bytes(pid) for pid in list_family()))


def list_family() -> list[int]:
    """This process and its descendants."""
    found = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout.split()
    parents = dict(zip(map(int, found[::2]), map(int, found[1::2]), strict=True))
    family = [int(Path("/proc/self").resolve().name)]
    for pid in family:
        family += [child for child, parent in parents.items() if parent == pid]
    return family


def read_cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has ended
        return 0.0
    return (int(fields[11]) + int(fields[12])) / 100


def read_memory_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


def measure(n_clients: int, rounds: int, fleet: str, settings: list[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_data(folder / "many.npz", n_clients)
        given = [f"data.name={folder / 'many.npz'}", f"rounds={rounds}", f"fleet.name={fleet}"]
        config = read_config(None, [*SETTINGS, *given, *settings])
        clock, scale = Clock(), Scale()
        scale.start()
        summary = run(config, folder / "run", watch=clock)
        scale.is_over.set()
        files = [file for file in (folder / "run").rglob("*") if file.is_file()]
        kept = [file.stat().st_size for file in files if file.suffix == ".safetensors"]
        wall, cpu = np.diff(clock.wall), np.diff(clock.cpu)
        return {
            "clients": n_clients,
            "ms_per_client_round": 1000 * float(wall[1:].mean()) / n_clients,
            "cpu_ms_per_client_round": 1000 * float(cpu[1:].mean()) / n_clients,
            "round_seconds": [round(float(seconds), 2) for seconds in wall],
            "round_cpu_seconds": [round(float(seconds), 2) for seconds in cpu],
            "peak_mb": scale.peak_bytes / 1e6,
            "state_bytes_per_client": sum(kept) / n_clients,
            "records_bytes_per_client_round": sum(f.stat().st_size for f in files if f.suffix == ".jsonl")
            / n_clients
            / (rounds + 1),
            "accuracy": summary.accuracy_mean,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", default="100,10000")
    parser.add_argument("--fleet", default="local")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("settings", nargs="*")
    given = parser.parse_args()
    counts = [int(count) for count in given.clients.split(",")]
    if len(counts) == 1:
        print(json.dumps(measure(counts[0], given.rounds, given.fleet, given.settings)))
        return
    options = ["--fleet", given.fleet, "--rounds", str(given.rounds), *given.settings]
    for count in counts:
        command = [sys.executable, __file__, "--clients", str(count), *options]
        print(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip(), flush=True)


if __name__ == "__main__":
    main()
