"""`laconic bench networks`: rounds of ours beside those of others, taking turns.

loop    what one would write by hand for this one job: two processes, PyTorch's own optimiser, whole models through
        pipes, nothing counted, coded or kept
serial  one process, one client after the other, each step on two threads, as PFLlib and others train
flower  Flower's simulator with two actors, where it and Ray are installed
All three only train and average, whatever the job, and have the network as everyone writes it: ours halves and
rectifies at once. Images are random: speed does not depend on them.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from importlib.util import find_spec
from multiprocessing.connection import Connection
from time import perf_counter
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.table import Table
from torch import nn
from torch.nn import functional as F  # noqa: N812

from laconic.algorithm import Algorithm, Examples, Task
from laconic.algorithms import load_method
from laconic.bench.jobs import NETWORK_OTHERS
from laconic.fleets.base import Conditions
from laconic.fleets.host import Home
from laconic.fleets.local import LocalFleet
from laconic.networks import Training
from laconic.runs.prepare import ClientData

N_CLIENTS, N_SAMPLED, N_WORKERS = 100, 10, 2
Weights = list[NDArray[np.float32]]
Images = tuple[NDArray[np.uint8], NDArray[np.int64]]
SHAPE, N_CLASSES, PEAK = (28, 28), 10, 255.0
TRAINING = Training(model="cnn", batch=32, rate=0.05)


class OurRounds:
    """A federation as `laconic run` plays it, without evaluation and checkpoints."""

    def __init__(self, method: str, clients: Mapping[int, Examples]) -> None:
        kind = load_method(method)
        usual: Training = kind().training  # type: ignore[attr-defined]  # methods on networks have it
        training = replace(TRAINING, statistics=usual.statistics)  # some methods can only leave them with the client
        self.method: Algorithm = kind(**{"training": training})
        self.task = Task(SHAPE, N_CLASSES, N_CLIENTS, peak=PEAK)
        nothing = Examples(np.empty((0, *SHAPE), np.uint8), np.empty(0, np.int64))
        source = ClientData(((0, {client: (mine, nothing, nothing) for client, mine in clients.items()}),))
        conditions = Conditions(participation=N_SAMPLED / N_CLIENTS)
        home = Home(self.method, self.task, source, 0)
        self.fleet = LocalFleet(home, conditions, lambda what, done, total: None, N_WORKERS)
        self.server = self.method.start_server(self.task, self.fleet)
        self.round = 0

    def run(self) -> None:
        self.round += 1
        self.fleet.begin(self.round)
        self.method.run_round(self.server, self.fleet)

    def close(self) -> None:
        self.fleet.close()


class Rounds(Protocol):
    def run(self) -> None:
        """One round."""

    def close(self) -> None: ...


class BareRounds:
    """Processes that each train their share of the sampled clients, and the mean of their weights."""

    def __init__(self, clients: Mapping[int, Examples], n_processes: int, n_threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.rng, self.workers = np.random.default_rng(0), []
        for k in range(n_processes):
            ours, theirs = context.Pipe()
            mine = {client: tuple(examples) for client, examples in clients.items() if client % n_processes == k}
            process = context.Process(target=train_when_told, args=(theirs, mine, n_threads), daemon=True)
            process.start()
            self.workers.append((process, ours))
        self.weights = self.workers[0][1].recv()
        for _, pipe in self.workers[1:]:
            pipe.recv()

    def run(self) -> None:
        n_processes = len(self.workers)
        for k, (_, pipe) in enumerate(self.workers):  # as many from each, so that none waits
            own = range(k, N_CLIENTS, n_processes)
            pipe.send((self.weights, self.rng.choice(own, N_SAMPLED // n_processes, replace=False).tolist()))
        trained = [weights for _, pipe in self.workers for weights in pipe.recv()]
        self.weights = [np.mean(layer, axis=0) for layer in zip(*trained, strict=True)]

    def close(self) -> None:
        for process, pipe in self.workers:
            pipe.close()
            process.join()


def train_when_told(pipe: Connection, clients: Mapping[int, Images], n_threads: int) -> None:
    """Channels last where a step has one thread: the fastest there is; torch's usual order where it has more."""
    torch.set_num_threads(n_threads)
    module = write_network()
    if n_threads == 1:
        module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    pipe.send([parameter.detach().numpy() for parameter in module.parameters()])
    while True:
        try:
            weights, sampled = pipe.recv()
        except EOFError:
            return
        pipe.send([train(module, weights, clients[client]) for client in sampled])


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


