"""DisPFL's own code (github.com/rong-dai/DisPFL): its loop over rounds runs as it is, stopped at the end of each.

First masks and who hears whom, which both draw at random, are ours; what a mask takes up is chosen by gradient, as its
code does without the switch that its scripts set. Its count of operations, which needs torchvision, is left out.
"""

from __future__ import annotations

import importlib
import logging
import sys
import types
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Semaphore, Thread
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from laconic.algorithms.networks import dispfl
from laconic.algorithms.networks.settings import choose_spec
from laconic.networks import layout, live
from laconic.networks.vector import view
from references import Batch, Epochs, Reference, Theirs, Vector, late_push_back, make_plain

SETTINGS = (
    "n_neighbours=2",  # of five others
    "n_rounds=10",  # so that fewer weights are swapped each round
    "training.rate=0.05",  # at its own 0.1 most neurons die here, and of gradients that are 0 any may be taken up
)


class DisPFL(Reference):
    name, mark, model = "DisPFL", "fedml_api/standalone/DisPFL/dispfl_api.py", "cnn-small"
    methods = ("dispfl",)

    def __init__(self, path: Path) -> None:
        sys.path.insert(0, str(path))
        counter = sys.modules["fedml_api.utils.main_flops_counter"] = types.ModuleType("main_flops_counter")
        counter.count_training_flops = counter.count_inference_flops = lambda *_, **__: 0  # type: ignore[attr-defined]
        unused = sys.modules["fedml_api.model.cv.cnn_meta"] = types.ModuleType("cnn_meta")
        unused.Meta_net = None  # type: ignore[attr-defined]

    def settings(self, method: str) -> list[str]:
        return [f"method.{setting}" for setting in SETTINGS]

    def start(self, method: str, ours: Any, task: Any, parts: Sequence[Any]) -> Stepped:
        return Stepped(ours, task, parts)


class Stepped(Theirs):
    def __init__(self, ours: Any, task: Any, parts: Sequence[Any]) -> None:
        training = ours.training
        self.spec = choose_spec(task, training)
        self.n_batches = -(-len(parts[0][0].y) // training.batch)
        self.seats: dict[int, list[int]] = {}
        self.masks: dict[int, Vector] = {}  # the first ones, by client
        args = Namespace(
            client_num_in_total=len(parts),
            client_num_per_round=ours.n_neighbours,
            comm_round=ours.n_rounds,
            dense_ratio=ours.density,
            anneal_factor=ours.swap,
            lr=training.rate,
            lr_decay=ours.fade,
            wd=training.decay,
            momentum=training.momentum,
            epochs=training.epochs,
            batch_size=training.batch,
            client_optimizer="sgd",
            erk_power_scale=1,
            active=1.0,
            cs="ours",
            different_initial=True,
            dis_gradient_check=False,
            diff_spa=False,
            uniform=False,
            static=False,
            save_masks=False,
            dataset="",
            ci=0,
        )
        logger = logging.getLogger("DisPFL")
        logger.propagate = False  # it tells much
        module = make_plain(self.spec, training.init_seed).to(memory_format=torch.contiguous_format)
        sizes = {k: len(train.y) for k, (train, _, _) in enumerate(parts)}
        told = {
            k: [(live(self.spec).as_tensor(test.x), torch.from_numpy(test.y))] for k, (_, _, test) in enumerate(parts)
        }
        self.loop = Loop(self, (0, 0, None, None, sizes, dict.fromkeys(sizes), told, []), args, module, logger)

    @contextmanager
    def adapt_ours(self) -> Iterator[None]:
        """Notes what ours draw."""
        start_client, seat = dispfl.DisPFL.start_client, dispfl.seat

        def noting_mask(method: Any, task: Any, site: Any) -> Any:
            client = start_client(method, task, site)
            self.masks[site.id] = client.mask
            return client

        def noting_seats(circle: Sequence[int], n_neighbours: int) -> dict[int, list[int]]:
            self.seats = seat(circle, n_neighbours)
            return self.seats

        dispfl.DisPFL.start_client, dispfl.seat = noting_mask, noting_seats  # type: ignore[method-assign]
        try:
            with late_push_back(dispfl):
                yield
        finally:
            dispfl.DisPFL.start_client, dispfl.seat = start_client, seat  # type: ignore[method-assign]

    def play(self, round: int, batches: dict[int, list[Batch]], starts: dict[int, Vector]) -> float:
        for k, client in self.loop.clients.items():
            client.local_training_data = Epochs(batches[k], self.n_batches)  # the last to find gradients
        self.loop.play()
        return 0.0  # nothing was put in place

    def flatten(self, named: dict[str, Tensor]) -> Vector:
        parts = []
        for piece in layout(self.spec).pieces:
            value = named[piece.name]
            parts.append((value.permute(0, 2, 3, 1) if value.ndim == 4 else value).reshape(-1))
        return torch.cat(parts).numpy()

    def vectors(self) -> list[Vector]:
        return [self.flatten(client.weights) for client in self.loop.clients.values()]

    def accuracy(self) -> float:
        return sum(client.right for client in self.loop.clients.values()) / len(self.loop.clients)

    def mask_difference(self, server: Any, states: Sequence[Any]) -> float:
        """Of masks for the next round."""
        theirs = [self.flatten(client.masks) for client in self.loop.clients.values()]
        return max(float(np.mean((a > 0) != state.next_mask)) for a, state in zip(theirs, states, strict=True))


class Loop:
    """Theirs, in a thread that waits while ours play."""

    def __init__(self, stepped: Stepped, dataset: Any, args: Namespace, module: nn.Module, logger: Any) -> None:
        api, client, trainer = (
            importlib.import_module(f"fedml_api.standalone.DisPFL.{name}")
            for name in ("dispfl_api", "client", "my_model_trainer")
        )
        self.due, self.done, self.trouble = Semaphore(0), Semaphore(0), list[Exception]()
        self.clients: dict[int, Any] = {}
        clients, due, done = self.clients, self.due, self.done

        class Noted(client.Client):  # type: ignore[name-defined, misc]
            def __init__(self, number: int, *given: Any) -> None:
                super().__init__(number, *given)
                clients[number] = self

            def train(self, *given: Any) -> Any:
                made = super().train(*given)
                self.masks, self.weights, self.right = made[0], made[1], made[5]["test_acc"]
                return made

        class Given(trainer.MyModelTrainer):  # type: ignore[name-defined, misc]
            def init_masks(self, params: dict[str, Tensor], _: object) -> dict[str, Tensor]:
                flat = torch.from_numpy(next(masks).astype(np.float32))
                pieces = layout(stepped.spec).pieces
                return {piece.name: view(flat, piece).contiguous() for piece in pieces if piece.name in params}

        class Stopped(api.dispflAPI):  # type: ignore[name-defined, misc]
            def _benefit_choose(self, round: int, client: int, *_: object) -> Any:
                return np.array(stepped.seats[client])

            def _local_test_on_all_clients_new_mask(self, *_: object) -> None:
                done.release()
                due.acquire()

        masks = (stepped.masks[k] for k in range(args.client_num_in_total))
        api.Client = Noted
        self.api = Stopped(dataset, torch.device("cpu"), args, Given(module, args, logger), logger)
        Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        self.due.acquire()
        try:
            self.api.train()
            self.trouble.append(RuntimeError("it has no more rounds than n_rounds"))
        except Exception as error:  # for the thread that waits
            self.trouble.append(error)
        self.done.release()

    def play(self) -> None:
        self.due.release()
        self.done.acquire()
        if self.trouble:
            raise self.trouble[0]
