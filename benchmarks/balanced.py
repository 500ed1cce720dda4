"""Does `balanced` pay? By number of examples, of classes, and how unequal classes are; no test image is looked at.

    python benchmarks/balanced.py --out docs/results/fuzzy.json

MNIST and Fashion-MNIST, flat, one bit a pixel (> 75), ten draws of training images of each; the same images train a
plain and a balanced machine, 1,000 others of the training set tell them apart.
"""

import argparse
import json
from itertools import product
from pathlib import Path

import numpy as np

from laconic.bench.jobs import load
from laconic.tsetlin import Fuzzy, Shape, build, class_sums, fit, pack

N_TESTED, N_SEEDS, EPOCHS = 1000, 10, 30
SHAPE = Shape.flat(784)
CLASSIC = {"n_clauses": 100, "threshold": 50, "specificity": 3.0}
FUZZY = {"n_clauses": 20, "threshold": 400, "specificity": 50.0, "fuzzy": Fuzzy(failures=10, literals=30)}


def draw(bits, labels, n_examples, n_classes, seed, *, is_even):
    """Examples of some classes, as likely as each other or by a Dirichlet distribution (0.5)."""
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(10)[:n_classes]
    shares = np.full(n_classes, 1 / n_classes) if is_even else rng.dirichlet(np.full(n_classes, 0.5))
    shares = np.maximum(shares, 0.02)
    y = rng.choice(n_classes, size=n_examples + N_TESTED, p=shares / shares.sum())
    places = np.empty(len(y), int)
    for k, label in enumerate(chosen):
        mine = np.flatnonzero(y == k)
        places[mine] = rng.permutation(np.flatnonzero(labels == label))[: len(mine)]
    return bits[places], y


def compare(x, y, n_examples, n_classes, seed, settings):
    """Percent right of a plain and of a balanced machine."""
    train, others = pack(SHAPE, x[:n_examples]), pack(SHAPE, x[n_examples:])
    for balanced in (False, True):
        machine = build(SHAPE, n_classes, balanced=balanced, **settings)
        fit(machine, train, y[:n_examples], np.random.default_rng(seed), epochs=EPOCHS)
        yield 100 * float((class_sums(machine, others).argmax(axis=1) == y[n_examples:]).mean())


def measure(data):
    for is_even, n_classes, n_examples in product((True, False), (2, 5, 10), (100, 500, 2000)):
        for kind, settings in (("classic", CLASSIC), ("fuzzy", FUZZY)):
            pairs = [
                tuple(compare(*draw(*part, n_examples, n_classes, seed, is_even=is_even), n_examples, n_classes, seed,
                              settings))
                for seed in range(N_SEEDS) for part in data
            ]  # fmt: skip
            plain, balanced = np.array(pairs).T
            gains = balanced - plain
            yield {
                "shares": "even" if is_even else "uneven",
                "n_classes": n_classes,
                "n_examples": n_examples,
                "kind": kind,
                "plain": round(float(plain.mean()), 2),
                "gain": round(float(gains.mean()), 2),
                "error": round(float(gains.std(ddof=1) / len(gains) ** 0.5), 2),
            }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    data = []
    for name in ("fashion_mnist", "mnist"):
        arrays = load(name)
        bits = (arrays["x_train"] > 75).reshape(len(arrays["x_train"]), -1).astype(np.uint8)
        data.append((bits, arrays["y_train"].ravel()))
    rows = []
    for row in measure(data):
        rows.append(row)
        print(json.dumps(row), flush=True)
    if options.out is not None:
        known = json.loads(options.out.read_text("utf-8")) if options.out.exists() else {}
        options.out.write_text(json.dumps(known | {"balanced": rows}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
