"""pFedSD's own code (github.com/CGCL-codes/pFedSD): its worker trains one client after the other, its master merges.

What passes between processes there is handed over here. Its master takes the mean of clients alike, ours by examples,
which is the same for clients of equal size.
"""

from __future__ import annotations

import copy
import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from types import SimpleNamespace as Namespace
from typing import Any

from torch import nn

from laconic.algorithms.networks.settings import choose_spec
from laconic.networks import layout, live
from references import Batch, Epochs, Reference, Theirs, Vector, count_right, flatten, make_plain


class PFedSD(Reference):
    name, mark, model = "pFedSD", "pcode/workers/worker_pFedSD.py", "cnn-small"
    methods = ("pfedsd",)

    def __init__(self, path: Path) -> None:
        sys.path.insert(0, str(path))
        absent = {  # what reads data, builds its networks, merges otherwise and writes files
            "tqdm": ("tqdm",),
            "pcode.create_aggregator": (),
            "pcode.create_model": (),
            "pcode.models": (),
            "pcode.utils.op_files": ("is_jsonable", "write_txt"),
            "pcode.datasets.partition_data": ("DataPartitioner",),
            "pcode.datasets.prepare_data": ("get_combine_dataset", "get_dataset"),
        }
        for name, parts in absent.items():
            module = sys.modules[name] = module_from_spec(ModuleSpec(name, None))  # torch looks at tqdm's spec
            module.__dict__.update(dict.fromkeys(parts))
            package, _, last = name.rpartition(".")
            if package:
                setattr(importlib.import_module(package), last, module)

    def settings(self, method: str) -> list[str]:
        return ["method.training.rate=0.01", "method.training.momentum=0.9", "method.training.decay=0.00001"]

    def start(self, method: str, ours: Any, task: Any, parts: Sequence[Any]) -> Stepped:
        return Stepped(ours, task, parts)


class Unheard:
    """In place of a log that nobody reads."""

    def log(self, *_: object, **__: object) -> None: ...

    log_metric = save_json = log

    def meet_cache_limit(self) -> bool:
        return False


class Stepped(Theirs):
    def __init__(self, ours: Any, task: Any, parts: Sequence[Any]) -> None:
        self.parts, training = parts, ours.training
        self.spec = choose_spec(task, training)
        self.n_batches = [-(-len(train.y) // training.batch) for train, _, _ in parts]
        self.conf = Namespace(
            logger=Unheard(),
            graph=Namespace(on_cuda=False, worker_id=1, client_id=0, comm_round=0),
            n_clients=len(parts),
            batch_size=training.batch,
            base_batch_size=None,
            local_n_epochs=training.epochs,
            local_prox_term=0,
            use_mixup=False,
            optimizer="sgd",
            lr=training.rate,
            momentum_factor=training.momentum,
            use_nesterov=False,
            weight_decay=training.decay,
            lr_scheduler="MultiStepLR",
            lr_milestones=None,
            lr_milestone_ratios=None,
            lr_decay=0.1,
            lr_scaleup=False,
            lr_scaleup_init_lr=None,
            lr_scaleup_factor=None,
            lr_warmup=False,
            lr_warmup_epochs=5,
            display_tracked_time=False,
            lamda=ours.distil,
            KL_T=ours.temperature,
        )
        first = make_plain(self.spec, training.init_seed)
        self.worker, self.master = self.make_worker(first), self.make_master(first)

    def make_worker(self, network: nn.Module) -> Any:
        """Without what it does at its start: it looks for other processes and reads data."""
        kind = importlib.import_module("pcode.workers.worker_pFedSD").WorkerpFedSD
        worker = kind.__new__(kind)
        worker.conf, worker.criterion = self.conf, nn.CrossEntropyLoss()
        worker.timer = importlib.import_module("pcode.utils.timer").Timer(verbosity_level=0)
        worker.metrics = importlib.import_module("pcode.create_metrics").Metrics(network)
        worker.prepare_local_train_loader = lambda: None
        return worker

    def make_master(self, network: nn.Module) -> Any:
        kind = importlib.import_module("pcode.masters.master_pFedSD").MasterpFedSD
        master = kind.__new__(kind)
        master.conf, master.master_model, master.local_models = self.conf, network, {}
        return master

    def play(self, round: int, batches: dict[int, list[Batch]], starts: dict[int, Vector]) -> float:
        worker, trained = self.worker, self.master.local_models
        for client, n_batches in enumerate(self.n_batches):
            self.conf.num_batches_per_device_per_epoch = n_batches
            worker.train_loader = Epochs(batches[client], n_batches)
            worker.model = copy.deepcopy(self.master.master_model)
            if client in trained:
                worker.last_local_model = copy.deepcopy(trained[client]).train()  # a new network there, so not tested
                worker._train_AKT()
            else:
                worker._train()
            trained[client] = worker.model
        self.master._aggregate_model(list(trained))
        return 0.0  # nothing was put in place

    def vectors(self) -> list[Vector]:
        networks = [self.master.master_model, *self.master.local_models.values()]
        return [flatten(network, layout(self.spec)) for network in networks]

    def accuracy(self) -> float:
        networks, as_tensor = self.master.local_models, live(self.spec).as_tensor
        found = [
            count_right(networks[client], as_tensor(test.x), test.y) for client, (_, _, test) in enumerate(self.parts)
        ]
        return sum(found) / len(found)
