"""SpaFL's own code (github.com/news-vt/SpaFL_NeruIPS_2024, for CIFAR-10): clients train, its server merges thresholds.

Its layers take the places of ours. The step that makes their masks lets a gradient through only beyond 1 of the
threshold, so that thresholds hear nothing of the loss; it is made to do so within 1, for thresholds alone, as weights
train as if the mask were fixed. Means are put in place at once, which it does when a client is next sampled.
"""

from __future__ import annotations

import importlib
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from laconic.algorithms.networks import spafl
from laconic.algorithms.networks.settings import choose_spec
from laconic.networks import layout, live
from laconic.networks.thresholds import find_kept, list_layers
from references import Batch, Epochs, Reference, Theirs, Vector, bare_package, flatten, late_push_back, make_plain

PUSH = 0.03  # so that two fifths of the rows are cut out within three rounds


class SpaFL(Reference):
    name, mark, model = "SpaFL", "main/cifar10/model/binarization.py", "cnn-small"
    methods = ("spafl",)

    def __init__(self, path: Path) -> None:
        for name in ("model", "client", "server"):
            bare_package(name, path / "main" / "cifar10" / name)

    def settings(self, method: str) -> list[str]:
        return [f"method.push={PUSH}"]

    def start(self, method: str, ours: Any, task: Any, parts: Sequence[Any]) -> Stepped:
        return Stepped(ours, task, parts)


class Stepped(Theirs):
    def __init__(self, ours: Any, task: Any, parts: Sequence[Any]) -> None:
        training = ours.training
        self.spec, self.everyone = choose_spec(task, training), range(len(parts))
        self.n_batches = -(-len(parts[0][0].y) // training.batch)
        args = Namespace(
            num_clients=len(parts),
            schedulingsize=len(parts),
            learning_rate=training.rate,
            lr_decay=1.0,
            momentum=training.momentum,
            weight_decay=training.decay,
            local_epoch=training.epochs,
            th_coeff=ours.push,
            clip=ours.clip,
        )
        server, client = (importlib.import_module(f"{name.lower()}.{name}_Class") for name in ("Server", "Client"))
        self.server = server.Server(args, self.make_masked(training.init_seed))
        self.clients = []
        for k, (_, _, test) in enumerate(parts):
            told = [(live(self.spec).as_tensor(test.x), torch.from_numpy(test.y))]
            model = self.make_masked(training.init_seed)
            self.clients.append(client.Client(args, model, nn.CrossEntropyLoss(), k, None, told, torch.device("cpu")))

    def make_masked(self, seed: int) -> nn.Module:
        """Ours, of its layers."""
        module, layers = make_plain(self.spec, seed), importlib.import_module("model.binarization")
        for name, plain in list(module.named_modules()):
            if not isinstance(plain, nn.Conv2d | nn.Linear):
                continue
            if isinstance(plain, nn.Conv2d):
                shape = (plain.in_channels, plain.out_channels, plain.kernel_size, plain.stride, plain.padding)
                layer = layers.MaskedConv2d(*shape, bias=plain.bias is not None)
            else:
                layer = layers.MaskedMLP(plain.in_features, plain.out_features)
            layer.weight.data = plain.weight.detach().clone(memory_format=torch.contiguous_format)
            layer.bias, layer.step = plain.bias, step_within(layer)
            module.set_submodule(name, layer)
        return module

    def adapt_ours(self) -> AbstractContextManager[None]:
        return late_push_back(spafl)

    def play(self, round: int, batches: dict[int, list[Batch]], starts: dict[int, Vector]) -> float:
        self.server.broadcast(self.clients, self.everyone)
        for k, client in enumerate(self.clients):
            client.tr_loader = Loader(batches[k], self.n_batches)
            client.local_training(round - 1)
        self.server.aggregation(self.clients, self.everyone)
        for client in self.clients:
            client.th_update(self.server.global_difference)
        self.server.broadcast(self.clients, self.everyone)  # it waits for the next round with this
        self.right = [float(client.local_test()[0]) / 100 for client in self.clients]
        return 0.0  # nothing was put in place of theirs

    def in_our_order(self, of_layer: Callable[[str], Tensor]) -> Vector:
        """[row] of all layers."""
        places = {place.start for place, _, _ in list_layers(self.spec)}
        names = [piece.name for piece in layout(self.spec).pieces if piece.start in places]
        return torch.cat([of_layer(name.removesuffix(".weight")) for name in names]).detach().numpy()

    def vectors(self) -> list[Vector]:
        merged = self.in_our_order(lambda name: self.server.global_thresholds[name])
        return [merged, *(flatten(client.model, layout(self.spec)) for client in self.clients)]

    def accuracy(self) -> float:
        return sum(self.right) / len(self.right)

    def mask_difference(self, server: Any, states: Sequence[Any]) -> float:
        """Of the rows."""
        differing = []
        for client, state in zip(self.clients, states, strict=True):
            theirs = self.in_our_order(lambda name, model=client.model: model.get_submodule(name).mask.flatten(1)[:, 0])
            ours = find_kept(self.spec, state.network.vector, state.thresholds)
            differing.append(float(np.mean((theirs > 0) != ours)))
        return max(differing)


class Loader(Epochs):
    """Its clients count what they compute."""

    def __init__(self, batches: Sequence[Batch], n_each: int) -> None:
        super().__init__(batches, n_each)
        self.dataset = range(sum(len(y) for _, y in self.batches[:n_each]))

    def __len__(self) -> int:
        return self.n_each


class Within(torch.autograd.Function):
    """The step, with a slope of 1 as far as 1 from it."""

    @staticmethod
    def forward(ctx: Any, above: Tensor) -> Tensor:
        ctx.save_for_backward(above)
        return (above > 0).float()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (above,) = ctx.saved_tensors
        return gradient * (above.abs() <= 1)


def step_within(layer: Any) -> Callable[[Tensor], Tensor]:
    def step(above: Tensor) -> Tensor:
        """above: [row, entry] what its mean weight is above its threshold."""
        threshold = layer.threshold.view(-1, 1)
        made: Tensor = Within.apply(above.detach() + threshold.detach() - threshold)
        return made

    return step
