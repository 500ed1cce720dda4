"""Rounds as PFLlib plays them, one client after the other, for `laconic bench networks` to be compared with.

What takes time in a round of its FedAvg, in our own words and without its evaluation:
send    every client, sampled or not, gets a new copy of each parameter
train   sampled clients take turns, each step on all threads: a client reads its file anew (compressed, numbers as
        singles), makes a list of pairs of it for a DataLoader, and goes on with a network and an optimiser of its own
merge   a copy of one network is set to zero, and every network added to it, parameter by parameter, copied and weighed
Otherwise than there, a last batch that is not full is trained too, as by everyone here. PFLlib has no FedPURIN: it is
done by hand as in loops.py, and only who has a new start is sent one.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.utils.data import DataLoader

from laconic.algorithm import Examples
from laconic.bench.loops import N_SAMPLED, TRAINING, Weights, as_tensor, keep_critical, mix, write_network


class SerialRounds:
    """A process that plays a round when told: how many threads torch has is one number for all of a process.

    It finds the clients in files, as PFLlib does: had it been handed their images, its memory would lie otherwise, and
    a step asks the system for memory or does not by what was freed before.
    """

    def __init__(self, job: str, clients: Mapping[int, Examples], n_threads: int) -> None:
        self.folder = TemporaryDirectory()
        files = [Path(self.folder.name) / f"{client}.npz" for client in clients]
        for file, (images, labels) in zip(files, clients.values(), strict=True):
            np.savez_compressed(file, x=as_tensor(images).numpy(), y=labels)
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=play_when_told, args=(theirs, job, files, n_threads), daemon=True)
        self.process.start()
        self.pipe.recv()

    def run(self) -> None:
        self.pipe.send(None)
        self.pipe.recv()

    def close(self) -> None:
        self.pipe.close()
        self.process.join()
        self.folder.cleanup()


def play_when_told(pipe: Connection, job: str, files: Sequence[Path], n_threads: int) -> None:
    torch.set_num_threads(n_threads)
    server = Server(job, files)
    while True:
        pipe.send(None)
        try:
            pipe.recv()
        except EOFError:
            return
        server.play_round()


class Server:
    def __init__(self, job: str, files: Sequence[Path]) -> None:
        self.job, self.round, self.rng = job, 0, np.random.default_rng(0)
        self.network = write_network()
        self.clients = [Client(self.network, file) for file in files]
        self.starts: dict[int, Weights] = {}  # FedPURIN's, of those who trained last

    def play_round(self) -> None:
        self.round += 1
        self.send()
        sampled = self.rng.choice(len(self.clients), N_SAMPLED, replace=False).tolist()
        trained = [self.clients[place] for place in sampled]
        for client in trained:
            client.train()
        if self.job == "fedpurin":
            kept = [keep_critical(client.network, client.list_weights()) for client in trained]
            self.starts = dict(zip(sampled, mix(kept, self.round), strict=True))
        else:
            self.network = add_up(trained)

    def send(self) -> None:
        if self.job == "fedpurin":
            for place, weights in self.starts.items():
                self.clients[place].receive(map(torch.from_numpy, weights))
        else:
            for client in self.clients:
                client.receive(self.network.parameters())


class Client:
    def __init__(self, network: nn.Module, file: Path) -> None:
        self.network, self.file = deepcopy(network), file
        self.optimiser = torch.optim.SGD(self.network.parameters(), lr=TRAINING.rate)
        self.n_examples = len(self.read())

    def receive(self, parameters: Iterable[Tensor]) -> None:
        for mine, sent in zip(self.network.parameters(), parameters, strict=True):
            mine.data = sent.detach().clone()

    def train(self) -> None:
        self.network.train()
        pairs: Any = self.read()
        for x, y in DataLoader(pairs, TRAINING.batch, shuffle=True):
            loss = F.cross_entropy(self.network(x), y)
            self.optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimiser.step()

    def read(self) -> list[tuple[Tensor, Tensor]]:
        with np.load(self.file) as examples:
            return list(zip(torch.tensor(examples["x"]), torch.tensor(examples["y"]), strict=True))

    def list_weights(self) -> Weights:
        return [parameter.detach().numpy() for parameter in self.network.parameters()]


def add_up(clients: Sequence[Client]) -> nn.Module:
    """The mean network, by examples."""
    network, n_examples = deepcopy(clients[0].network), sum(client.n_examples for client in clients)
    with torch.no_grad():
        for total in network.parameters():
            total.zero_()
        for client in clients:
            for total, mine in zip(network.parameters(), client.network.parameters(), strict=True):
                total.add_(mine.clone() * (client.n_examples / n_examples))
    return network
