"""EDEN's code (github.com/amitport/EDEN-Distributed-Mean-Estimation, its torch folder): changes go through and back.

It holds no training and no server, only the code that a change is put into and read from. So clients here are trained
by torch's SGD, and the mean of what is read is added. Each round begins from our weights: a number of 1e-7 that becomes
another level is a difference of 1e-3 in the next round.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  # the name everyone gives it

from laconic.algorithms.networks.settings import choose_spec
from laconic.algorithms.networks.shared_vector import choose_seed
from laconic.networks import layout, live, sketch
from references import Batch, Reference, Theirs, Vector, count_right, flatten, make_plain, pour


class EDEN(Reference):
    name, mark, model = "EDEN", "torch/eden.py", "cnn-small"
    methods = ("eden",)

    def __init__(self, path: Path) -> None:
        sys.path.insert(0, str(path / "torch"))

    def settings(self, method: str) -> list[str]:
        return ["method.training.steps=0"]

    def start(self, method: str, ours: Any, task: Any, parts: Sequence[Any]) -> Stepped:
        return Stepped(ours, task, parts)


class Stepped(Theirs):
    def __init__(self, ours: Any, task: Any, parts: Sequence[Any]) -> None:
        self.ours, self.parts = ours, parts
        self.spec = choose_spec(task, ours.training)
        self.common = make_plain(self.spec, ours.training.init_seed)
        self.code = importlib.import_module("eden").eden_builder(bits=ours.bits)

    def play(self, round: int, batches: dict[int, list[Batch]], starts: dict[int, Vector]) -> float:
        came, before, plan = self.vectors()[0], starts[0], layout(self.spec)
        read, counts = list[Vector](), list[int]()
        for k, (train, _, _) in enumerate(self.parts):
            pour(before, self.common, plan)
            descend(self.common, batches[k], self.ours.training.rate)
            change = torch.from_numpy(flatten(self.common, plan) - before)
            self.draw_signs(choose_seed(round, k))
            read.append(self.code.roundtrip(change)[0].numpy())
            counts.append(len(train.y))
        pour(before + np.average(read, axis=0, weights=counts).astype(np.float32), self.common, plan)
        return float(np.linalg.norm(came - before) / np.linalg.norm(before))

    def draw_signs(self, seed: int) -> None:
        """Its rotation by the signs that ours has; those of the padding change nothing."""

        def signs_like(x: Tensor, _: torch.Generator) -> Tensor:
            return torch.from_numpy(sketch._signs(x.numel(), seed).copy())

        importlib.import_module("hadamard").rademacher_like = signs_like

    def vectors(self) -> list[Vector]:
        return [flatten(self.common, layout(self.spec))]

    def accuracy(self) -> float:
        as_tensor = live(self.spec).as_tensor
        return float(np.mean([count_right(self.common, as_tensor(test.x), test.y) for _, _, test in self.parts]))


def descend(module: torch.nn.Module, batches: Sequence[Batch], rate: float) -> None:
    optimizer = torch.optim.SGD(module.train().parameters(), lr=rate)
    for x, y in batches:
        optimizer.zero_grad()
        F.cross_entropy(module(x), y).backward()
        optimizer.step()
