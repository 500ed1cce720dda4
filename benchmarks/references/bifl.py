"""BiFL's own code (github.com/yuzhiyang123/FL-BNN): its clients train networks of signs, its server counts their votes.

Its layers are used in our network, their outputs times what ours lets a sign count for. Where it departs from its paper
it is made to follow the paper: votes are signs (the code rounds to three levels), and the majority's signs are mixed
into latent weights by the line that the code has for their mean; the line that did so is commented out. Two things are
ours: a tied vote is a plus, and six voters go by the curve for ten. Its layers take latent biases from where weights
are left when votes have been mixed in, so the mixed ones are put there.
"""

from __future__ import annotations

import copy
import importlib
import sys
import types
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from laconic.algorithms.networks.settings import choose_spec
from laconic.networks import binary, layout, live
from laconic.networks.models import BodyAndHead
from references import Batch, Reference, Theirs, Vector, bare_package, count_right, flatten, late_push_back, make_plain

MODES = {"bifl-full": "fullfull", "bifl-updown": "binfull", "bifl-ml": "binfullnew"}
TEN = 0.1  # a client's share of ten, by which the code knows their curve
ABSENT = {  # what it imports but is not used here -> names that are imported from it
    "bokeh": (),
    "bokeh.io": ("output_file", "save", "show"),
    "bokeh.plotting": ("figure",),
    "bokeh.layouts": ("column",),
    "pandas": (),
    "tqdm": ("trange",),
    "torchvision": (),
    "torchvision.utils": ("save_image",),
    "scipy": (),
    "scipy.stats": ("norm",),
    "data": ("get_dataset",),
    "preprocess": ("get_transform",),
}


class BiFL(Reference):
    name, mark, model = "BiFL", "models/mnistnet_binary.py", "references.bifl:PowersOfTwo"
    methods = tuple(MODES)

    def __init__(self, path: Path) -> None:
        sys.path.insert(0, str(path))
        bare_package("models", path / "models")
        for name, parts in ABSENT.items():
            module = sys.modules[name] = types.ModuleType(name)
            module.__dict__.update(dict.fromkeys(parts, do_nothing))
        with warnings.catch_warnings(action="ignore", category=SyntaxWarning):
            for name in ("client_binary", "server_binary", "models.binarized_modules"):
                importlib.import_module(name)
        for name in ABSENT:  # others may want the real ones
            del sys.modules[name]

    def settings(self, method: str) -> list[str]:
        return ["method.drop_every=1"]

    def start(self, method: str, ours: Any, task: Any, parts: Sequence[Any]) -> Stepped:
        return Stepped(method, ours, task, parts)


class PowersOfTwo(BodyAndHead):
    """What a sign counts for in it are powers of 2, so it rounds alike whether weights or outputs are multiplied."""

    def __init__(self, input_shape: tuple[int, ...], n_classes: int) -> None:
        first = [nn.Conv2d(1, 8, (4, 2), padding=(2, 1)), nn.ReLU(), nn.MaxPool2d(2)]
        second = [nn.Conv2d(8, 32, 4, padding=1), nn.ReLU(), nn.MaxPool2d(3)]
        super().__init__(nn.Sequential(*first, *second, nn.Flatten()), input_shape, n_classes)


