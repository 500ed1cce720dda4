"""Runs so small that any method can be tried in any way: a few clients, three rounds, images of 8 by 8 bits."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.algorithms import load_method
from laconic.runs.config import Config, read_config

# of those settings that a method has
SMALL = {
    "n_clauses": 8,
    "epochs": 1,
    "threshold": 20,
    "min_examples": 2,
    "n_features": 20,
    "aux_model": "shuffle-small",
    "cps_dims": 5,
    "ppa": "true",
    "cpkd": "true",
    "server_epochs": 3,
    "head_epochs": 1,
    "tune_epochs": 1,
}
N_CLIENTS, N_ROUNDS = 5, 3
TWO_EACH = [[k % 3, (k + 1) % 3] for k in range(N_CLIENTS)]  # classes of each client
HARD = ("fleet.participation=0.8", "fleet.lost_replies=0.3", "checkpoint_every=1")


def make_data(folder: Path, owned_classes: list[list[int]], n_each: int = 6) -> Path:
    """8 by 8 bit images of 4 classes; client k owns some of each of its classes, and class 3 may be nobody's."""
    rng = np.random.default_rng(0)
    patterns = rng.random((4, 8, 8)) < 0.5
    arrays: dict[str, NDArray[Any]] = {}
    for part in ("train", "test"):
        pairs = [
            (owner, label) for owner, labels in enumerate(owned_classes) for label in labels for _ in range(n_each)
        ]
        pairs += [(99, label) for label in range(4)]  # too few examples to be a client
        owners, labels = np.array(pairs).T
        arrays |= {
            f"x_{part}": (patterns[labels] ^ (rng.random((len(labels), 8, 8)) < 0.1)).astype(np.uint8),
            f"y_{part}": labels,
            f"owner_{part}": owners,
        }
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "made.npz", allow_pickle=False, **arrays)
    return folder / "made.npz"


def configure(method: str, fleet: str, data: Path, *settings: str) -> Config:
    names = {field.name for field in fields(load_method(method))}
    small = [f"method.{name}={value}" for name, value in SMALL.items() if name in names]
    if "training" in names:  # of a network small enough that a round is nothing
        small += ["method.training.model=resnet-small", "method.training.batch=8", "method.training.epochs=1"]
    common = [
        "data.partition=natural",
        "data.group=owner",
        "data.min_samples=10",
        "fleet.workers=2",
        f"rounds={N_ROUNDS}",
        f"checkpoint_every={N_ROUNDS}",
    ]
    return read_config(
        None, [f"method.name={method}", f"fleet.name={fleet}", f"data.name={data}", *small, *common, *settings]
    )


def read_all(folder: Path) -> dict[str, bytes]:
    """Everything that must not depend on where, when and by how many workers it was made."""
    files = [folder / f"{name}.jsonl" for name in ("metrics", "clients", "pairs", "matrices", "traffic")]
    files += (folder / "checkpoints").glob("*.safetensors")
    return {file.name: file.read_bytes() for file in files}


def read_rows(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text("utf-8").splitlines()]
