"""pFed1BS's own code (github.com/connorzhangxu/pFed1BS): its users train and sketch, their votes are counted.

Its sketch is used by both: rows as it draws them, and no random signs. Where it departs from its paper it is made to
follow the paper: gradients are cleared before each batch and no momentum is kept (the code lets both run on), the pull
to zero is mu times the weights (the code scales the loss's gradient by 1 + mu besides), and a tied vote is a plus.
"""

from __future__ import annotations

import importlib
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from laconic.algorithms.networks.settings import choose_spec
from laconic.networks import layout, live, sketch
from references import Batch, Reference, Theirs, Vector, count_right, flatten, make_plain

SEED = 42  # of its rows


class PFed1BS(Reference):
    name, mark, model = "pFed1BS", "FLAlgorithms/users/userFedOnebitReg.py", "mlp"
    methods = ("pfed1bs",)

    def __init__(self, path: Path) -> None:
        sys.path.insert(0, str(path))

    def settings(self, method: str) -> list[str]:
        return ["method.training.steps=0"]

    def start(self, method: str, ours: Any, task: Any, parts: Sequence[Any]) -> Stepped:
        return Stepped(ours, task, parts)


class Stepped(Theirs):
    def __init__(self, ours: Any, task: Any, parts: Sequence[Any]) -> None:
        self.parts, training = parts, ours.training
        self.spec = choose_spec(task, training)
        module = make_plain(self.spec, training.init_seed)
        self.args = Namespace(
            model=(nn.Sequential(module, nn.LogSoftmax(dim=1)), "dnn"),
            device="cpu",
            task_type="classification",
            batch_size=training.batch,
            learning_rate=training.rate,
            beta=1,
            lamda=0,
            local_epochs=training.epochs * -(-len(parts[0][0].y) // training.batch),  # which are batches
            num_bits=1,
            sign_loss_weight=ours.pull,
            cr=ours.share,
            hadamard=True,
        )
        kind = importlib.import_module("FLAlgorithms.users.userFedOnebitReg").UserOnebitReg
        self.users = [kind(self.args, k, Loader(train), Loader(test)) for k, (train, _, test) in enumerate(parts)]
        for user in self.users:
            user.optimizer.param_groups[0].update(momentum=0, mu=0, weight_decay=ours.shrink, rho=1 / ours.sharpness)
        self.consensus = self.users[0].quant_model(self.args, seed=SEED)
        self.n_weights = layout(self.spec).n_trained

    @contextmanager
    def adapt_ours(self) -> Iterator[None]:
        """Ours sketches by its rows, without signs."""
        before = sketch._rows, sketch._signs

        def rows(n_padded: int, n_rows: int, _: int) -> NDArray[np.int64]:
            torch.manual_seed(SEED)
            return torch.randperm(n_padded)[:n_rows].numpy()

        sketch._rows, sketch._signs = rows, lambda n, _: np.ones(n, np.float32)  # type: ignore[assignment]
        try:
            yield
        finally:
            sketch._rows, sketch._signs = before

    def play(self, round: int, batches: dict[int, list[Batch]], starts: dict[int, Vector]) -> float:
        shapes = {"original_shape": self.n_weights, "padding_shape": sketch.padded(self.n_weights)}
        for k, user in enumerate(self.users):
            user.iter_trainloader = cleared(user, batches[k])
            user.train(self.args, self.consensus, seed=SEED, **shapes)
        with torch.no_grad():  # as in its loop, which cannot be stepped
            votes = [user.train_samples * user.quant_model(self.args, seed=SEED) for user in self.users]
            self.consensus = torch.where(torch.stack(votes).sum(dim=0) >= 0, 1.0, -1.0)  # ties, too, are one bit
        return 0.0  # nothing was put in place

    def vectors(self) -> list[Vector]:
        return [flatten(user.model[0], layout(self.spec)) for user in self.users]

    def accuracy(self) -> float:
        found = [
            count_right(user.model, live(self.spec).as_tensor(test.x), test.y)
            for user, (_, _, test) in zip(self.users, self.parts, strict=True)
        ]
        return sum(found) / len(found)

    def mask_difference(self, server: Any, states: Sequence[Any]) -> float:
        """Of the signs that all are drawn to."""
        return float(np.mean((self.consensus.numpy() >= 0) != server.consensus))


class Loader:
    """As much of a DataLoader as a user asks for."""

    def __init__(self, examples: Any) -> None:
        self.dataset = examples.y

    def __len__(self) -> int:
        return len(self.dataset)

    def __iter__(self) -> Iterator[Batch]:
        return iter(())


def cleared(user: Any, batches: Sequence[Batch]) -> Iterator[Batch]:
    for batch in batches:
        user.optimizer.zero_grad()
        yield batch
