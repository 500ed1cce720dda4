"""Few fuzzy clauses on full data sets, flat, one bit a pixel, beside as many classic ones; and `balanced`, on and off.

python benchmarks/fuzzy.py accuracy --held-out     # settings were chosen by these: 10,000 training images
python benchmarks/fuzzy.py accuracy --seeds 1,2,3,4,5 --out docs/results/fuzzy.json
python benchmarks/fuzzy.py balanced --out docs/results/balanced.json
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from laconic.bench.jobs import load
from laconic.tsetlin import Fuzzy, include_bits
from laconic.tsetlin.estimators import TsetlinClassifier

HELD_OUT = 10_000
CLASSIC = {"threshold": 1000, "specificity": 5.0}
FUZZY = {"specificity": 200.0, "balanced": False}
SETTINGS = {  # by (data, clauses a class, kind); each the best of a few on images held out
    ("fashion_mnist", 20, "classic"): {"threshold": 100, "specificity": 3.0, "epochs": 50},
    ("fashion_mnist", 20, "fuzzy"): FUZZY | {"threshold": 2000, "fuzzy": Fuzzy(50, 50), "epochs": 50},
    ("fashion_mnist", 200, "classic"): CLASSIC | {"epochs": 30},
    ("fashion_mnist", 200, "fuzzy"): FUZZY | {"threshold": 4000, "fuzzy": Fuzzy(10, 20), "epochs": 30},
    ("mnist", 20, "classic"): CLASSIC | {"epochs": 50},
    ("mnist", 20, "fuzzy"): FUZZY | {"threshold": 2000, "fuzzy": Fuzzy(50, 50), "epochs": 50},
    ("mnist", 200, "classic"): CLASSIC | {"epochs": 30},
    ("mnist", 200, "fuzzy"): FUZZY | {"threshold": 4000, "fuzzy": Fuzzy(25, 50), "epochs": 30},
}


def load_bits(name, *, held_out):
    """Rows of 0/1 and labels: to train on, and to be tested on."""
    data = load(name)
    parts = []
    for part in ("train", "test"):
        y = data[f"y_{part}"].ravel()
        parts.append(((data[f"x_{part}"] > 75).reshape(len(y), -1).astype(np.uint8), y))
    if not held_out:
        return parts
    x, y = parts[0]
    return (x[:-HELD_OUT], y[:-HELD_OUT]), (x[-HELD_OUT:], y[-HELD_OUT:])


def measure_accuracy(options):
    for (name, n_clauses, kind), settings in SETTINGS.items():
        (x, y), (x_test, y_test) = load_bits(name, held_out=options.held_out)
        for seed in options.seeds:
            classifier = TsetlinClassifier(n_clauses, booleanizer=None, random_state=seed, **settings)
            started = time.process_time()
            classifier.fit(x, y)
            trained = time.process_time()
            accuracy = classifier.score(x_test, y_test)
            yield {
                "data": name,
                "n_clauses": n_clauses,
                "kind": kind,
                "seed": seed,
                "tested": "held out" if options.held_out else "test",
                "accuracy": round(float(accuracy), 4),
                "literals": round(float(include_bits(classifier.machine_).sum(axis=2).mean()), 1),
                "train_seconds": round(trained - started, 2),
                "settings": {key: str(value) for key, value in settings.items()},
            }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--held-out", action="store_true", help="tested on training images that are set aside")
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in text.split(",")], default=[0])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    for row in measure_accuracy(options):
        rows.append(row)
        print(json.dumps(row), flush=True)
    if options.out is not None:
        options.out.write_text("[\n" + ",\n".join(f" {json.dumps(row)}" for row in rows) + "\n]\n", "utf-8")


if __name__ == "__main__":
    main()
