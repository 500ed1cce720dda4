"""pFedFDA's own code (github.com/cj-mclaughlin/pFedFDA): its clients train and mix Gaussians, its server merges.

Halves for the cross-validation are drawn as ours draws them, and trust is sought by the same search within bounds. Of
its clients three things are not followed: they take features while the body still changes, where here they are asked,
by their own function, once training has ended; they add 1e-4 to every entry of a covariance; and to have a mean of its
own a class needs one example, for `len` of a comparison counts all, but three in a test: here `len` counts what is so,
and two are enough.
"""

from __future__ import annotations

import importlib
import sys
import types
from argparse import Namespace
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor, nn

from laconic.algorithms.networks.settings import choose_spec
from laconic.networks import count_head_inputs, gaussians, layout, live
from references import Batch, Epochs, Reference, Split, Theirs, Vector, flatten_split, make_plain

# its own; at our rate of 0.05 rounding grows a hundredfold in a round
TRAINING = {"rate": 0.01, "momentum": 0.5, "decay": 5e-4}
EVERYWHERE = 1e-4  # added to each entry of a covariance
Halves = tuple[NDArray[np.int64], NDArray[np.int64]]


class PFedFDA(Reference):
    name, mark, model = "pFedFDA", "clients/client_fedfda.py", "cnn-small"
    methods = ("pfedfda",)

    def __init__(self, path: Path) -> None:
        sys.path.insert(0, str(path))
        missing = {
            "data.utils.loader": dict.fromkeys(
                ("get_augmented_partition", "get_partition", "get_digit5", "get_office10")
            ),
            "statsmodels.stats.correlation_tools": {"cov_nearest": take_off},
            "torchmin": {"minimize": search},
        }
        for name, parts in missing.items():
            sys.modules[name] = types.ModuleType(name)
            sys.modules[name].__dict__.update(parts)
        self.clients = importlib.import_module("clients.client_fedfda")
        self.servers = importlib.import_module("servers.server_fedfda")
        self.clients.__dict__["len"] = count

    def settings(self, method: str) -> list[str]:
        return [f"method.training.{key}={value}" for key, value in TRAINING.items()]

    def start(self, method: str, ours: Any, task: Any, parts: Sequence[Any]) -> Stepped:
        return Stepped(self.clients, self.servers, ours, task, parts)


def take_off(covariance: NDArray[Any], **_: object) -> NDArray[Any]:
    """In place of the nearest that can be a covariance, which it is with an identity in it."""
    return covariance - EVERYWHERE


def count(what: Any) -> int:
    """In place of len."""
    return int(what.sum()) if getattr(what, "dtype", None) == np.bool_ else len(what)


def search(loss: Callable[[Tensor], Tensor], x0: Tensor, max_iter: int, **_: object) -> Namespace:
    """As ours seeks trust, within bounds."""

    def value(trust: NDArray[np.float64]) -> float:
        return float(loss(torch.from_numpy(trust)))

    found = minimize(value, x0.numpy(), method="L-BFGS-B", bounds=[(0, 1)] * len(x0), options={"maxiter": max_iter})
    return Namespace(x=torch.tensor(found.x, dtype=torch.float32))


@contextmanager
def twice_as_precise(client: Any) -> Iterator[None]:
    """While trust is sought, as ours is: by differences of losses that are too small for 32 bits."""
    names = ("global_means", "global_covariance", "priors")
    before = {name: getattr(client, name) for name in names}
    torch.set_default_dtype(torch.float64)
    try:
        client.__dict__.update({name: value.double() for name, value in before.items()})
        yield
    finally:
        client.__dict__.update(before)
        torch.set_default_dtype(torch.float32)


class Telling(Split):
    """Our network, which tells features besides if it is asked to."""

    def __init__(self, module: nn.Module, n_features: int) -> None:
        super().__init__(module)
        self.fc, self.D = self.head, n_features

    def forward(self, x: Tensor, return_feat: bool = False) -> Any:
        features = self.base(x)
        logits = self.fc(features)
        return (features, logits) if return_feat else logits


