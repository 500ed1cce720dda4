"""HtFLlib (github.com/TsingZ0/HtFLlib): its clients train and tell their means, its server makes targets of them.

Two things of it are not followed: FedProto's clients gather means while they still train, and FedTGP's take them from
the network as it was before. Here both are asked for them, by its own function, once training has ended.
"""

from __future__ import annotations

import copy
import importlib
import sys
import types
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from laconic.algorithms.networks import fed_kd, fed_tgp, fml
from laconic.algorithms.networks.settings import choose_spec
from laconic.networks import count_head_inputs, layout, live, sgd
from laconic.networks.prototypes import TargetMaker
from references import Batch, Epochs, Reference, Split, Theirs, Vector, flatten_split, make_plain

METHODS = {  # ours -> client and server
    "fedproto": ("clientproto.clientProto", "serverproto.FedProto"),
    "fedtgp": ("clienttgp.clientTGP", "servertgp.FedTGP"),
    "fml": ("clientfml.clientFML", "serverfml.FML"),
    "lg-fedavg": ("clientlg.clientLG", "serverlg.LG_FedAvg"),
    "fedkd": ("clientkd.clientKD", "serverkd.FedKD"),
}
OF_TARGETS = ("fedproto", "fedtgp")
N_FEATURES, MARGIN, SERVER_EPOCHS = 64, 100.0, 20
FLAT = "mlp"  # without convolutions, of which FedKD's code takes each channel's kernel for a matrix
# so little that all layers become thinner; where one would not, ours sends it whole and the code all the same
ENERGY = ("method.first_energy=0.5", "method.last_energy=0.8", "method.rising_rounds=3")


class HtFLlib(Reference):
    name, mark, model = "HtFLlib", "system/flcore/clients/clienttgp.py", "cnn-small"
    methods = tuple(METHODS)

    def __init__(self, path: Path) -> None:
        sys.path.insert(0, str(path / "system"))
        sys.modules.setdefault("h5py", types.ModuleType("h5py"))  # it saves with these, and we do not
        for name, part in {"utils.data_utils": "read_client_data", "flcore.trainmodel.models": "BaseHeadSplit"}.items():
            module = sys.modules[name] = types.ModuleType(name)
            setattr(module, part, None)
        shelf, base = Shelf(), find("clients.clientbase")
        base.save_item, base.load_item = shelf.save, shelf.load

    def settings(self, method: str) -> list[str]:
        sizes = [f"method.n_features={N_FEATURES}", f"method.cps_dims={N_FEATURES}"]
        own = {
            "fedproto": sizes,
            "fedtgp": [*sizes, f"method.margin={MARGIN}", f"method.server_epochs={SERVER_EPOCHS}"],
            "fml": [f"method.aux_model={self.model}"],
            "fedkd": [f"method.training.model={FLAT}", f"method.aux_model={FLAT}", *ENERGY],
        }
        return own.get(method, [])

    def start(self, method: str, ours: Any, task: Any, parts: Sequence[Any]) -> Stepped:
        return Stepped(method, ours, task, parts)


def find(name: str) -> Any:
    return importlib.import_module(f"flcore.{name}")


class Shelf:
    """In place of files that it keeps everything in between two steps; what is taken out is a copy there, too."""

    def __init__(self) -> None:
        self.items: dict[tuple[str, str], Any] = {}

    def save(self, item: Any, role: str, name: str, _: object = None) -> None:
        self.items[role, name] = copy.deepcopy(item)

    def load(self, role: str, name: str, _: object = None) -> Any:
        return copy.deepcopy(self.items.get((role, name)))


