"""What is measured: the jobs, and the 0/1 data that every engine gets alike. Imports nothing heavy at the top."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Job:
    """A machine and its data; clauses are weighted and true positives boosted in all of them."""

    title: str
    dataset: str
    rule: Literal["adaptive", "above", "thermometer"]  # how pixels become bits
    n_train: int
    n_test: int  # 0: prediction is not part of the job
    n_clauses: int  # per class, or in all when coalesced
    patch: tuple[int, int] | None  # None: flat
    epochs: int
    levels: int = 1
    n_clients: int = 0  # above 0: one new machine per client, each on its own share of the data
    coalesced: bool = False
    n_classes: int = 10
    threshold: int = 1000
    specificity: float = 5.0
    fuzzy: tuple[int, int] | None = None  # failures and literals of fuzzy clauses
    classic: str = ""  # what engines without fuzzy clauses do in its place: another job on the same data

    def spec(self) -> dict[str, Any]:
        """What a worker must know, ready for JSON."""
        unsent = ("title", "dataset", "rule", "classic")
        return {name: value for name, value in asdict(self).items() if name not in unsent}


NETWORK_JOBS = ("fedavg", "fedpurin")  # of laconic bench networks: methods
NETWORK_OTHERS = ("loop", "serial", "flower")  # and what they are compared with, see networks.py

JOBS = {
    "A": Job("Fashion-MNIST, adaptive, patch 5x5", "fashion_mnist", "adaptive", 6000, 2000, 200, (5, 5), 5),
    "B": Job("Fashion-MNIST, pixel > 75, patch 10x10", "fashion_mnist", "above", 6000, 2000, 100, (10, 10), 5),
    "C": Job("Fashion-MNIST, pixel > 75, flat", "fashion_mnist", "above", 6000, 2000, 200, None, 5),
    "D": Job("20 new clients of 300 images, as B", "fashion_mnist", "above", 6000, 0, 100, (10, 10), 1, n_clients=20),
    "E": Job(
        "CIFAR-10, 8 levels, patch 3x3",
        "cifar10",
        "thermometer",
        n_train=1000,
        n_test=500,
        n_clauses=200,
        patch=(3, 3),
        epochs=2,
        levels=8,
    ),
    "F": Job(
        "as C, 20 fuzzy clauses; peers do C",
        "fashion_mnist",
        "above",
        n_train=6000,
        n_test=2000,
        n_clauses=20,
        patch=None,
        epochs=30,
        specificity=50.0,
        fuzzy=(25, 50),
        classic="C",
    ),
    "coalesced": Job(
        "as A, 2,000 shared clauses", "fashion_mnist", "adaptive", 6000, 2000, 2000, (5, 5), 3, coalesced=True
    ),
}


def load(name: str) -> dict[str, NDArray[np.uint8]]:
    """x_train, y_train, x_test and y_test of NAME.npz in the folder LACONIC_DATA, else ~/.cache/laconic."""
    import numpy as np

    path = Path(os.environ.get("LACONIC_DATA") or Path.home() / ".cache" / "laconic") / f"{name}.npz"
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is missing; put {name}.npz there (arrays x_train, y_train, x_test, y_test), "
            "or set LACONIC_DATA to the folder that holds it"
        )
    with np.load(path) as arrays:
        return {key: arrays[key] for key in ("x_train", "y_train", "x_test", "y_test")}


def write_data(job: Job, path: Path) -> tuple[int, ...]:
    """The job's booleanized images and labels as one .npz, which every worker reads; the shape of one example."""
    import numpy as np

    data = load(job.dataset)
    for part, n_due in (("train", job.n_train), ("test", job.n_test)):
        if len(data[f"x_{part}"]) < n_due:
            raise ValueError(f"{job.dataset}.npz has {len(data[f'x_{part}'])} {part} images; the job needs {n_due}")
    from laconic.tsetlin.booleanize import AdaptiveGaussianThreshold, Thermometer, Threshold

    booleanizer: AdaptiveGaussianThreshold | Thermometer | Threshold
    match job.rule:
        case "adaptive":
            booleanizer = AdaptiveGaussianThreshold(window=11, offset=2)
        case "above":
            booleanizer = Threshold(above=75)
        case "thermometer":
            booleanizer = Thermometer(levels=job.levels)
    x_train = booleanizer.fit_transform(data["x_train"][: job.n_train])
    x_test = booleanizer.transform(data["x_test"][: job.n_test]) if job.n_test else x_train[:0]
    if job.patch is None:
        x_train, x_test = (x.reshape(len(x), -1) for x in (x_train, x_test))
    y_train, y_test = data["y_train"][: job.n_train], data["y_test"][: job.n_test]
    np.savez(path, x_train=x_train, y_train=y_train.ravel(), x_test=x_test, y_test=y_test.ravel())
    return tuple(x_train.shape[1:])
