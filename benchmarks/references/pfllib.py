"""PFLlib (github.com/TsingZ0/PFLlib): its clients train, its server's mean is taken."""

from __future__ import annotations

import copy
import importlib
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn

from laconic.algorithms.networks.settings import choose_spec
from laconic.networks import layout, live
from references import Batch, Epochs, Reference, Split, Theirs, Vector, count_right, flatten_split, make_plain

METHODS = {  # ours -> module of its client, class, what travels
    "fedavg": ("clientavg", "clientAVG", ""),
    "fedper": ("clientper", "clientPer", "base"),
    "fedrep": ("clientrep", "clientRep", "base"),
    "fedbabu": ("clientbabu", "clientBABU", "base"),
    "lg-fedavg": ("clientlg", "clientLG", "head"),
    "ditto": ("clientditto", "clientDitto", ""),
    "pfedme": ("clientpFedMe", "clientpFedMe", ""),
}
PULL, HEAD_EPOCHS = 0.1, 2
PFEDME: dict[str, Any] = {
    "pull": 15.0,
    "inner_steps": 2,
    "outer_rate": 0.01,
    "training.decay": 0.001,
}  # the last is its optimiser's mu


class PFLlib(Reference):
    name, mark, model = "PFLlib", "system/flcore/clients/clientavg.py", "cnn-small"
    methods = tuple(METHODS)

    def __init__(self, path: Path) -> None:
        sys.path.insert(0, str(path / "system"))
        sys.modules.setdefault("h5py", types.ModuleType("h5py"))  # its server saves with these, and we do not
        dlg = sys.modules.setdefault("utils.dlg", types.ModuleType("utils.dlg"))
        dlg.DLG = None  # type: ignore[attr-defined]

    def settings(self, method: str) -> list[str]:
        own = {
            "fedrep": [f"method.head_epochs={HEAD_EPOCHS}"],
            "ditto": [f"method.pull={PULL}"],
            "pfedme": [f"method.{key}={value}" for key, value in PFEDME.items()],
        }
        return own.get(method, [])

    def is_tested(self, method: str) -> bool:
        return method not in (
            "fedbabu",
            "pfedme",
        )  # one tunes once, at the end; the other's own networks are overwritten

    def start(self, method: str, ours: Any, task: Any, parts: Sequence[Any]) -> Stepped:
        return Stepped(method, ours, task, parts)


class Stepped(Theirs):
    def __init__(self, method: str, ours: Any, task: Any, parts: Sequence[Any]) -> None:
        module, name, self.part = METHODS[method]
        self.method, self.parts, training = method, parts, ours.training
        self.spec = choose_spec(task, training)
        self.n_batches = -(-len(parts[0][0].y) // training.batch)
        args = types.SimpleNamespace(
            model=Split(make_plain(self.spec, training.init_seed)),
            algorithm=method,
            dataset="",
            device="cpu",
            save_folder_name="",
            num_classes=task.n_classes,
            batch_size=training.batch,
            local_learning_rate=training.rate,
            local_epochs=training.epochs,
            plocal_epochs=HEAD_EPOCHS if method == "fedrep" else training.epochs,
            fine_tuning_epochs=1,
            few_shot=0,
            learning_rate_decay=False,
            learning_rate_decay_gamma=1.0,
            mu=PULL,
            lamda=PFEDME["pull"],
            K=PFEDME["inner_steps"],
            p_learning_rate=training.rate,
        )
        self.n_repeats = PFEDME["inner_steps"] if method == "pfedme" else 1  # of each batch, as it is noted
        if method == "pfedme":
            args.local_learning_rate = PFEDME["outer_rate"]
        kind = getattr(importlib.import_module(f"flcore.clients.{module}"), name)
        slow = {"train_slow": False, "send_slow": False}
        self.clients = [kind(args, k, len(p[0].y), len(p[2].y), **slow) for k, p in enumerate(parts)]
        server = importlib.import_module("flcore.servers.serverbase").Server
        self.server = server.__new__(server)
        self.server.global_model = self.choose(copy.deepcopy(args.model))

    def choose(self, model: nn.Module) -> Any:
        return getattr(model, self.part) if self.part else model

    def play(self, round: int, batches: dict[int, list[Batch]], starts: dict[int, Vector]) -> float:
        for k, client in enumerate(self.clients):
            client.set_parameters(self.server.global_model)
            epochs = Epochs(batches[k][:: self.n_repeats], self.n_batches)
            client.load_train_data = lambda epochs=epochs: epochs
            if self.method == "ditto":
                client.ptrain()
            client.train()
        self.server.uploaded_models = [self.choose(client.model) for client in self.clients]
        total = sum(client.train_samples for client in self.clients)
        self.server.uploaded_weights = [client.train_samples / total for client in self.clients]
        self.server.aggregate_parameters()
        return 0.0  # nothing was put in place

    def vectors(self) -> list[Vector]:
        whole = copy.deepcopy(self.clients[0].model)
        if self.part:
            setattr(whole, self.part, self.server.global_model)
        else:
            whole = self.server.global_model
        plan = layout(self.spec)
        vector = flatten_split(whole, plan)
        shared = {"base": vector[: plan.n_body], "head": vector[plan.n_body :], "": vector}[self.part]
        own = [flatten_split(client.model_per, plan) for client in self.clients] if self.method == "ditto" else []
        return [shared, *own]

    def accuracy(self) -> float:
        found = []
        for client, (_, _, test) in zip(self.clients, self.parts, strict=True):
            model = copy.deepcopy(client.model_per if self.method == "ditto" else client.model)
            if self.method != "ditto" and self.part:
                setattr(model, self.part, self.server.global_model)
            elif self.method != "ditto":
                model = self.server.global_model
            found.append(count_right(model, live(self.spec).as_tensor(test.x), test.y))
        return sum(found) / len(found)
