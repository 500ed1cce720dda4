"""Rounds as one would write them by hand, for `laconic bench networks` to be compared with: no library but PyTorch."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from laconic.algorithm import Examples
from laconic.networks import Training

N_CLIENTS, N_SAMPLED = 100, 10
SHAPE, N_CLASSES, PEAK = (28, 28), 10, 255.0
TRAINING = Training(model="cnn", batch=32, rate=0.05)
ALONE_AFTER = 100  # rounds, FedPURIN's beta
Weights = list[NDArray[np.float32]]
Images = tuple[NDArray[np.uint8], NDArray[np.int64]]


class Trained(NamedTuple):
    weights: Weights
    masks: list[NDArray[np.bool_]]  # of FedPURIN's critical entries; none for FedAvg


class BareRounds:
    """Processes that each train their share of the sampled clients, and what a server makes of their weights."""

    def __init__(self, job: str, clients: Mapping[int, Examples], n_processes: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.job, self.rng, self.workers = job, np.random.default_rng(0), []
        for k in range(n_processes):
            ours, theirs = context.Pipe()
            mine = {client: tuple(examples) for client, examples in clients.items() if client % n_processes == k}
            process = context.Process(target=train_when_told, args=(theirs, job, mine), daemon=True)
            process.start()
            self.workers.append((process, ours))
        self.weights: Weights = self.workers[0][1].recv()
        for _, pipe in self.workers[1:]:
            pipe.recv()
        self.starts: dict[int, Weights] = {}  # of clients that go on from weights of their own
        self.round = 0

    def run(self) -> None:
        self.round += 1
        n_processes = len(self.workers)
        for k, (_, pipe) in enumerate(self.workers):  # as many from each, so that none waits
            sampled = self.rng.choice(range(k, N_CLIENTS, n_processes), N_SAMPLED // n_processes, replace=False)
            pipe.send({client: self.starts.get(client, self.weights) for client in sampled.tolist()})
        trained: dict[int, Trained] = {}
        for _, pipe in self.workers:
            trained |= pipe.recv()
        if self.job == "fedpurin":
            self.starts |= dict(zip(trained, mix(list(trained.values()), self.round), strict=True))
        else:
            layers = zip(*(one.weights for one in trained.values()), strict=True)
            self.weights = [np.mean(layer, axis=0) for layer in layers]

    def close(self) -> None:
        for process, pipe in self.workers:
            pipe.close()
            process.join()


def train_when_told(pipe: Connection, job: str, clients: Mapping[int, Images]) -> None:
    """On one thread, with one network for all, channels last: the fastest there is."""
    torch.set_num_threads(1)
    module = write_network().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    pipe.send([parameter.detach().numpy() for parameter in module.parameters()])
    while True:
        try:
            starts = pipe.recv()
        except EOFError:
            return
        replies = {}
        for client, weights in starts.items():
            after = train(module, weights, draw_batches(*clients[client]))
            replies[client] = keep_critical(module, after) if job == "fedpurin" else Trained(after, [])
        pipe.send(replies)


def write_network() -> nn.Module:
    """Our "cnn", in PyTorch's own layers."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(1024, 512),
        nn.ReLU(),
        nn.Linear(512, N_CLASSES),
    )


def train(module: nn.Module, weights: Weights, batches: Iterable[tuple[Tensor, Tensor]]) -> Weights:
    """As in PyTorch's tutorials."""
    parameters = list(module.parameters())
    with torch.no_grad():
        for parameter, values in zip(parameters, weights, strict=True):
            parameter.copy_(torch.from_numpy(values))
    optimiser = torch.optim.SGD(parameters, lr=TRAINING.rate)
    for x, y in batches:
        optimiser.zero_grad()
        F.cross_entropy(module(x), y).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    return [parameter.detach().numpy().copy() for parameter in parameters]


def draw_batches(images: NDArray[np.uint8], labels: NDArray[np.int64]) -> Iterator[tuple[Tensor, Tensor]]:
    x, y = as_tensor(images), torch.from_numpy(labels)
    for places in torch.split(torch.randperm(len(y)), TRAINING.batch):
        yield x[places], y[places]


def as_tensor(images: NDArray[np.uint8]) -> Tensor:
    return torch.from_numpy(images).float().mul(2 / PEAK).sub(1).unsqueeze(1)


# ---------------------------------------------------------------- FedPURIN by hand
def keep_critical(module: nn.Module, weights: Weights) -> Trained:
    """Half of each tensor, those entries whose loss the last gradient says would be missed most."""
    masks = []
    for parameter, values in zip(module.parameters(), weights, strict=True):
        assert parameter.grad is not None
        scores = np.abs(parameter.grad.numpy() * values)
        rank = scores.size - scores.size // 2
        masks.append(scores >= np.partition(scores, rank, axis=None)[rank])
    return Trained([values * mask for values, mask in zip(weights, masks, strict=True)], masks)


def mix(trained: Sequence[Trained], round: int) -> list[Weights]:
    """What each goes on from: critical entries by those alike, all others by everyone."""
    shapes = [values.shape for values in trained[0].weights]
    vectors = np.stack([flatten(one.weights) for one in trained])
    masks = np.stack([flatten(one.masks) for one in trained])
    ones = masks.astype(np.float32)
    both = ones @ ones.T
    own = both.diagonal()[:, None]
    overlap = 1 - (own + own.T - 2 * both) / (2 * own)
    others = overlap[~np.eye(len(trained), dtype=bool)]
    threshold = others.mean() + round / ALONE_AFTER * (others.max() - others.mean())
    everyone, starts = vectors.mean(axis=0), []
    for i, mask in enumerate(masks):
        alike = (overlap[i] >= threshold) | (np.arange(len(trained)) == i)
        starts.append(split(np.where(mask, vectors[alike].mean(axis=0), everyone), shapes))
    return starts


def flatten(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate([array.ravel() for array in arrays])


def split(vector: NDArray[np.float32], shapes: Sequence[tuple[int, ...]]) -> Weights:
    ends = np.cumsum([prod(shape) for shape in shapes])
    return [part.reshape(shape) for part, shape in zip(np.split(vector, ends[:-1]), shapes, strict=True)]
