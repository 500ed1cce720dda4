"""The Convolutional Tsetlin Machine's own experiment: full MNIST, 10×10 patches, thousands of clauses.

    python benchmarks/mnist.py --epochs 40 --threads 2 --out docs/results/mnist.json

Threshold and specificity were chosen on 10,000 images held out of the training set; the test set is only measured on.
"""

import argparse
import json
import platform
import time
from pathlib import Path

import numpy as np

from laconic.bench.jobs import load
from laconic.tsetlin import Shape, build, class_sums, fit, pack
from laconic.tsetlin.booleanize import Threshold


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clauses", type=int, default=4000, help="per class")
    parser.add_argument("--threshold", type=int, default=2000)
    parser.add_argument("--specificity", type=float, default=5.0)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="JSON file for configuration and curve")
    options = parser.parse_args()

    shape, bits, data = Shape.image(28, 28, patch=(10, 10)), Threshold(above=75), load("mnist")
    train, test = pack(shape, bits.transform(data["x_train"])), pack(shape, bits.transform(data["x_test"]))
    y_train, y_test = data["y_train"].astype(int), data["y_test"].astype(int)
    machine = build(shape, 10, options.clauses, threshold=options.threshold, specificity=options.specificity)
    rng, curve = np.random.default_rng(options.seed), []
    for epoch in range(1, options.epochs + 1):
        started = time.perf_counter()
        fit(machine, train, y_train, rng, threads=options.threads)
        trained = time.perf_counter()
        predictions = class_sums(machine, test, threads=options.threads).argmax(axis=1)
        predicted = time.perf_counter()
        accuracy = float((predictions == y_test).mean())
        curve.append({"epoch": epoch, "test_accuracy": accuracy, "train_seconds": trained - started,
                      "predict_seconds": predicted - trained})  # fmt: skip
        print(
            f"epoch {epoch:3d}  test accuracy {accuracy:.4f}  {trained - started:5.1f} s + {predicted - trained:4.1f} s"
        )
        if options.out is not None:
            configuration = {k: v for k, v in vars(options).items() if k != "out"} | {"cpu": platform.processor()}
            options.out.write_text(json.dumps({"configuration": configuration, "curve": curve}, indent=1) + "\n")


if __name__ == "__main__":
    main()
