"""Trains and times one engine as told by JSON lines on standard input.

Peers run this file in Pythons of their own: at the top it may import the standard library and NumPy, no more.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import logging
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

# Passes are added up to this: one pass of a fast engine is too short to time, and the first after a long wait is slow.
MIN_SECONDS = 1.0
BYTEWISE = ("laconic", "green-tsetlin")
Engine = tuple[Callable[[Any, Any], None], Callable[[Any], Any]]  # fit for all epochs, predict labels
Build = Callable[[dict[str, Any], "tuple[int, ...]", int], Engine]  # from the job's spec, an example's shape and a seed


def load_laconic() -> Build:
    from laconic import tsetlin

    def build(spec: dict[str, Any], example: tuple[int, ...], seed: int) -> Engine:
        rng = np.random.default_rng(seed)
        if spec["patch"]:
            shape = tsetlin.Shape.image(*example, patch=tuple(spec["patch"]), levels=spec["levels"])
        else:
            shape = tsetlin.Shape.flat(*example)
        options = {"threshold": spec["threshold"], "specificity": spec["specificity"], "boost": True, "balanced": True}
        if spec["fuzzy"]:
            options |= {"fuzzy": tsetlin.Fuzzy(*spec["fuzzy"]), "balanced": False}
        size = shape, spec["n_classes"], spec["n_clauses"]
        machine = (
            tsetlin.build_coalesced(*size, rng, **options) if spec["coalesced"] else tsetlin.build(*size, **options)
        )
        threads, epochs = spec["threads"], spec["epochs"]
        return (
            lambda x, y: tsetlin.fit(machine, x, y, rng, epochs=epochs, threads=threads),
            lambda x: tsetlin.class_sums(machine, x, threads=threads).argmax(axis=1),
        )

    return build


def load_py_tsetlin_machine(package: str) -> Build:
    tm = importlib.import_module(f"{package}.tm")

    def build(spec: dict[str, Any], _: tuple[int, ...], seed: int) -> Engine:
        ctypes.CDLL(None).srand(seed)  # all of its randomness that can be seeded
        size = spec["n_clauses"], spec["threshold"], spec["specificity"]
        options = {"boost_true_positive_feedback": 1, "weighted_clauses": True}
        if spec["patch"]:
            machine = tm.MultiClassConvolutionalTsetlinMachine2D(*size, tuple(spec["patch"]), **options)
        else:
            if package == "pyTsetlinMachine":
                options["indexed"] = False  # it trains up to twice as fast without, at these sizes
            machine = tm.MultiClassTsetlinMachine(*size, **options)
        epochs = spec["epochs"]
        return lambda x, y: machine.fit(x, y, epochs=epochs, incremental=True), machine.predict

    return build


def load_tmu() -> Build:
    logging.disable(logging.CRITICAL)  # it reports a missing pycuda at length
    vanilla = importlib.import_module("tmu.models.classification.vanilla_classifier")
    coalesced = importlib.import_module("tmu.models.classification.coalesced_classifier")

    def build(spec: dict[str, Any], _: tuple[int, ...], seed: int) -> Engine:
        # Not incremental: the same predictions, up to 2.7 times as fast.
        vanilla_only = {} if spec["coalesced"] else {"incremental": False}
        machine = (coalesced.TMCoalescedClassifier if spec["coalesced"] else vanilla.TMClassifier)(
            spec["n_clauses"],
            spec["threshold"],
            spec["specificity"],
            patch_dim=tuple(spec["patch"]) if spec["patch"] else None,
            boost_true_positive_feedback=1,
            weighted_clauses=True,
            platform="CPU",
            seed=seed,
            **vanilla_only,
        )

        def fit(x: Any, y: Any) -> None:
            for _ in range(spec["epochs"]):  # its fit is one epoch
                machine.fit(x, y)

        return fit, machine.predict

    return build


def load_green_tsetlin() -> Build:
    green = importlib.import_module("green_tsetlin")

    def build(spec: dict[str, Any], example: tuple[int, ...], seed: int) -> Engine:
        n_classes = spec["n_classes"]
        machine = green.TsetlinMachine(
            n_literals=example[0],
            n_clauses=spec["n_clauses"] * n_classes,  # all its machines are coalesced
            n_classes=n_classes,
            s=spec["specificity"],
            threshold=spec["threshold"],
            boost_true_positives=True,
        )

        def fit(x: Any, y: Any) -> None:
            trainer = green.Trainer(
                machine,
                seed=seed,
                n_jobs=spec["threads"],
                n_epochs=spec["epochs"],
                early_exit_acc=2.0,  # never
                load_best_state=False,
                progress_bar=False,
                copy_training_data=False,
            )
            trainer.set_train_data(x, y)
            trainer.set_eval_data(x[:1], y[:1])  # it evaluates every epoch
            trainer.train()

        def predict(x: Any) -> Any:
            predictor = machine.get_predictor()  # twice as fast, one by one, as its trainer is on all at once
            return np.array([predictor.predict(row) for row in x])

        return fit, predict

    return build


LOADERS: dict[str, Callable[[], Build]] = {
    "laconic": load_laconic,
    "pyTsetlinMachineParallel": lambda: load_py_tsetlin_machine("pyTsetlinMachineParallel"),
    "pyTsetlinMachine": lambda: load_py_tsetlin_machine("pyTsetlinMachine"),
    "tmu": load_tmu,
    "green-tsetlin": load_green_tsetlin,
}


def peak_rss_mb() -> float:
    """High-water mark of this program alone: getrusage's would start from that of the process which launched it."""
    status = Path("/proc/self/status")
    if status.exists():
        kilobytes = next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(kilobytes) * 1024 / 1e6
    if sys.platform == "win32":  # which keeps no such mark where Python finds it
        return float("nan")
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # bytes on macOS