class Stepped(Theirs):
    def __init__(self, method: str, ours: Any, task: Any, parts: Sequence[Any]) -> None:
        self.method, self.parts, self.n_classes, training = method, parts, task.n_classes, ours.training
        self.ours, self.spec = ours, choose_spec(task, training, n_features=ours.n_features)
        self.n_batches = -(-len(parts[0][0].y) // training.batch)
        self.batch, self.noted = training.batch, list[tuple[TargetMaker, np.random.Generator]]()
        args = types.SimpleNamespace(
            algorithm=method,
            dataset="",
            device="cpu",
            save_folder_name="temp",
            save_folder_name_full="",
            models_folder_name="",
            num_classes=task.n_classes,
            batch_size=training.batch,
            local_learning_rate=training.rate,
            local_epochs=training.epochs,
            few_shot=0,
            lamda=getattr(ours, "pull", 0),
            alpha=getattr(ours, "own_share", 0),
            beta=getattr(ours, "aux_share", 0),
            mentee_learning_rate=training.rate,
            T_start=0,
            feature_dim=count_head_inputs(self.spec),
        )
        self.mutual = dict[int, list[Batch]]()  # batches of two networks, which are noted apart
        self.bridges = dict[int, Vector]()  # FedKD's, as ours drew them
        base = find("clients.clientbase")
        base.BaseHeadSplit = lambda *_: Split(make_plain(self.spec, training.init_seed))
        base.save_item(base.BaseHeadSplit(), "Server", "global_model")
        base.save_item(base.BaseHeadSplit().head, "Server", "head")
        (client_module, client), (server_module, server) = (name.split(".") for name in METHODS[method])
        slow = {"train_slow": False, "send_slow": False}
        kind, self.shelf = getattr(find(f"clients.{client_module}"), client), base
        self.clients = [kind(args, k, len(p[0].y), len(p[2].y), **slow) for k, p in enumerate(parts)]
        self.collect = find("clients.clienttgp").clientTGP.collect_protos
        self.maker_module = find(f"servers.{server_module}")
        self.server = self.start_server(getattr(self.maker_module, server), args, ours)
        base.save_item(None, "Server", "global_protos")

    def start_server(self, kind: Any, args: types.SimpleNamespace, ours: Any) -> Any:
        """Without what its base does: it reads data and looks at the machine."""
        server = kind.__new__(kind)
        server.role, server.device, server.save_folder_name, server.num_classes = "Server", "cpu", "", args.num_classes
        server.selected_clients = server.clients = self.clients
        server.uploaded_ids = [client.id for client in self.clients]
        total = sum(client.train_samples for client in self.clients)
        server.uploaded_weights = [client.train_samples / total for client in self.clients]
        if self.method == "fedkd":
            self.thin_out, self.maker_module.decomposition = find("clients.clientkd").decomposition, self.note_merged
        if self.method == "fedtgp":
            server.server_learning_rate, server.batch_size = ours.server_rate, args.batch_size
            server.server_epochs, server.margin_threthold = ours.server_epochs, ours.margin
            server.CEloss = nn.CrossEntropyLoss()
            self.maker_module.DataLoader = self.next_epoch
        return server

    @contextmanager
    def adapt_ours(self) -> Iterator[None]:
        """Notes in which order our server trains its targets, and a client two networks at once."""
        train_maker, fit_both = fed_tgp.train_maker, fml.fit_both

        def noting(maker, points, labels, masks, rng, **settings):  # type: ignore[no-untyped-def]
            self.noted.append((maker, copy.deepcopy(rng)))
            return train_maker(maker, points, labels, masks, rng, **settings)

        def noting_both(own, aux, bridge, examples, rng, training, **settings):  # type: ignore[no-untyped-def]
            (client,) = (k for k, (train, _, _) in enumerate(self.parts) if train.y is examples[1])
            self.bridges.setdefault(client, bridge)
            drawn = sgd.batches(len(train_y := examples[1]), copy.deepcopy(rng), training.batch, training.epochs)
            as_tensor = live(self.spec).as_tensor
            self.mutual[client] = [(as_tensor(examples[0][at]).clone(), torch.from_numpy(train_y[at])) for at in drawn]
            return fit_both(own, aux, bridge, examples, rng, training, **settings)

        fed_tgp.train_maker, fml.fit_both, fed_kd.fit_both = noting, noting_both, noting_both
        try:
            yield
        finally:
            fed_tgp.train_maker, fml.fit_both, fed_kd.fit_both = train_maker, fit_both, fit_both

    def play(self, round: int, batches: dict[int, list[Batch]], starts: dict[int, Vector]) -> float:
        for k, (client, (train, _, _)) in enumerate(zip(self.clients, self.parts, strict=True)):
            whole = [(live(self.spec).as_tensor(train.x).clone(), torch.from_numpy(train.y))]
            mine = Epochs(batches[k] or self.mutual[k], self.n_batches)
            loads = chain([mine], repeat(whole))  # to train on, then to take means of
            client.load_train_data = lambda loads=loads: next(loads)
            if self.method == "fedkd":
                self.send_thin(round, k)
            client.train()
            if self.method in OF_TARGETS:
                self.collect(client)
        with redirect_stdout(StringIO()):  # it tells much
            if self.method in OF_TARGETS:
                self.server.receive_protos()
            else:
                self.server.energy = self.next_energy(round)
                self.server.aggregate_parameters()
            if self.method == "fedtgp":
                self.train_targets()
        if self.method == "lg-fedavg":
            for client in self.clients:
                client.set_parameters()
        return 0.0  # nothing was put in place

    def next_energy(self, round: int) -> float:
        return self.ours.energy(round + 1) if self.method == "fedkd" else 0.0

    def send_thin(self, round: int, k: int) -> None:
        """The common network comes to a client, in the first round, too, as thin matrices of this round's energy."""
        client = self.clients[k]
        if round == 1:
            first = self.shelf.load_item("Server", "global_model").named_parameters()
            self.shelf.save_item(self.thin_out(first, self.ours.energy(1)), "Server", "compressed_param")
            bridge = self.shelf.load_item(client.role, "W_h")
            bridge.weight.data.copy_(torch.from_numpy(self.bridges[k]))
            self.shelf.save_item(bridge, client.role, "W_h")
        client.set_parameters()
        client.energy = self.ours.energy(round)

    def note_merged(self, named: Iterable[tuple[str, Any]], energy: float) -> Any:
        """Before it is made thin it is what our server keeps."""
        merged, whole = dict(named), self.shelf.load_item("Server", "global_model")
        for name, weights in whole.named_parameters():
            weights.data.copy_(torch.from_numpy(merged[name]))
        self.shelf.save_item(whole, "Server", "global_model")
        return self.thin_out(merged.items(), energy)

    def train_targets(self) -> None:
        maker, self.order = self.noted[-1]
        if len(self.noted) == 1:  # both begin with what ours was given
            made = self.maker_module.Trainable_Global_Prototypes(self.n_classes, *maker.inner.shape, "cpu")
            first, last = made.middle[0][0], made.fc
            theirs = (made.embedings.weight, first.weight, first.bias, last.weight, last.bias)
            for mine, value in zip(theirs, maker, strict=True):
                mine.data.copy_(torch.from_numpy(value))
            self.shelf.save_item(made, "Server", "TGP")
        protos = [self.shelf.load_item(client.role, "protos") for client in self.clients]
        self.server.uploaded_protos = [(mine[label], label) for mine in protos for label in sorted(mine)]
        self.server.update_TGP()

    def next_epoch(self, points: Sequence[tuple[Tensor, int]], *_: object, **__: object) -> Iterator[Any]:
        """In place of a DataLoader that shuffles."""
        for places in np.split(order := self.order.permutation(len(points)), range(self.batch, len(order), self.batch)):
            chosen = [points[place] for place in places]
            yield torch.stack([point for point, _ in chosen]), [label for _, label in chosen]

    def vectors(self) -> list[Vector]:
        plan = layout(self.spec)
        models = [self.shelf.load_item(client.role, "model") for client in self.clients]
        if self.method == "lg-fedavg":
            models[0].head = self.shelf.load_item("Server", "head")
            return [flatten_split(models[0], plan)[plan.n_body :]]
        if self.method not in OF_TARGETS:
            shared = flatten_split(self.shelf.load_item("Server", "global_model"), plan)
        else:
            targets = np.zeros((self.n_classes, N_FEATURES), np.float32)
            for label, target in self.shelf.load_item("Server", "global_protos").items():
                targets[label] = target.numpy()
            shared = targets.ravel()
        return [shared, *(flatten_split(model, plan) for model in models)]

    def accuracy(self) -> float:
        found = []
        for client, (_, _, test) in zip(self.clients, self.parts, strict=True):
            client.load_test_data = lambda test=test: [(live(self.spec).as_tensor(test.x), torch.from_numpy(test.y))]
            right, tried, _ = client.test_metrics()
            found.append(right / tried)
        return sum(found) / len(found)
