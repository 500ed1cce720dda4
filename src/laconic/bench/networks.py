"""`laconic bench networks`: rounds of ours beside a bare loop of two processes, taking turns.

The loop is what one would write by hand for this one job: PyTorch's own optimiser, whole models through pipes, nothing
counted, coded or kept. Images are random: speed does not depend on them.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from multiprocessing.connection import Connection
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.table import Table
from torch.nn import functional as F  # noqa: N812

from laconic.algorithm import Algorithm, Examples, Task
from laconic.algorithms import load_method
from laconic.fleets.base import Conditions
from laconic.fleets.host import Home
from laconic.fleets.local import LocalFleet
from laconic.networks import Training
from laconic.networks.models import make_module
from laconic.runs.prepare import ClientData

N_CLIENTS, N_SAMPLED, N_WORKERS = 100, 10, 2
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


class BareLoop:
    """Two processes that each train half of the sampled clients, and the mean of their weights."""

    def __init__(self, clients: Mapping[int, Examples]) -> None:
        context = multiprocessing.get_context("spawn")
        self.rng, self.workers = np.random.default_rng(0), []
        for k in range(N_WORKERS):
            ours, theirs = context.Pipe()
            mine = {client: tuple(examples) for client, examples in clients.items() if client % N_WORKERS == k}
            process = context.Process(target=train_when_told, args=(theirs, mine), daemon=True)
            process.start()
            self.workers.append((process, ours))
        self.weights = self.workers[0][1].recv()
        for _, pipe in self.workers[1:]:
            pipe.recv()

    def run(self) -> None:
        for k, (_, pipe) in enumerate(self.workers):  # half from each, so that neither waits
            own = range(k, N_CLIENTS, N_WORKERS)
            pipe.send((self.weights, self.rng.choice(own, N_SAMPLED // N_WORKERS, replace=False).tolist()))
        trained = [weights for _, pipe in self.workers for weights in pipe.recv()]
        self.weights = [np.mean(layer, axis=0) for layer in zip(*trained, strict=True)]

    def close(self) -> None:
        for process, pipe in self.workers:
            pipe.close()
            process.join()


def train_when_told(pipe: Connection, clients: Mapping[int, tuple[NDArray[np.uint8], NDArray[np.int64]]]) -> None:
    torch.set_num_threads(1)
    module = make_module(TRAINING.model, SHAPE, N_CLASSES).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    parameters = list(module.parameters())
    pipe.send([parameter.detach().numpy() for parameter in parameters])
    while True:
        try:
            weights, sampled = pipe.recv()
        except EOFError:
            return
        trained = []
        for client in sampled:
            with torch.no_grad():
                for parameter, values in zip(parameters, weights, strict=True):
                    parameter.copy_(torch.from_numpy(values))
            x = torch.from_numpy(clients[client][0]).float().mul(2 / PEAK).sub(1).unsqueeze(1)
            y = torch.from_numpy(clients[client][1])
            optimiser = torch.optim.SGD(parameters, lr=TRAINING.rate)
            for places in torch.split(torch.randperm(len(y)), TRAINING.batch):
                optimiser.zero_grad()
                F.cross_entropy(module(x[places]), y[places]).backward()  # type: ignore[no-untyped-call]
                optimiser.step()
            trained.append([parameter.detach().numpy().copy() for parameter in parameters])
        pipe.send(trained)


def run(jobs: Sequence[str], *, rounds: int, n_examples: int, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """A row for each job; the first round of each is for warming up. n_examples: of each client."""
    rng = np.random.default_rng(0)
    clients = {
        client: Examples(
            rng.integers(0, 256, (n_examples, *SHAPE), np.uint8), rng.integers(0, N_CLASSES, n_examples, np.int64)
        )
        for client in range(N_CLIENTS)
    }
    rows = []
    with ExitStack() as stack:
        loop = stack.enter_context(closing(BareLoop(clients)))
        for job in jobs:
            ours = stack.enter_context(closing(OurRounds(job, clients)))
            seconds = {"ours": 0.0, "loop": 0.0}
            for number in range(rounds + 1):
                for name, runner in (("ours", ours), ("loop", loop)):
                    started = perf_counter()
                    runner.run()
                    seconds[name] += perf_counter() - started if number else 0.0
                say(f"{job}: round {number} of {rounds}")
            n_trained = rounds * N_SAMPLED * n_examples
            rows.append(
                {
                    "job": job,
                    "ours_samples_per_s": n_trained / seconds["ours"],
                    "loop_samples_per_s": n_trained / seconds["loop"],
                    "loop_ratio": seconds["loop"] / seconds["ours"],
                    "rounds": rounds,
                }
            )
    return rows


def table(rows: Sequence[Mapping[str, Any]]) -> Table:
    shown = Table(box=SIMPLE_HEAD)
    for title in ("job", "ours, samples/s", "bare loop, samples/s", "ratio"):
        shown.add_column(title, justify="left" if title == "job" else "right")
    for row in rows:
        shown.add_row(
            row["job"],
            f"{row['ours_samples_per_s']:,.0f}",
            f"{row['loop_samples_per_s']:,.0f}",
            f"{row['loop_ratio']:.2f}",
        )
    return shown
