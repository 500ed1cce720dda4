"""FedBAT's own code (github.com/Leopold1423/fedbat-icml24): its clients train, and Flower, as there, takes their mean.

The network has no biases and no normalisation: its layers drop biases, and what normalises travels in full there.
Each round begins from our weights: a change of 1e-7 turns a sign here and there, and so becomes one of 1e-2.
"""

from __future__ import annotations

import importlib
import logging
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from laconic.algorithms.networks import fed_bat
from laconic.algorithms.networks.settings import choose_spec
from laconic.networks import layout, live
from laconic.networks.binary import draw_signs
from laconic.networks.models import BodyAndHead
from laconic.networks.vector import view
from references import Batch, Epochs, Reference, Theirs, Vector, flatten, late_push_back, make_plain, pour

RATE = 0.5  # so large that the sizes of some layers come to their bounds


class FedBAT(Reference):
    name, mark, model = "FedBAT", "model/bat.py", "references.fedbat:Unbiased"
    methods = ("fedbat", "fedavg")

    def __init__(self, path: Path) -> None:
        sys.path.insert(0, str(path))
        data = sys.modules["dataloader.dataloader"] = types.ModuleType("dataloader.dataloader")
        data.get_client_train_dataloader = None  # type: ignore[attr-defined]

    def settings(self, method: str) -> list[str]:
        return ["method.training.steps=0", f"method.training.rate={RATE}"] if method == "fedbat" else []

    def start(self, method: str, ours: Any, task: Any, parts: Sequence[Any]) -> Stepped:
        return Stepped(method, ours, task, parts)


class Unbiased(BodyAndHead):
    def __init__(self, input_shape: tuple[int, ...], n_classes: int) -> None:
        sizes, layers = (1, 8, 16), list[nn.Module]()
        for n_in, n_out in pairwise(sizes):
            layers += [nn.Conv2d(n_in, n_out, 3, padding=1, bias=False), nn.ReLU(), nn.MaxPool2d(2)]
        super().__init__(nn.Sequential(*layers, nn.Flatten()), input_shape, n_classes)
        self.head = nn.Linear(self.head.in_features, n_classes, bias=False)


class Stepped(Theirs):
    def __init__(self, method: str, ours: Any, task: Any, parts: Sequence[Any]) -> None:
        self.method, self.ours, self.parts = method, ours, parts
        self.spec = choose_spec(task, ours.training)
        self.n_batches = -(-len(parts[0][0].y) // ours.training.batch)
        self.theirs = importlib.import_module("train.client")
        self.theirs.get_log = lambda *_: logging.getLogger("unheard")
        self.theirs.get_model = self.make_model
        args = types.SimpleNamespace(
            id=0,
            com_type=method,
            model="",
            dataset="",
            part_strategy="",
            num_client=len(parts),
            val_ratio=0,
            gpu=-1,
            log_dir="",
            log_name="",
        )
        self.clients = [self.theirs.Client(args) for _ in parts]
        self.server = make_plain(self.spec, ours.training.init_seed)
        self.draws = list[Tensor]()  # of the client whose turn it is
        self.noted: dict[int, list[Vector]] = {}

    def make_model(self, *_: object) -> nn.Module:
        model = make_plain(self.spec, self.ours.training.init_seed)
        if self.method == "fedbat":
            importlib.import_module("model.bat").bat_replace_modules(model)
        return model

    @contextmanager
    def adapt_ours(self) -> Iterator[None]:
        """Notes by what numbers ours draw signs."""
        learn_signs = fed_bat.FedBAT.learn_signs

        def noting(algorithm, network, site):  # type: ignore[no-untyped-def]
            mine = self.noted[site.id] = []

            def noting_draws(change, sizes, rng):  # type: ignore[no-untyped-def]
                state = rng.bit_generator.state
                mine.append(rng.random(len(change)))
                rng.bit_generator.state = state
                return draw_signs(change, sizes, rng)

            fed_bat.draw_signs = noting_draws
            return learn_signs(algorithm, network, site)

        fed_bat.FedBAT.learn_signs = noting  # type: ignore[method-assign]
        try:
            with late_push_back(fed_bat):
                yield
        finally:
            fed_bat.FedBAT.learn_signs = learn_signs  # type: ignore[method-assign]
            fed_bat.draw_signs = draw_signs

    def play(self, round: int, batches: dict[int, list[Batch]], starts: dict[int, Vector]) -> float:
        came, due, training = self.vectors()[0], starts[0], self.ours.training
        pour(due, self.server, layout(self.spec))
        received = [value.numpy() for value in self.server.state_dict().values()]
        config = {"com_type": self.method, "round": round, "epochs": training.epochs, "batch_size": training.batch}
        config |= {"lr": training.rate, "momentum": 0, "l2": training.decay, "rho": fed_bat.SPEED}
        results = list[tuple[list[Any], int]]()
        for k, client in enumerate(self.clients):
            if self.method == "fedbat":
                config["phi"] = self.ours.warm
                self.draws = self.arrange_draws(self.noted[k], len(batches[k]))
            train = Epochs(batches[k], self.n_batches)
            self.theirs.get_client_train_dataloader = lambda *_, train=train: (train, [])
            with given_draws(self.draws):
                sent, n, _ = client.fit(received, config | {"ids": "0"})
            results.append((sent, n))
        mean = importlib.import_module("flwr.server.strategy.aggregate").aggregate(results)
        names = self.server.state_dict()
        self.server.load_state_dict({name: torch.tensor(value) for name, value in zip(names, mean, strict=True)})
        return float(np.linalg.norm(came - due) / np.linalg.norm(due))

    def arrange_draws(self, noted: Sequence[Vector], n_batches: int) -> list[Tensor]:
        """Layer by layer, from the first batch on: they draw while they train as usual, too, and to no effect."""
        pieces = layout(self.spec).pieces
        drawn = [
            torch.from_numpy(np.float32(1 - draws)) for draws in noted
        ]  # a sign is plus where theirs are large, ours small
        by_layer = [[view(draws, piece) for piece in pieces] for draws in drawn]
        idle = [[torch.zeros(piece.shape) for piece in pieces]] * (n_batches + 1 - len(noted))
        return [draws for layers in idle + by_layer for draws in layers]

    def vectors(self) -> list[Vector]:
        return [flatten(self.server, layout(self.spec))]

    def accuracy(self) -> float:
        test_model, as_tensor = importlib.import_module("train.trainer").test, live(self.spec).as_tensor
        found = [
            test_model(self.server, [(as_tensor(test.x), torch.from_numpy(test.y))])[1] for _, _, test in self.parts
        ]
        return float(np.mean(found))


@contextmanager
def given_draws(draws: list[Tensor]) -> Iterator[None]:
    rand_like = torch.rand_like

    def next_draws(x: Tensor) -> Tensor:
        assert draws[0].shape == x.shape, (draws[0].shape, x.shape)
        return draws.pop(0)

    torch.rand_like = next_draws  # type: ignore[assignment]
    try:
        yield
        assert not draws, "they drew less often than ours"
    finally:
        torch.rand_like = rand_like
