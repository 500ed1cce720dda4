"""FedSelect's own code (github.com/lapisrocks/fedselect): its whole loop is played anew up to the round being stepped.

Two things of it are not followed. It counts rounds from nought and chooses nothing after the first, so that its first
choice comes a round late: here it counts from one, as our clients do. And of a tensor's shared entries it takes a share
rounded to the nearest number, where ours rounds down.
"""

from __future__ import annotations

import importlib
import sys
from argparse import Namespace
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn

from laconic.algorithms.networks.settings import choose_spec
from laconic.networks import layout, live
from references import Batch, Epochs, Reference, Theirs, Vector, flatten, make_plain

EVERY = 2  # so that three rounds see a choice


class FedSelect(Reference):
    name, mark, model = "FedSelect", "lottery_ticket.py", "cnn-small"
    methods = ("fedselect",)

    def __init__(self, path: Path) -> None:
        sys.path.insert(0, str(path))
        missing = {"torchvision.models": "resnet18", "utils.train_utils": "get_data", "tqdm": "tqdm"}
        for name, part in missing.items():
            module = sys.modules[name] = module_from_spec(ModuleSpec(name, None))  # torch asks for a spec
            setattr(module, part, Unseen)
        sys.modules["utils.train_utils"].prepare_dataloaders = take_loaders  # type: ignore[attr-defined]
        self.loop = importlib.import_module("fedselect")

    def settings(self, method: str) -> list[str]:
        return [f"method.every={EVERY}"]

    def start(self, method: str, ours: Any, task: Any, parts: Sequence[Any]) -> Stepped:
        return Stepped(self.loop, ours, task, parts)


def take_loaders(_: object, train: Any, __: object, test: Any, ___: object) -> tuple[Any, Any]:
    """In place of making them of data and places: these are given ready."""
    return train, test


class Unseen:
    """In place of a bar of progress."""

    def __init__(self, **_: object) -> None: ...

    def __enter__(self) -> Unseen:
        return self

    def __exit__(self, *_: object) -> None: ...

    def update(self, *_: object) -> None: ...

    set_postfix = update


class Named(nn.Module):
    """Our network, whose last layer it looks for as fc."""

    def __init__(self, plain: Any) -> None:
        super().__init__()
        self.body, self.fc = plain.body, plain.head

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.fc(self.body(x))
        return logits


class FromOne(int):
    """That many rounds, of rounds that are counted from one."""

    def __rmod__(self, round: int) -> int:
        return (round + 1) % int(self)


class Passes(Epochs):
    """Whose length is asked for."""

    def __len__(self) -> int:
        return self.n_each


class Stepped(Theirs):
    def __init__(self, loop: Any, ours: Any, task: Any, parts: Sequence[Any]) -> None:
        self.loop, self.training = loop, ours.training
        self.spec = choose_spec(task, self.training)
        self.n_batches = -(-len(parts[0][0].y) // self.training.batch)
        as_tensor = live(self.spec).as_tensor
        self.tests = {k: [(as_tensor(test.x), torch.from_numpy(test.y))] for k, (_, _, test) in enumerate(parts)}
        self.noted: dict[int, list[Batch]] = defaultdict(list)  # of all rounds so far
        self.args = Namespace(
            lr=self.training.rate,
            la_epochs=self.training.epochs,
            lth_epoch_iters=FromOne(ours.every),
            prune_percent=100 * ours.growth,
            prune_target=100 * ours.limit,
            clipgradnorm=False,
        )

    def play(self, round: int, batches: dict[int, list[Batch]], starts: dict[int, Vector]) -> float:
        for k in self.tests:
            self.noted[k] += self.fill_pairs(batches[k])
        loaders = {k: Passes(noted, self.n_batches) for k, noted in self.noted.items()}
        self.args.com_rounds = round
        evaluate = self.loop.cross_client_eval

        def noting(model: nn.Module, states: dict[int, Any], *given: Any, **settings: Any) -> Tensor:
            self.states = states
            found: Tensor = evaluate(model, states, *given, **settings)
            return found

        with (
            patch.object(self.loop, "cross_client_eval", noting),
            patch.object(torch.cuda, "is_available", lambda: False),
            patch.object(np, "round", np.ceil),  # of those that stay shared
            redirect_stdout(StringIO()),  # it tells much
        ):
            model = Named(make_plain(self.spec, self.training.init_seed))
            known = model, self.args, None, None, loaders, self.tests, None, list(self.tests)
            self.told = self.loop.fedselect_algorithm(*known)
        return 0.0  # nothing was put in place

    def fill_pairs(self, batches: list[Batch]) -> list[Batch]:
        """Epochs that ours leaves out, as nothing is the client's own yet; theirs move nothing then."""
        if len(batches) == 2 * self.training.epochs * self.n_batches:
            return batches
        epochs = [batches[start : start + self.n_batches] for start in range(0, len(batches), self.n_batches)]
        return [batch for epoch in epochs for batch in epoch + epoch]

    def flatten(self, state: Mapping[str, Tensor]) -> Vector:
        plain = make_plain(self.spec, self.training.init_seed)
        Named(plain).load_state_dict(state)
        return flatten(plain, layout(self.spec))

    def vectors(self) -> list[Vector]:
        return [self.flatten(self.states[k]) for k in self.tests]

    def accuracy(self) -> float:
        return float(np.mean(list(self.told["client_accuracies"][-1].values())))

    def mask_difference(self, server: Any, states: Sequence[Any]) -> float:
        masks = [self.flatten(self.told["client_masks"][k]) == 1 for k in self.tests]
        return max(float(np.mean(mine != state.is_own)) for mine, state in zip(masks, states, strict=True))
