"""What `laconic bench tsetlin` does not measure: two threads against one, accuracy over many seeds, cold compilation.

python benchmarks/engine.py threads
python benchmarks/engine.py seeds --job A --seeds 100 [--in-order]
NUMBA_CACHE_DIR=$(mktemp -d) python benchmarks/engine.py cold
"""

import argparse
import tempfile
import time
from pathlib import Path
from unittest import mock

import numpy as np

from laconic.bench.jobs import JOBS, write_data
from laconic.tsetlin import Shape, build, class_sums, fit, machine, pack


def load(name):
    """Shape, packed training and test samples and their labels, of a benchmark job that is not coalesced."""
    job = JOBS[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "job.npz"
        example = write_data(job, path)
        data = dict(np.load(path))
    shape = Shape.image(*example, patch=job.patch, levels=job.levels) if job.patch else Shape.flat(*example)
    x, x_test = (pack(shape, data[key]) for key in ("x_train", "x_test"))
    return job, shape, x, data["y_train"].astype(int), x_test, data["y_test"].astype(int)


def train(job, shape, x, y, seed, threads=1):
    made = build(shape, job.n_classes, job.n_clauses, threshold=job.threshold, specificity=job.specificity)
    fit(made, x, y, np.random.default_rng(seed), epochs=job.epochs, threads=threads)
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
    job, shape, x, y, x_test, y_test = load(options.job)
    draw = machine._draw_epoch

    def draw_in_order(*arguments):
        order, target, other = draw(*arguments)
        place = np.argsort(order)
        return order[place], target[place], other[place]

    with mock.patch.object(machine, "_draw_epoch", draw_in_order if options.in_order else draw):
        made = [train(job, shape, x, y, seed) for seed in range(1, options.seeds + 1)]
    scores = [(class_sums(m, x_test).argmax(axis=1) == y_test).mean() for m in made]
    error = np.std(scores, ddof=1) / len(scores) ** 0.5
    order = "in data order" if options.in_order else "shuffled"
    print(f"{options.job}, {order}: accuracy {np.mean(scores):.4f} ± {error:.4f} over {len(scores)} seeds")


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
    parser.add_argument("--job", choices=[name for name, job in JOBS.items() if job.n_test and not job.coalesced])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--in-order", action="store_true", help="train in the order of the data, as the peers do")
    options = parser.parse_args()
    {"threads": threads, "seeds": seeds, "cold": cold}[options.what](options)
