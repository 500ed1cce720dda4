"""What a run folder survives: kill -9 at random moments, flipped bits, two who go on with the same run.

    python benchmarks/chaos.py kills 100      so many moments for each of 3 methods, 2 stores and 2 fleets
    python benchmarks/chaos.py flips 180      single bits, all over the files that a checkpoint goes on from
    python benchmarks/chaos.py locks 20       pairs of `laconic run --resume` at once

Each prints how many ended as they should, and what the others did. Runs are of a process of their own, forked from one
that has imported all it needs, so that moments fall into the run and not before it.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

from laconic.conformance import read_all
from laconic.runs.config import read_config
from laconic.runs.plan import go_on, plan_resumption
from laconic.runs.run import run

SMALL = ["data.clients=4", "rounds=6", "fleet.workers=2", "fleet.lost_replies=0.2"]
METHODS = {
    "fedtm": ["method.n_clauses=10", "method.epochs=2"],
    "clausepool": ["method.n_clauses=10", "method.min_examples=2"],
    "fedavg": ["method.training.model=mlp", "method.training.epochs=1"],
}
SETTINGS = [
    [f"method.name={method}", *more, f"fleet.state={store}", f"fleet.name={fleet}", *SMALL]
    for method, more in METHODS.items()
    for store in ("memory", "disk")
    for fleet in ("local", "process")
]


# ---------------------------------------------------------------- kill -9
def start(settings: list[str], folder: Path) -> int:
    """A process that begins the run in this folder or goes on with it."""
    if pid := os.fork():
        return pid
    code = 1
    try:
        os.dup2(os.open(folder.parent / "output", os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
        go_on(read_config(None, settings), folder, None)
        code = 0
    finally:  # nothing of the parent's may run here
        os._exit(code)


def finish(settings: list[str], folder: Path) -> float:
    """Seconds that it took."""
    started = time.monotonic()
    if os.waitpid(start(settings, folder), 0)[1]:
        raise RuntimeError(f"{folder} did not come to its end; see {folder.parent / 'output'}")
    return time.monotonic() - started


def kill_at(moment: float, settings: list[str], folder: Path) -> bool:
    """Whether it was still running."""
    pid = start(settings, folder)
    time.sleep(moment)
    os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1] == signal.SIGKILL


def kills(n_moments: int, home: Path, chance: random.Random) -> Iterator[str]:
    for number, settings in enumerate(SETTINGS):
        whole = home / f"{number}-whole"
        seconds, due, n_done = finish(settings, whole), read_all(whole), 0
        while n_done < n_moments:
            folder = home / f"{number}-{n_done}"
            if kill_at(chance.uniform(0, seconds), settings, folder):
                n_done += 1
                finish(settings, folder)
                yield "same end" if read_all(folder) == due else f"another end: {' '.join(settings)}"
            shutil.rmtree(folder, ignore_errors=True)
        print(f"{n_done} kills within {seconds:.1f} s: {' '.join(settings[:1] + settings[-6:-4])}", flush=True)


# ---------------------------------------------------------------- flipped bits
def list_files(folder: Path) -> dict[str, int]:
    """What the run in this folder goes on from, each with the bytes of it that count."""
    manifest = json.loads((folder / "checkpoints" / "manifest.json").read_text("utf-8"))
    names = [*manifest["sha256"], "checkpoints/manifest.json"]
    sizes = {name: manifest["lengths"].get(name, (folder / name).stat().st_size) for name in names}
    return {name: size for name, size in sizes.items() if size}


def flip(path: Path, n_bytes: int, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[chance.randrange(n_bytes)] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def go_on_damaged(folder: Path, name: str, due: dict[str, bytes]) -> str:
    """As laconic run --resume does."""
    try:
        for run_folder, config in plan_resumption(folder, ["rounds=4"]).items():
            go_on(config, run_folder, None)
    except ValueError as error:
        is_named = Path(name).name in str(error) and any(word in str(error) for word in ("restore", "start the run"))
        return "refused by name" if is_named else f"refused otherwise: {name}: {error}"
    except Exception as error:
        return f"failed: {name}: {type(error).__name__}: {error}"
    return f"went on: {name}: {'the same end' if read_all(folder) == due else 'ANOTHER END'}"


def flips(n_flips: int, home: Path, chance: random.Random) -> Iterator[str]:
    for store in ("memory", "disk"):
        config = read_config(None, [*SETTINGS[0], f"fleet.state={store}", "rounds=2"])
        run(config, home / store)
        shutil.copytree(home / store, home / f"{store}-whole")
        ((_, longer),) = plan_resumption(home / f"{store}-whole", ["rounds=4"]).items()
        go_on(longer, home / f"{store}-whole", None)
        due, files = read_all(home / f"{store}-whole"), list_files(home / store)
        for number, (name, n_bytes) in zip(range(n_flips // 2), cycle(files.items()), strict=False):
            folder = home / f"{store}-{number}"
            shutil.copytree(home / store, folder)
            flip(folder / name, n_bytes, chance)
            yield go_on_damaged(folder, name, due)
            shutil.rmtree(folder)


# ---------------------------------------------------------------- two at once
def locks(n_pairs: int, home: Path, chance: random.Random) -> Iterator[str]:
    config = read_config(None, [*SETTINGS[0], "rounds=1"])
    run(config, home / "begun")
    command = [sys.executable, "-c", "from laconic.cli import main; main()", "run", "--set", "rounds=60", "--json"]
    for number in range(n_pairs):
        folder = home / f"pair-{number}"
        shutil.copytree(home / "begun", folder)
        pair = [
            subprocess.Popen([*command, "--resume", str(folder)], stdout=-1, stderr=-1, text=True) for _ in range(2)
        ]
        errors = {process.pid: process.communicate()[1] for process in pair}
        codes = {process.pid: process.returncode for process in pair}
        yield judge_pair(codes, errors)
        shutil.rmtree(folder)


def judge_pair(codes: dict[int, int], errors: dict[int, str]) -> str:
    """One comes to its end, the other is told who holds the folder."""
    if sorted(codes.values()) != [0, 2]:
        return f"ended with {sorted(codes.values())}"
    winner, loser = sorted(codes, key=lambda pid: codes[pid])
    told = f"is in use by process {winner} on " in errors[loser]
    return "one went on, one was told who holds it" if told else f"told otherwise: {errors[loser]}"


COMMANDS = {
    "kills": (kills, "same end"),
    "flips": (flips, "refused by name"),
    "locks": (locks, "one went on, one was told who holds it"),
}


def main(what: str, count: str) -> None:
    play, due = COMMANDS[what]
    with tempfile.TemporaryDirectory(prefix="laconic-") as home:
        outcomes = Counter(play(int(count), Path(home), random.Random(0)))
    print(f"{what}: {outcomes[due]} of {outcomes.total()} as they should: {due}")
    for outcome, times in outcomes.items():
        if outcome != due:
            print(f"  {times} × {outcome}")
    sys.exit(outcomes[due] != outcomes.total())


if __name__ == "__main__":
    main(*sys.argv[1:])
