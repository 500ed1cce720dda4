"""FedPURIN's own code (github.com/HikariX/FedPURIN, made from Fling): its clients train, its groups merge."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace as Namespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from laconic.algorithms.networks.settings import choose_spec
from laconic.networks import layout, live
from references import Batch, Epochs, Reference, Theirs, Vector, bare_package, count_right, flatten, make_plain, pour

METHODS = {  # ours -> client and group
    "fedpurin": ("purin_client.PurinClient", "purin_group.PurinServerGroup"),
    "fedcac": ("fedcac_client.FedCACClient", "fedcac_group.FedCACServerGroup"),
    "fedavg": ("base_client.BaseClient", "base_group.ParameterServerGroup"),
    "fedbn": ("base_client.BaseClient", "base_group.ParameterServerGroup"),
}
SHARED = ("fedavg", "fedbn")  # whose server holds one network
WITHOUT_NORMS = Namespace(name="except", keywords=["bn", "downsample.1"])
BETA = 4  # so that some rounds go together and some alone


class FedPURIN(Reference):
    name, mark, model = "FedPURIN", "fling/component/client/purin_client.py", "resnet8-slim"
    methods = tuple(METHODS)

    def __init__(self, path: Path) -> None:
        sys.path.insert(0, str(path))
        fling = path / "fling"
        for name in ("", "component", "component/client", "component/group", "component/server"):
            bare_package(".".join(["fling", *filter(None, name.split("/"))]), fling / name)
        sys.modules["fling.component.server"].ServerTemplate = object  # type: ignore[attr-defined]
        utils = bare_package("fling.utils", fling / "utils")
        torch_utils = importlib.import_module("fling.utils.torch_utils")
        utils.__dict__.update(
            {name: getattr(torch_utils, name) for name in ("get_optimizer", "get_weights", "get_params_number")}
            | {"VariableMonitor": Unheard, "Logger": object}
        )
        model = sys.modules["fling.model"] = types.ModuleType("fling.model")
        model.get_model = lambda args: args.make_model()  # type: ignore[attr-defined]
        clients, groups = (sys.modules[f"fling.component.{kind}"] for kind in ("client", "group"))
        clients.__dict__["ClientTemplate"] = find("client.client_template.ClientTemplate")
        groups.__dict__["ParameterServerGroup"] = find("group.base_group.ParameterServerGroup")

    def settings(self, method: str) -> list[str]:
        own = {
            "fedpurin": [f"method.alone_after={BETA}", "method.half_gradient=true"],
            "fedcac": [f"method.alone_after={BETA}"],
            "fedavg": ["method.tested=trained"],
            "fedbn": ["method.tested=trained"],
        }
        return ["method.training.momentum=0.9", *own[method]]

    def start(self, method: str, ours: Any, task: Any, parts: Sequence[Any]) -> Stepped:
        return Stepped(method, ours, task, parts)


def find(name: str) -> Any:
    module, _, kind = name.rpartition(".")
    return getattr(importlib.import_module(f"fling.component.{module}"), kind)


@contextmanager
def lenient_views() -> Iterator[None]:
    """Its masks are made by `view(-1)`, which weights that lie channels last do not have."""
    view = Tensor.view

    def reshape(self: Tensor, *shape: Any) -> Tensor:
        return self.reshape(-1) if shape == (-1,) else view(self, *shape)

    Tensor.view = reshape  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        Tensor.view = view  # type: ignore[method-assign]


class Unheard:
    """In place of a monitor that nobody reads."""

    def append(self, *_: object, **__: object) -> None: ...

    def variable_mean(self) -> dict[str, float]:
        return {}

    logging = add_scalar = append


class Named(nn.Module):
    """Our residual network under the names by which it knows normalisations."""

    def __init__(self, plain: nn.Module) -> None:
        super().__init__()
        stem, *rest = plain.body
        self.pre_conv, self.bn1, self.before = stem[0], stem[1], nn.Sequential(*stem[2:])
        self.blocks = nn.ModuleList(NamedBlock(each) for each in rest[:-2])
        self.after, self.fc = nn.Sequential(*rest[-2:]), plain.head
        self.plain = [plain]  # in a list it is no part of this

    def forward(self, x: Tensor) -> Tensor:
        x = self.before(self.bn1(self.pre_conv(x)))
        for block in self.blocks:
            x = block(x)
        return self.fc(self.after(x))


class NamedBlock(nn.Module):
    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.conv1, self.bn1, self.conv2, self.bn2 = block.conv1, block.bn1, block.conv2, block.bn2
        self.downsample = block.around

    def forward(self, x: Tensor) -> Tensor:
        inner = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(inner + self.downsample(x))


class Stepped(Theirs):
    def __init__(self, method: str, ours: Any, task: Any, parts: Sequence[Any]) -> None:
        self.method, self.parts, self.ours, training = method, parts, ours, ours.training
        self.spec = choose_spec(task, training)
        self.n_batches = -(-len(parts[0][0].y) // training.batch)
        aggregated = WITHOUT_NORMS if method in ("fedpurin", "fedbn") else Namespace(name="all")
        args = Namespace(
            make_model=lambda: Named(make_plain(self.spec, training.init_seed)),
            client=Namespace(val_frac=0, client_num=len(parts)),
            learn=Namespace(
                device="cpu",
                batch_size=training.batch,
                local_eps=training.epochs,
                optimizer={"name": "sgd", "lr": training.rate, "momentum": training.momentum},
                tau=0.5,
                beta=BETA,
            ),
            group=Namespace(
                aggregation_method="avg", aggregation_parameters=aggregated, include_non_param=False, isLocal=False
            ),
            hyper=Namespace(HeadEnd=False, isHessian=False, isGrad=True, isBN=False, exc="BN"),
            other=Namespace(resume_path=None),
        )
        client, group = METHODS[method]
        client, group = find(f"client.{client}"), find(f"group.{group}")
        self.group = group(args, Unheard())
        self.group.server = Namespace(glob_dict=None)
        for number, (train, _, _) in enumerate(parts):
            self.group.append(client(args, number, train.y))
        with redirect_stdout(StringIO()):  # it tells much
            self.group.initialize()

    def play(self, round: int, batches: dict[int, list[Batch]], starts: dict[int, Vector]) -> float:
        gap, plan = 0.0, layout(self.spec)
        for number, client in enumerate(self.group.clients):
            mine, due = self.flatten(client.model), starts[number][: plan.n_trained]
            gap = max(gap, float(np.linalg.norm(mine - due) / np.linalg.norm(due)))
            pour(starts[number], client.model.plain[0], plan)
            told = [{"input": x, "class_id": y} for x, y in batches[number]]
            client.train_dataloader = Epochs(told, self.n_batches)
            client.model.to(memory_format=torch.channels_last)  # merging leaves it otherwise
            with lenient_views():
                client.train(lr=None)
        clients = self.group.clients
        self.trained = [self.flatten(getattr(client, "prev_local_model", None) or client.model) for client in clients]
        self.masks = [self.flatten_masks(client) for client in clients] if self.method not in SHARED else []
        self.right = [
            count_right(client.model, live(self.spec).as_tensor(test.x), test.y)
            for client, (_, _, test) in zip(clients, self.parts, strict=True)
        ]
        with redirect_stdout(StringIO()):
            self.group.aggregate(round)
        return gap

    def flatten(self, model: Named) -> Vector:
        return flatten(model.plain[0], layout(self.spec))

    def flatten_masks(self, client: Any) -> Vector:
        """[entry of our part], in our order."""
        names = {id(value): name for name, value in client.model.plain[0].named_parameters()}
        taken = [
            (names[id(value)], name)
            for name, value in client.model.named_parameters()
            if self.method == "fedcac" or not any(word in name for word in WITHOUT_NORMS.keywords)
        ]
        by_name = {plain: mask for (plain, _), mask in zip(taken, client.local_mask, strict=True)}
        parts = [
            (by_name[piece.name].permute(0, 2, 3, 1) if len(piece.shape) == 4 else by_name[piece.name]).reshape(-1)
            for piece in layout(self.spec).pieces
            if piece.name in by_name
        ]
        return torch.cat(parts).numpy()

    def vectors(self) -> list[Vector]:
        if self.method not in SHARED:
            return self.trained
        part = self.ours.part(self.spec)
        return [part.take(self.flatten(self.group.clients[0].model))]

    def accuracy(self) -> float:
        return float(np.mean(self.right))

    def mask_difference(self, server: Any, states: Sequence[Any]) -> float | None:
        if not self.masks:
            return None
        return max(float(np.mean(mine != state.critical)) for mine, state in zip(self.masks, states, strict=True))
