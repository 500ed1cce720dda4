"""What `laconic bench tsetlin` does not measure: two threads against one, accuracy over many seeds, cold compilation.

python benchmarks/engine.py threads
python benchmarks/engine.py seeds --job A --seeds 100 [--plain] [--held-out]
NUMBA_CACHE_DIR=$(mktemp -d) python benchmarks/engine.py cold
"""

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from laconic.bench.jobs import JOBS, write_data
from laconic.tsetlin import Shape, build, build_coalesced, class_sums, fit, pack

HELD_OUT = 4000  # training images that follow those of a job


def load(name, *, held_out=False):
    """Shape, packed training and test samples and their labels, of a benchmark job; held_out: no test images."""
    job = JOBS[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "job.npz"
        example = write_data(replace(job, n_train=job.n_train + HELD_OUT * held_out), path)
        data = dict(np.load(path))
    if held_out:
        for part in "xy":
            data[f"{part}_train"], data[f"{part}_test"] = np.split(data[f"{part}_train"], [job.n_train])
    shape = Shape.image(*example, patch=job.patch, levels=job.levels) if job.patch else Shape.flat(*example)
    x, x_test = (pack(shape, data[key]) for key in ("x_train", "x_test"))
    return job, shape, x, data["y_train"].astype(int), x_test, data["y_test"].astype(int)


def train(job, shape, x, y, seed, *, threads=1, balanced=True):
    rng, size = np.random.default_rng(seed), (shape, job.n_classes, job.n_clauses)
    settings = {"threshold": job.threshold, "specificity": job.specificity, "balanced": balanced}
    made = build_coalesced(*size, rng, **settings) if job.coalesced else build(*size, **settings)
    fit(made, x, y, rng, epochs=job.epochs, threads=threads)
    return made


def threads(_):
    for name in ("A", "B"):
        job, shape, x, y, *_ = load(name)
        train(job, shape, x, y, 0, threads=2)
        seconds = {1: 0.0, 2: 0.0}
        for seed in range(4):
            made = {}
            for count in seconds:
                started = time.perf_counter()
                made[count] = train(job, shape, x, y, seed, threads=count)
                seconds[count] += time.perf_counter() - started
            assert np.array_equal(made[1].states, made[2].states)
            assert np.array_equal(made[1].weights, made[2].weights)
        print(f"{name}: two threads {seconds[1] / seconds[2]:.2f} times one, same states and weights")


def seeds(options):
    job, shape, x, y, x_test, y_test = load(options.job, held_out=options.held_out)
    numbers = range(1, options.seeds + 1)
    made = (train(job, shape, x, y, seed, balanced=not options.plain) for seed in numbers)
    scores = [(class_sums(one, x_test).argmax(axis=1) == y_test).mean() for one in made]
    error = np.std(scores, ddof=1) / len(scores) ** 0.5
    kind, images = "plain" if options.plain else "balanced", "held out" if options.held_out else "test"
    print(f"{options.job}, {kind}: {np.mean(scores):.4f} ± {error:.4f} of {images} images, {len(scores)} seeds")


def cold(_):
    made, x = build(Shape.image(28, 28, patch=(5, 5)), 10, 20), np.zeros((10, 28, 28), np.uint8)
    started = time.perf_counter()
    fit(made, x, np.arange(10), np.random.default_rng(0))
    trained = time.perf_counter()
    class_sums(made, x)
    print(f"first fit {trained - started:.1f} s, first prediction {time.perf_counter() - trained:.1f} s more")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("threads", "seeds", "cold"))
    parser.add_argument("--job", choices=[name for name, job in JOBS.items() if job.n_test])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--plain", action="store_true", help="not balanced: the peers' rules and no more")
    parser.add_argument("--held-out", action="store_true", help="tested on training images that the job leaves out")
    options = parser.parse_args()
    {"threads": threads, "seeds": seeds, "cold": cold}[options.what](options)
