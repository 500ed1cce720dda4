"""Two versions of the engine on the benchmark's jobs, in turns, fit by fit: how long one takes of the other's time.

    git worktree add /tmp/old COMMIT
    python benchmarks/pairs.py /tmp/old/src src --jobs E,A --fits 60

Each version has a process of its own. Says whether both end with the same states and weights.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from laconic.bench.jobs import JOBS, write_data

WORKER = """
import hashlib, json, sys, time
import numpy as np
from laconic import tsetlin
from laconic.bench.jobs import JOBS

for line in sys.stdin:
    name, path = json.loads(line)
    job, data = JOBS[name], np.load(path)
    x, y = data["x_train"].astype(np.uint8), data["y_train"]
    patch = {"patch": job.patch, "levels": job.levels}
    shape = tsetlin.Shape.image(*x.shape[1:], **patch) if job.patch else tsetlin.Shape.flat(x.shape[1])
    seconds, digest = time.process_time(), hashlib.sha256()
    for part in np.array_split(np.arange(len(x)), max(1, job.n_clients)):
        rng = np.random.default_rng(1)
        size, options = (shape, job.n_classes, job.n_clauses), {"threshold": job.threshold, "balanced": True}
        if job.coalesced:
            machine = tsetlin.build_coalesced(*size, rng, specificity=job.specificity, **options)
        else:
            machine = tsetlin.build(*size, specificity=job.specificity, **options)
        tsetlin.fit(machine, x[part], y[part], rng, epochs=job.epochs)
        digest.update(machine.states.tobytes() + machine.weights.tobytes())
    print(json.dumps([time.process_time() - seconds, digest.hexdigest()]), flush=True)
"""


class Version:
    def __init__(self, source: Path, caches: Path) -> None:
        environment = os.environ | {"PYTHONPATH": str(source.resolve()), "NUMBA_CACHE_DIR": str(caches)}
        command = [sys.executable, "-c", WORKER]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def fit(self, job: str, data: Path) -> tuple[float, str]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([job, str(data)]) + "\n")
        self.process.stdin.flush()
        seconds, digest = json.loads(self.process.stdout.readline())
        return seconds, digest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="folder that holds the package laconic")
    parser.add_argument("new", type=Path)
    parser.add_argument("--jobs", default="E,A,B,C,D")
    parser.add_argument("--fits", type=int, default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        versions = [Version(getattr(options, name), Path(folder) / name) for name in ("old", "new")]
        for job in options.jobs.split(","):
            data = Path(folder) / f"{job}.npz"
            write_data(JOBS[job], data)
            same = len({version.fit(job, data)[1] for version in versions}) == 1  # compiles, too
            pairs = [[version.fit(job, data)[0] for version in versions] for _ in range(options.fits)]
            ratios = sorted(new / old for old, new in pairs)
            quarter = len(ratios) // 4
            print(
                f"{job}: new takes {statistics.median(ratios):.3f} of the old time (middle half {ratios[quarter]:.3f} "
                f"to {ratios[-1 - quarter]:.3f}), {'same' if same else 'OTHER'} bits",
                flush=True,
            )


if __name__ == "__main__":
    main()
