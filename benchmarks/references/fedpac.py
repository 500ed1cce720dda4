"""FedPAC's own code (github.com/JianXu95/FedPAC): whole rounds of its networks, clients and merging, and its testing.

Two things that it calls have stand-ins: torch.eig, which torch no longer has, and cvxpy's solver, by one that tries
every choice of heads, and so is exact and knows nothing of ours.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from io import StringIO
from itertools import chain, combinations
from pathlib import Path
from types import SimpleNamespace as Namespace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from laconic.algorithms.networks.settings import choose_spec
from laconic.networks import Layout, layout, live, start_vector
from references import Batch, Epochs, Reference, Theirs, Vector, flatten, pour

RULES = {"fedpac": "FedPAC", "fedper": "FedPer", "lg-fedavg": "LG_FedAvg", "fedavg": "FedAvg"}  # ours -> its


class FedPAC(Reference):
    name, mark, model = "FedPAC", "methods/fedpac.py", "cnn-fedpac"
    methods = tuple(RULES)

    def __init__(self, path: Path) -> None:
        sys.path.insert(0, str(path))
        cvxpy = types.ModuleType("cvxpy")
        cvxpy.__dict__.update(
            Variable=Simplex,
            sum=lambda simplex: 1.0,
            quad_form=lambda simplex, cost: (simplex, cost.astype(np.float64)),
            Minimize=lambda goal: goal,
            Problem=Problem,
        )
        sys.modules["cvxpy"] = cvxpy
        importlib.import_module("tools").torch = Namespace(**{**vars(torch), "eig": eig})

    def settings(self, method: str) -> list[str]:
        return ["method.training.rate=0.01", "method.training.momentum=0.5", "method.training.decay=0.0005"]

    def start(self, method: str, ours: Any, task: Any, parts: Sequence[Any]) -> Stepped:
        return Stepped(method, ours, task, parts)


class Simplex:
    """In place of cvxpy's variable: weights of sum 1, none below 0."""

    def __init__(self, n: int) -> None:
        self.value = np.full(n, 1 / n)

    def __ge__(self, _: float) -> bool:
        return True


class Problem:
    def __init__(self, goal: tuple[Simplex, NDArray[np.float64]], _: object) -> None:
        self.simplex, self.cost = goal

    def solve(self) -> None:
        """Of the least on each face of the simplex, as far as it lies inside, the least."""
        least, n = np.inf, len(self.cost)
        for face in map(list, chain.from_iterable(combinations(range(n), size) for size in range(1, n + 1))):
            weights = np.linalg.solve(self.cost[np.ix_(face, face)], np.ones(len(face)))
            if weights.min() >= 0 and 1 / weights.sum() < least:
                least = 1 / weights.sum()
                self.simplex.value = np.zeros(n)
                self.simplex.value[face] = weights / weights.sum()


def eig(matrix: Tensor, eigenvectors: bool) -> tuple[Tensor, Tensor]:
    """Values as [value, real and imaginary part], as torch had them, of a symmetric matrix."""
    values, vectors = torch.linalg.eigh(matrix)
    return torch.stack([values, torch.zeros_like(values)], dim=1), vectors


class Stepped(Theirs):
    def __init__(self, method: str, ours: Any, task: Any, parts: Sequence[Any]) -> None:
        self.method, self.training, rule = method, ours.training, RULES[method]
        self.spec, self.part = choose_spec(task, ours.training), ours.part
        self.n_batches = [-(-len(train.y) // self.training.batch) for train, _, _ in parts]
        self.args = Namespace(
            num_users=len(parts),
            frac=1.0,
            epochs=1000,
            local_epoch=self.training.epochs,
            lr=self.training.rate,
            lam=getattr(ours, "align", 0.0),
            agg_g=1,
            num_classes=task.n_classes,
            device="cpu",
        )
        kind, as_tensor = importlib.import_module("methods").local_update(rule), live(self.spec).as_tensor
        self.clients = []
        for number, (train, _, test) in enumerate(parts):
            examples, tests = (
                (channels_first(as_tensor(some.x)).clone(), torch.from_numpy(some.y)) for some in (train, test)
            )
            to_train = Passes([examples] * 2, 1, train.y)  # it counts classes twice
            to_test = DataLoader(TensorDataset(*tests), batch_size=512)
            self.clients.append(kind(number, self.args, to_train, to_test, self.make_network()))
        self.network = self.make_network()
        self.play_round = importlib.import_module("running").one_round_training(rule)

    def make_network(self) -> nn.Module:
        """Its own, with the weights that ours start from."""
        kinds = importlib.import_module("models.cnn")
        kind = kinds.CifarCNN if self.spec.input_shape[2:] == (3,) else kinds.CNN_FMNIST
        network: nn.Module = kind(self.spec.n_classes)
        plan = layout(self.spec)
        pour(start_vector(self.spec, self.training.init_seed), Renamed(network, plan), plan)
        return network

    def flatten(self, network: nn.Module) -> Vector:
        plan = layout(self.spec)
        return flatten(Renamed(network, plan), plan)

    def play(self, round: int, batches: dict[int, list[Batch]], starts: dict[int, Vector]) -> float:
        for k, (client, n_batches) in enumerate(zip(self.clients, self.n_batches, strict=True)):
            epochs = [(channels_first(x), y) for x, y in batches[k]]
            if self.method == "fedpac":  # looks at all examples twice before it trains, and once after
                epochs = [*epochs[:n_batches] * 2, *epochs, *epochs[:n_batches]]
            client.train_data = Passes(epochs, n_batches, client.train_data.dataset)
        with redirect_stdout(StringIO()):  # it tells much
            self.play_round(self.args, self.network, self.clients, round - 1)
        if self.method != "fedpac":  # whose clients have the latest already
            for client in self.clients:
                client.update_local_model(self.network.state_dict())
        return 0.0  # nothing was put in place

    def vectors(self) -> list[Vector]:
        shared, n_body = self.part(self.spec), layout(self.spec).n_body
        own = [self.flatten(client.local_model) for client in self.clients]
        if self.method != "fedpac":
            return [shared.take(own[0])]
        prototypes = self.clients[0].g_protos.numpy().ravel()
        return [shared.take(own[0]), prototypes, *(vector[n_body:] for vector in own)]

    def accuracy(self) -> float:
        found = [client.local_test(client.test_data) for client in self.clients]
        return sum(one[0] if self.method == "fedpac" else one for one in found) / 100 / len(found)


def channels_first(x: Tensor) -> Tensor:
    """Its networks take no other order in memory."""
    return x.reshape(-1).view(x.shape)


class Renamed:
    """Its network under our names, in whose order its layers are."""

    def __init__(self, network: nn.Module, plan: Layout) -> None:
        names = [piece.name for piece in plan.pieces]
        self.values = dict(zip(names, network.parameters(), strict=True))

    def named_parameters(self) -> dict[str, Tensor]:
        return self.values

    def state_dict(self) -> dict[str, Tensor]:
        return {name: value.detach() for name, value in self.values.items()}


class Passes(Epochs):
    """Stands in for a DataLoader that is asked how long it is, and of how many examples."""

    def __init__(self, batches: Sequence[Batch], n_each: int, labels: NDArray[np.int64]) -> None:
        super().__init__(batches, n_each)
        self.dataset = labels

    def __iter__(self) -> Iterator[Any]:
        return iter(DataLoader(list(super().__iter__()), batch_size=None))
