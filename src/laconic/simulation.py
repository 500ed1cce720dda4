"""Where a federation is put together and played: a method, a fleet of clients with their examples, round by round.

    done = laconic.simulate(FedTM(n_clauses=100), clients, rounds=10)    # clients: (train, test) each, as (x, y)
    done.rounds[-1].accuracy, done.states[7]

`laconic run` adds records and checkpoints to this, `laconic check` a clock, FederatedClassifier scikit-learn's words.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from laconic.algorithm import Algorithm, Examples, Task, TooFew
from laconic.device import CPU, restored
from laconic.fleets import open_fleet
from laconic.fleets.base import BaseFleet, Conditions, OverBudget, WorkerLost
from laconic.fleets.host import Home, Score
from laconic.fleets.local import LocalFleet
from laconic.fleets.rehearsal import find_culprit
from laconic.fleets.source import ClientData, Parts, Source
from laconic.state import find_not_finite

OnProgress: TypeAlias = Callable[[str, int, int], None]  # what, done, of how many
Pair: TypeAlias = tuple[ArrayLike, ArrayLike]  # x and y


class Spoiled(Exception):
    """What came of the clients' replies is no state to go on from."""


class Played(NamedTuple):
    """What came of a round; bytes, notes and who replied are with the fleet until the next one begins."""

    round: int
    scores: list[Score] | None  # None: nobody was tested
    trouble: TooFew | Spoiled | None  # what made it void
    seconds: float
    evaluate_seconds: float


class Federation:
    """A method on a fleet. The server's state is here, the clients' are where they live."""

    def __init__(self, algorithm: Algorithm, task: Task, fleet: BaseFleet) -> None:
        self.algorithm, self.task, self.fleet = algorithm, task, fleet
        self.server: Any = None

    def play(self, round: int, *, is_evaluated: bool) -> Played:
        """Round 0 is the start. A round that too few replied in leaves the server as it was, but not the clients."""
        started = perf_counter()
        self.fleet.begin(round)
        trouble: TooFew | Spoiled | None = None
        if round == 0:
            self.server = self.algorithm.start_server(self.task, self.fleet)
        else:
            before = copy.deepcopy(self.server)
            try:
                self.algorithm.run_round(self.server, self.fleet)
                trouble = self._find_trouble(before)
            except TooFew as error:
                trouble = error
            except (OverBudget, WorkerLost):
                raise
            except Exception as error:
                trouble = self._blame(before, f"{type(error).__name__}: {error}")
                if trouble is None:  # no client alone is to blame, so it is ours
                    raise
            if trouble is not None:
                self.server = before
            self.fleet.heard.clear()
            if is_evaluated:
                self.algorithm.deliver(self.server, self.fleet)
        trained = perf_counter()
        scores = self.fleet.evaluate() if is_evaluated and round else None
        ended = perf_counter()
        return Played(round, scores, trouble, ended - started, ended - trained)

    def _find_trouble(self, before: Any) -> Spoiled | None:
        where = find_not_finite(self.server)
        if where is None:
            return None
        return self._blame(before, f"{where} is not finite") or Spoiled(f"{where} of the server is not finite")

    def _blame(self, before: Any, why: str) -> Spoiled | None:
        """Whoever spoiled the round is not asked again."""
        culprit = find_culprit(self.algorithm, before, self.fleet)
        if culprit is None:
            return None
        self.fleet.barred.add(culprit)
        return Spoiled(f"client {culprit} spoiled it and is not asked again ({why})")


@contextmanager
def federate(
    algorithm: Algorithm,
    task: Task,
    source: Source,
    seed: int,
    *,
    fleet: str = "local",
    workers: int = 0,
    conditions: Conditions = Conditions(),  # noqa: B008  # frozen
    folder: Path | None = None,
    on_disk: bool = False,
    tested: str = "test",
    renews: bool = False,
    device: str = CPU,
    on_progress: OnProgress = lambda what, done, total: None,
) -> Iterator[Federation]:
    """Clients at home on a fleet of that name, until the end of the block. folder: of checkpoints.

    Real nodes are put together in deploy/, for they are reached by an address and not by a name.
    """
    algorithm.check_averaging(conditions.averaging)
    algorithm.check_task(task)
    home = Home(algorithm, task, source, seed, folder, on_disk, tested, renews, device)
    with restored(), closing(open_fleet(fleet, home, conditions, on_progress, workers)) as opened:
        yield Federation(algorithm, task, opened)


