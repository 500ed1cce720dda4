"""`laconic bench networks`: rounds of ours beside those of others, taking turns.

loop    what one would write by hand for this one job (loops.py): two processes, PyTorch's own optimiser, whole models
        through pipes, nothing counted, coded or kept
serial  PFLlib's round, one client after the other, each step on two threads (serial.py)
flower  Flower's simulator with two actors, where it and Ray are installed; it trains and averages, whatever the job
All have the network as everyone writes it: ours halves and rectifies at once. Images are random: training is as fast on
any, and serial's files take some 2 ms a client longer to unpack than those of Fashion-MNIST.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from importlib.util import find_spec
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from laconic.algorithm import Examples, Task
from laconic.algorithms import load_method
from laconic.bench.jobs import NETWORK_OTHERS
from laconic.bench.loops import N_CLASSES, N_CLIENTS, N_SAMPLED, PEAK, SHAPE, TRAINING, BareRounds
from laconic.bench.serial import SerialRounds
from laconic.fleets.base import Conditions
from laconic.fleets.source import ClientData
from laconic.simulation import federate

N_WORKERS = 2


class OurRounds:
    """A federation as `laconic run` plays it, without evaluation and checkpoints."""

    def __init__(self, name: str, clients: Mapping[int, Examples]) -> None:
        kind = load_method(name)
        usual = kind().training  # type: ignore[attr-defined]  # methods on networks have it
        training = replace(TRAINING, statistics=usual.statistics)  # some methods can only leave them with the client
        method = kind(**{"training": training})
        task = Task(SHAPE, N_CLASSES, len(clients), peak=PEAK)
        nothing = Examples(np.empty((0, *SHAPE), np.uint8), np.empty(0, np.int64))
        source = ClientData.of([(mine, nothing, nothing) for mine in clients.values()])
        conditions = Conditions(participation=N_SAMPLED / len(clients))
        self.opened = ExitStack()
        self.federation = self.opened.enter_context(
            federate(method, task, source, 0, workers=N_WORKERS, conditions=conditions)
        )
        self.federation.play(0, is_evaluated=False)
        self.round = 0

    def run(self) -> None:
        self.round += 1
        self.federation.play(self.round, is_evaluated=False)

    def close(self) -> None:
        self.opened.close()


class Rounds(Protocol):
    def run(self) -> None:
        """One round."""

    def close(self) -> None: ...


def draw_images(client: int, n_examples: int) -> Examples:
    rng = np.random.default_rng(client)
    images = rng.integers(0, 256, (n_examples, *SHAPE), np.uint8)
    return Examples(images, rng.integers(0, N_CLASSES, n_examples, np.int64))


def list_others(job: str, names: Sequence[str], clients: Mapping[int, Examples]) -> dict[str, Callable[[], Rounds]]:
    """Those that can be had here."""

    def simulate() -> Rounds:
        from laconic.bench.simulator import FlowerRounds

        return FlowerRounds(len(clients[0].y))

    makers: dict[str, Callable[[], Rounds]] = {
        "loop": lambda: BareRounds(job, clients, N_WORKERS),
        "serial": lambda: SerialRounds(job, clients, N_WORKERS),
    }
    if find_spec("flwr") and find_spec("ray"):
        makers["flower"] = simulate
    return {name: makers[name] for name in names if name in makers}


def warm_up(job: str) -> None:
    """Whatever a client's first and second turn compile."""
    few = {client: draw_images(client, TRAINING.batch) for client in range(N_SAMPLED)}
    with closing(OurRounds(job, few)) as rounds:
        rounds.run()
        rounds.run()


def run(
    jobs: Sequence[str], others: Sequence[str], *, rounds: int, n_examples: int, say: Callable[[str], None]
) -> list[dict[str, Any]]:
    """A row for each job; the first round of each is for warming up. n_examples: of each client."""
    clients = {client: draw_images(client, n_examples) for client in range(N_CLIENTS)}
    rows = []
    for job in jobs:
        warm_up(job)
        with ExitStack() as stack:
            makers = list_others(job, others, clients)
            beside = {name: stack.enter_context(closing(make())) for name, make in makers.items()}
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
