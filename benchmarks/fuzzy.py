"""Fuzzy clauses on full data sets beside as many classic ones: few, flat, one bit a pixel; or thousands, on patches.

python benchmarks/fuzzy.py --held-out     # settings were chosen by these: 10,000 training images
python benchmarks/fuzzy.py --seeds 1,2,3,4,5 --out docs/results/fuzzy.json
python benchmarks/fuzzy.py --thousands --seeds 1,2,3 --out docs/results/fuzzy.json
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
PATCHES = {"patch": (10, 10), "epochs": 20, "balanced": False}
THOUSANDS = {  # 2,000 clauses in all
    ("fashion_mnist", 200, "classic"): PATCHES | {"threshold": 2000, "specificity": 5.0},
    ("fashion_mnist", 200, "fuzzy"): PATCHES | {"threshold": 4000, "specificity": 20.0, "fuzzy": Fuzzy(10, 40)},
    ("mnist", 200, "classic"): PATCHES | {"threshold": 2500, "specificity": 10.0},
    ("mnist", 200, "fuzzy"): PATCHES | {"threshold": 4000, "specificity": 10.0, "fuzzy": Fuzzy(5, 10)},
}
LEVELS = {"fashion_mnist": [round(255 * level / 9) for level in range(1, 9)], "mnist": [75]}


def load_bits(name, levels, *, held_out):
    """0/1 images, a channel for each level, and labels: to train on, and to be tested on."""
    data = load(name)
    parts = []
    for part in ("train", "test"):
        bits = [data[f"x_{part}"].reshape(-1, 28, 28) > level for level in levels]
        parts.append((np.stack(bits, axis=-1).astype(np.uint8), data[f"y_{part}"].ravel()))
    if not held_out:
        return parts
    x, y = parts[0]
    return (x[:-HELD_OUT], y[:-HELD_OUT]), (x[-HELD_OUT:], y[-HELD_OUT:])


def measure_accuracy(options):
    for (name, n_clauses, kind), settings in (THOUSANDS if options.thousands else SETTINGS).items():
        levels = LEVELS[name] if options.thousands else [75]
        (x, y), (x_test, y_test) = load_bits(name, levels, held_out=options.held_out)
        if "patch" not in settings:
            x, x_test = x.reshape(len(x), -1), x_test.reshape(len(x_test), -1)
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
    parser.add_argument("--thousands", action="store_true", help="of clauses in all, on patches of grey levels")
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in text.split(",")], default=[0])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    for row in measure_accuracy(options):
        rows.append(row)
        print(json.dumps(row), flush=True)
    if options.out is not None:
        known = json.loads(options.out.read_text("utf-8")) if options.out.exists() else {}
        known["thousands" if options.thousands else "accuracy"] = rows
        options.out.write_text(json.dumps(known, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