# ---------------------------------------------------------------- without records
class PlayedRound(NamedTuple):
    round: int
    accuracy: float | None  # mean over the clients that have test examples; None: nobody was tested
    is_void: bool
    upload_bytes: int
    download_bytes: int
    peer_bytes: int


@dataclass(frozen=True)
class Simulated:
    """What a simulation leaves behind."""

    rounds: tuple[PlayedRound, ...]  # the first is round 0, the start
    server: Any
    states: list[Any]  # [client]


def simulate(
    algorithm: Algorithm,
    clients: Sequence[Sequence[Pair | Examples]],
    rounds: int = 10,
    seed: int = 0,
    *,
    task: Task | None = None,
    workers: int = 0,
    conditions: Conditions = Conditions(),  # noqa: B008  # frozen
    evaluate_every: int = 1,
    on_round: Callable[[PlayedRound], object] = lambda row: None,
) -> Simulated:
    """Plays rounds in this process and keeps no files. clients: train, or train and test, or train, validation and test
    examples of each, as (x, y). task: None: shape and classes as the examples have them.
    """
    parts = [read_parts(number, mine) for number, mine in enumerate(clients)]
    if not parts or rounds < 1 or evaluate_every < 1:
        raise ValueError(
            f"{len(parts)} clients, {rounds} rounds, evaluate_every {evaluate_every}; at least 1 each is needed"
        )
    task = task or find_task(parts)
    played: list[PlayedRound] = []
    with federate(algorithm, task, ClientData.of(parts), seed, workers=workers, conditions=conditions) as federation:
        fleet = federation.fleet
        assert isinstance(fleet, LocalFleet)
        for number in range(rounds + 1):
            done = federation.play(number, is_evaluated=number == rounds or number % evaluate_every == 0)
            sent = (fleet.ledger.total(direction=way).sent_bytes for way in ("up", "down", "peer"))
            accuracy = average_accuracy(done.scores or ())
            played.append(PlayedRound(number, accuracy, done.trouble is not None, *sent))
            if number:
                on_round(played[-1])
        return Simulated(tuple(played), federation.server, fleet.states())


def average_accuracy(scores: Sequence[Score]) -> float | None:
    shares = [score.n_correct / score.n_test for score in scores if score.n_test]
    return float(np.mean(shares)) if shares else None


def read_parts(number: int, given: Sequence[Pair | Examples]) -> Parts:
    """Train, validation and test examples; none where none were given."""
    if not 1 <= len(given) <= 3:
        raise ValueError(
            f"client {number} has {len(given)} sets of examples; give train, validation and test as (x, y)"
        )
    parts = [Examples(np.asarray(x), np.asarray(y)) for x, y in given]
    for x, y in parts:
        if y.ndim != 1 or len(x) != len(y) or (len(y) and (y.dtype.kind not in "iu" or y.min() < 0)):
            raise ValueError(
                f"client {number} has x {x.shape} and y {y.shape} of {y.dtype}; one class from 0 up for each row of x "
                "was expected"
            )
    parts = [Examples(x, y.astype(np.int64)) for x, y in parts]
    train, nothing = parts[0], Examples(parts[0].x[:0], parts[0].y[:0])
    if len(parts) == 3:
        return train, parts[1], parts[2]
    return train, nothing, parts[1] if len(parts) == 2 else nothing


def find_task(parts: Sequence[Parts]) -> Task:
    shapes = {part.x.shape[1:] for client in parts for part in client if len(part.y)}
    if len(shapes) != 1:
        raise ValueError(f"examples have shapes {sorted(shapes)}; give all clients examples of one shape, and some")
    n_classes = 1 + max(int(part.y.max()) for client in parts for part in client if len(part.y))
    return Task(shapes.pop(), n_classes, len(parts))