def train(module: nn.Module, weights: Weights, images: Images) -> Weights:
    """As in PyTorch's tutorials."""
    parameters = list(module.parameters())
    with torch.no_grad():
        for parameter, values in zip(parameters, weights, strict=True):
            parameter.copy_(torch.from_numpy(values))
    x = torch.from_numpy(images[0]).float().mul(2 / PEAK).sub(1).unsqueeze(1)
    y = torch.from_numpy(images[1])
    optimiser = torch.optim.SGD(parameters, lr=TRAINING.rate)
    for places in torch.split(torch.randperm(len(y)), TRAINING.batch):
        optimiser.zero_grad()
        F.cross_entropy(module(x[places]), y[places]).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    return [parameter.detach().numpy().copy() for parameter in parameters]


def draw_images(client: int, n_examples: int) -> Examples:
    rng = np.random.default_rng(client)
    images = rng.integers(0, 256, (n_examples, *SHAPE), np.uint8)
    return Examples(images, rng.integers(0, N_CLASSES, n_examples, np.int64))


def open_others(names: Sequence[str], clients: Mapping[int, Examples]) -> dict[str, Callable[[], Rounds]]:
    """Those that can be had here."""

    def simulate() -> Rounds:
        from laconic.bench.simulator import FlowerRounds

        return FlowerRounds(len(clients[0].y))

    makers: dict[str, Callable[[], Rounds]] = {
        "loop": lambda: BareRounds(clients, N_WORKERS, 1),
        "serial": lambda: BareRounds(clients, 1, N_WORKERS),
    }
    if find_spec("flwr") and find_spec("ray"):
        makers["flower"] = simulate
    return {name: makers[name] for name in names if name in makers}


def run(
    jobs: Sequence[str], others: Sequence[str], *, rounds: int, n_examples: int, say: Callable[[str], None]
) -> list[dict[str, Any]]:
    """A row for each job; the first round of each is for warming up. n_examples: of each client."""
    clients = {client: draw_images(client, n_examples) for client in range(N_CLIENTS)}
    rows = []
    with ExitStack() as stack:
        beside = {name: stack.enter_context(closing(make())) for name, make in open_others(others, clients).items()}
        for job in jobs:
            everyone = {"ours": stack.enter_context(closing(OurRounds(job, clients))), **beside}
            seconds = dict.fromkeys(everyone, 0.0)
            for number in range(rounds + 1):
                for name, runner in everyone.items():
                    started = perf_counter()
                    runner.run()
                    seconds[name] += perf_counter() - started if number else 0.0
                say(f"{job}: round {number} of {rounds}")
            n_trained = rounds * N_SAMPLED * n_examples
            speeds = {f"{name}_samples_per_s": n_trained / spent for name, spent in seconds.items()}
            ratios = {f"{name}_ratio": seconds[name] / seconds["ours"] for name in beside}
            rows.append({"job": job, **speeds, **ratios, "rounds": rounds})
    return rows


def table(rows: Sequence[Mapping[str, Any]]) -> Table:
    shown = Table(box=SIMPLE_HEAD)
    names = [name for name in NETWORK_OTHERS if f"{name}_ratio" in rows[0]]
    for title in ("job", "ours, samples/s", *(title for name in names for title in (f"{name}, samples/s", "ratio"))):
        shown.add_column(title, justify="left" if title == "job" else "right")
    for row in rows:
        of_others = [(f"{row[f'{name}_samples_per_s']:,.0f}", f"{row[f'{name}_ratio']:.2f}") for name in names]
        shown.add_row(row["job"], f"{row['ours_samples_per_s']:,.0f}", *(cell for cells in of_others for cell in cells))
    return shown