class Stepped(Theirs):
    def __init__(self, method: str, ours: Any, task: Any, parts: Sequence[Any]) -> None:
        self.method, self.parts, training = method, parts, ours.training
        self.spec = choose_spec(task, training)
        self.regime = {0: {"optimizer": "Adam", "lr": training.rate}}
        self.regime |= {n * ours.drop_every: {"lr": share * training.rate} for n, share in ((1, 0.4), (2, 0.2))}
        sys.modules["models"].__dict__["net"] = lambda **_: self.make_model(training.init_seed)
        args = types.SimpleNamespace(
            model="net",
            model_config="",
            input_size=None,
            dataset="",
            results_dir="",
            save="",
            type="torch.FloatTensor",
            batch_size=training.batch,
            workers=0,
            lr=training.rate,
            optimizer="Adam",
            momentum=0,
            weight_decay=0,
            gpus=[0],
            alpha=getattr(ours, "mix", getattr(ours, "gain", 0)),
            workmode=MODES[method],
        )
        client, server = sys.modules["client_binary"].Client, sys.modules["server_binary"].Server
        kind = type("Adapted", (Adapted, client), {"is_majority": method == "bifl-updown"})
        self.server = server.__new__(server)  # its start reads data and looks at the machine
        self.server.clients = [kind(k, train.y, args, 1 / len(parts)) for k, (train, _, _) in enumerate(parts)]
        self.server.numclients, self.server.args, self.server.device = len(parts), args, ["cpu"]
        self.server.model, self.server.val_loader = self.make_model(training.init_seed), []
        self.server.results = types.SimpleNamespace(add=do_nothing, save=do_nothing)

    def make_model(self, seed: int) -> nn.Module:
        layers, model = sys.modules["models.binarized_modules"], make_plain(self.spec, seed)
        kinds = {nn.Conv2d: layers.BinarizeConv2d, nn.Linear: layers.BinarizeLinear}
        for layer in model.modules():
            if type(layer) in kinds:
                layer.worth = float((2 / layer.weight[0].numel()) ** 0.5)
                for weights in layer.parameters():  # ours are trained by the gradient on what a sign counts for
                    weights.register_hook(lambda gradient, worth=layer.worth: gradient / worth)
                layer.__class__ = type("Sized", (Sized, kinds[type(layer)]), {})
        model.regime = self.regime
        return model

    @contextmanager
    def adapt_ours(self) -> Iterator[None]:
        with late_push_back(binary):
            yield

    def play(self, round: int, batches: dict[int, list[Batch]], starts: dict[int, Vector]) -> float:
        for k, client in enumerate(self.server.clients):
            client.train_loader = batches[k]
        with without_cuda(), redirect_stdout(StringIO()):  # it tells much
            self.server.train_epoch(round - 1)
        return 0.0  # nothing was put in place

    def vectors(self) -> list[Vector]:
        clients = [client.model for client in self.server.clients]
        models = [self.server.model] if self.method == "bifl-full" else clients
        return [flatten(model, layout(self.spec)) for model in models]

    def accuracy(self) -> float:
        as_tensor = live(self.spec).as_tensor
        return float(
            np.mean(
                [
                    count_right(copy.deepcopy(client.model), as_tensor(test.x), test.y)  # testing spoils latent biases
                    for client, (_, _, test) in zip(self.server.clients, self.parts, strict=True)
                ]
            )
        )

    def mask_difference(self, server: Any, states: Sequence[Any]) -> float | None:
        """Of numbers of votes."""
        if self.method == "bifl-full":
            return None
        n = len(self.parts)
        votes = np.rint((flatten(self.server.model, layout(self.spec)) + 1) * n / 2)
        return float(np.mean(votes != server.n_plus))


class Sized:
    """A layer of signs whose outputs count for as much as ours."""

    worth: float

    def forward(self, x: Tensor) -> Tensor:
        return self.worth * super().forward(x)  # type: ignore[misc]


class Adapted:
    """A client that follows the paper."""

    is_majority: bool

    def precom(self, mode: str) -> None:
        if mode != "fullfull":
            for weights in self.model.parameters():  # type: ignore[attr-defined]
                weights.data.sign_()  # which rounding to three levels leaves as they are
        super().precom(mode=mode)  # type: ignore[misc]

    def localupdate(self, param: dict[str, Tensor], sigma: float, mode: str) -> None:
        share = self.proportion
        if self.is_majority:
            param = {name: torch.where(votes > -share, 1.0, -1.0) for name, votes in param.items()}  # a tie is about 0
        self.proportion = TEN
        super().localupdate(param, sigma=sigma, mode=mode)  # type: ignore[misc]
        self.proportion = share
        for weights in self.model.parameters():  # type: ignore[attr-defined]
            weights.data.copy_(weights.org)


def do_nothing(*_: object, **__: object) -> None: ...


@contextmanager
def without_cuda() -> Iterator[None]:
    before = Tensor.cuda, torch.cuda.set_device
    Tensor.cuda, torch.cuda.set_device = lambda tensor: tensor, do_nothing  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        Tensor.cuda, torch.cuda.set_device = before  # type: ignore[method-assign]
