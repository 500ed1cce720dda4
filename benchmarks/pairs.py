"""Two versions of the library on the benchmark's jobs, in turns: how long one takes of the other's time.

    git worktree add /tmp/old COMMIT
    python benchmarks/pairs.py /tmp/old/src src --jobs E,A --fits 60
    python benchmarks/pairs.py /tmp/old/src src --jobs fedavg,fedpurin --fits 20

Each version has a process of its own. A job of `laconic bench tsetlin` is trained fit by fit, in processor time, one of
`laconic bench networks` round by round on two threads. Says of fits whether both end with the same bits.
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

ROUNDS = """
import json, sys, time
from laconic.bench.networks import OurRounds, draw_images

federations = {}
for line in sys.stdin:
    name, _ = json.loads(line)
    if name not in federations:
        federations[name] = OurRounds(name, {client: draw_images(client, 600) for client in range(100)})
        federations[name].run()
    seconds = time.perf_counter()
    federations[name].run()
    print(json.dumps([time.perf_counter() - seconds, ""]), flush=True)
"""
FITS = """
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
    def __init__(self, source: Path, caches: Path, worker: str) -> None:
        environment = os.environ | {"PYTHONPATH": str(source.resolve()), "NUMBA_CACHE_DIR": str(caches)}
        command = [sys.executable, "-c", worker]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def close(self) -> None:
        self.process.kill()
        self.process.wait()

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
        for job in options.jobs.split(","):
            worker, data = FITS if job in JOBS else ROUNDS, Path(folder) / f"{job}.npz"
            versions = [Version(getattr(options, name), Path(folder) / name, worker) for name in ("old", "new")]
            if job in JOBS:
                write_data(JOBS[job], data)
            same = len({version.fit(job, data)[1] for version in versions}) == 1  # compiles, too
            pairs = [[version.fit(job, data)[0] for version in versions] for _ in range(options.fits)]
            ratios = sorted(new / old for old, new in pairs)
            quarter = len(ratios) // 4
            print(
                f"{job}: new takes {statistics.median(ratios):.3f} of the old time (middle half {ratios[quarter]:.3f} "
                f"to {ratios[-1 - quarter]:.3f})" + (f", {'same' if same else 'OTHER'} bits" if job in JOBS else ""),
                flush=True,
            )
            for version in versions:
                version.close()


if __name__ == "__main__":
    main()