def restart_peak() -> float:
    """Forgets the high-water mark where the system allows it; MB from which growth is counted."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak_rss_mb()


class Bench:
    """One engine on one job: `warm_up` and `load` once, then `train` turn by turn and `predict`."""

    def __init__(self, engine: str) -> None:
        self.dtype = np.uint8 if engine in BYTEWISE else np.uint32  # what each engine works on without a conversion
        self.build = LOADERS[engine]()
        self.imported_mb = restart_peak()

    def warm_up(self, spec: dict[str, Any], example: list[int]) -> dict[str, float]:
        """Uses the engine once on a few blank examples, so that nothing is compiled while it is timed."""
        self.spec = spec
        # CPU time is the steadier clock, but it adds up over threads.
        self.clock = time.process_time if spec["threads"] == 1 else time.perf_counter
        start = time.perf_counter()
        fit, predict = self.build(spec, tuple(example), 1)  # not seed 0, which tmu's generators never leave
        x = np.zeros((2 * spec["n_classes"], *example), self.dtype)
        fit(x, np.arange(len(x), dtype=np.uint32) % spec["n_classes"])
        predict(x)
        seconds = time.perf_counter() - start
        self.warm_peak_mb = peak_rss_mb()
        self.warm_mb = restart_peak()
        return {"seconds": seconds}

    def load(self, path: str) -> dict[str, float]:
        with np.load(path) as arrays:
            self.x, self.x_test = (arrays[key].astype(self.dtype, copy=False) for key in ("x_train", "x_test"))
            self.y, self.y_test = (arrays[key].astype(np.uint32) for key in ("y_train", "y_test"))
        return {}

    def train(self, seed: int) -> dict[str, float]:
        """One turn: whole trainings with one seed, making the machine included; the last machine is kept."""
        start, n_samples = self.clock(), 0
        n_machines = self.spec["n_clients"] or 1
        shares = list(zip(*(np.split(part, n_machines) for part in (self.x, self.y)), strict=True))
        while n_samples == 0 or self.clock() - start < MIN_SECONDS:
            for x, y in shares:
                self.engine = self.build(self.spec, x.shape[1:], seed)
                self.engine[0](x, y)
            n_samples += len(self.x) * self.spec["epochs"]
        return self.measured(start, n_samples)

    def predict(self) -> dict[str, float]:
        start, n_samples = self.clock(), 0
        while n_samples == 0 or self.clock() - start < MIN_SECONDS:
            labels = self.engine[1](self.x_test)
            n_samples += len(self.x_test)
        return self.measured(start, n_samples) | {"accuracy": float(np.mean(labels == self.y_test))}

    def measured(self, start: float, n_samples: int) -> dict[str, float]:
        seconds, peak_mb = self.clock() - start, peak_rss_mb()
        return {
            "seconds": seconds,
            "samples": n_samples,
            "rss_mb": max(peak_mb, self.warm_peak_mb) - self.imported_mb,
            "working_mb": peak_mb - self.warm_mb,
        }


def main() -> None:
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever an engine prints must not mix with the replies
    bench = Bench(sys.argv[1])
    steps: dict[str, Callable[..., dict[str, float]]] = {
        "warm_up": bench.warm_up,
        "load": bench.load,
        "train": bench.train,
        "predict": bench.predict,
    }
    for line in sys.stdin:
        order = json.loads(line)
        replies.write(json.dumps(steps[order.pop("step")](**order)) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