class Stepped(Theirs):
    def __init__(self, clients: Any, servers: Any, ours: Any, task: Any, parts: Sequence[Any]) -> None:
        training = ours.training
        self.spec = choose_spec(task, training)
        self.n_batches = -(-len(parts[0][0].y) // training.batch)
        self.parts = parts
        self.halves: dict[int, list[Halves]] = defaultdict(list)  # that ours drew, of each client
        args = Namespace(
            model=Telling(make_plain(self.spec, training.init_seed), count_head_inputs(self.spec)),
            exp_name="",
            partition_path="",
            batch_size=training.batch,
            local_epochs=training.epochs,
            num_classes=task.n_classes,
            device="cpu",
            lr=training.rate,
            model_name="",
            momentum=training.momentum,
            wd=training.decay,
            train_prop=1.0,
            single_beta=False,
            local_beta=False,
            num_clients=len(parts),
            global_rounds=0,
            sampling_prob=1.0,
            eval_gap=1,
        )
        with patch.object(servers, "ClientFedFDA", make_client(clients, self)):
            self.server = servers.ServerFedFDA(args)
        self.server.active_clients = self.server.clients
        for client in self.server.clients:
            client.min_samples = gaussians.MIN_EXAMPLES - 1  # more than which a class must have
        means, covariance = ours.start_gaussians(self.spec)
        self.server.global_means, self.server.global_covariance = torch.tensor(means), torch.tensor(covariance)

    @contextmanager
    def adapt_ours(self) -> Iterator[None]:
        """Notes which halves a client's examples fall into."""
        halve = gaussians.halve

        def noting(labels: NDArray[np.int64], rng: np.random.Generator) -> Halves:
            (client,) = (k for k, (train, _, _) in enumerate(self.parts) if train.y is labels)
            self.halves[client].append(drawn := halve(labels, rng))
            return drawn

        with patch.object(gaussians, "halve", noting), patch.object(Tensor, "cuda", lambda self: self):
            yield

    def play(self, round: int, batches: dict[int, list[Batch]], starts: dict[int, Vector]) -> float:
        self.server.r = round
        self.server.send_models()
        for client in self.server.clients:
            client.loads = [Epochs(batches[client.client_idx], self.n_batches)]
        self.server.train_clients()
        self.server.aggregate_models()
        return 0.0  # nothing was put in place

    def vectors(self) -> list[Vector]:
        plan = layout(self.spec)
        body = flatten_split(self.server.model, plan)[: plan.n_body]
        return [body, self.server.global_means.numpy().ravel(), self.server.global_covariance.numpy().ravel()]

    def accuracy(self) -> float:
        return float(self.server.evaluate_personalized()[0]) / 100


def make_client(clients: Any, stepped: Stepped) -> Any:
    as_tensor = live(stepped.spec).as_tensor

    class Client(clients.ClientFedFDA):  # type: ignore[misc]
        loads: Sequence[Any] = ()  # what it trains on, before all of its examples

        def setup_dataset(self, _: Namespace) -> None:
            train, _, test = stepped.parts[self.client_idx]
            self.whole, self.tests = ([(as_tensor(of.x), torch.from_numpy(of.y))] for of in (train, test))
            self.num_train, self.num_test = len(train.y), len(test.y)

        def load_train_data(self, **_: object) -> Any:
            return self.loads.pop() if self.loads else self.whole

        def load_test_data(self) -> Any:
            return self.tests

        def solve_beta(self, *_: object, **__: object) -> None:
            self.seen, seen = None, self.compute_feats()
            folds = Folds(*stepped.halves[self.client_idx].pop(0))
            with patch.object(clients, "StratifiedKFold", lambda **_: folds), twice_as_precise(self):
                super().solve_beta(seen[0].double(), seen[1])
            self.seen = seen

        def compute_mle_statistics(self, split: str = "train", feats: Any = None, labels: Any = None) -> Any:
            return super().compute_mle_statistics(split, *(self.seen or (feats, labels)))

    return Client


class Folds:
    """Our halves, as places among the examples that are in either."""

    def __init__(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> None:
        left_in = np.sort(np.concatenate([first, second]))
        self.first, self.second = np.searchsorted(left_in, first), np.searchsorted(left_in, second)

    def split(self, *_: object) -> Iterator[Halves]:
        yield self.first, self.second
        yield self.second, self.first
