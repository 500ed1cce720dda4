"""Clients in Ray actors, on one machine or on many: a client stays with its actor, and so does its state.

Ray pickles what passes between us and our own actors. It is for simulation alone: whoever reaches the ports of a Ray
cluster can run code there, so no client that is not ours may. Messages stay the bytes that the ledger counts.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # or Ray reports each cluster to its makers
os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")  # or it prints on our stdout, what we say ourselves too
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # or it warns that this will become the default

import ray
from ray.exceptions import ActorUnschedulableError, NodeDiedError, ObjectLostError, RayActorError, WorkerCrashedError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from laconic.fleets.base import WorkerLost
from laconic.fleets.workers import Answer, Resident, Worker, WorkerFleet

LOST = (RayActorError, ActorUnschedulableError, WorkerCrashedError, NodeDiedError, ObjectLostError)


class Actor(Resident):
    def __init__(self, path: list[str]) -> None:
        super().__init__()
        sys.path += [folder for folder in path if folder not in sys.path]  # methods may lie outside the package

    def _act(self, what: str, job: Any) -> Any:
        return job.exists() if what == "look" else super()._act(what, job)

    def answer_last(self, what: str, job: Any) -> Answer:
        answer = self.answer(what, job)
        self.rest(what)
        return answer


class RayWorker(Worker):
    def __init__(self, node: dict[str, Any]) -> None:
        # The actor books no core: else one that is lost with its node could have no place on those that are left.
        options = {
            "num_cpus": 0,
            "max_restarts": 0,  # Ray would start it anew without its clients' states
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
        }
        self.actor = ray.remote(Actor).options(**options).remote(sys.path)
        self.place = node["NodeManagerAddress"]
        self.results: deque[Any] = deque()

    def _send(self, what: str, jobs: Sequence[Any]) -> None:
        if what == "move_out":
            self.actor.rest.remote(what)
        for number, job in enumerate(jobs, start=1):
            method = self.actor.answer_last if number == len(jobs) else self.actor.answer
            self.results.append(method.remote(what, job))

    def _receive(self) -> Answer:
        try:
            answer: Answer = ray.get(self.results[0])
        except LOST as error:
            raise WorkerLost(f"an actor on {self.place} was lost ({type(error).__name__})") from error
        self.results.popleft()
        return answer

    def _has_answer(self, seconds: float) -> bool:
        return bool(ray.wait([self.results[0]], timeout=seconds, fetch_local=False)[0])

    def end(self) -> None:
        ray.kill(self.actor)


class RayFleet(WorkerFleet):
    idle: ClassVar[list[RayWorker]] = []

    def _settle_in(self) -> None:
        folder = self.home.folder
        if folder is not None:
            folder = folder.resolve()  # actors work elsewhere
            self.home = replace(self.home, folder=folder)
        super()._settle_in()
        if folder is not None:
            self._check_shared(folder)

    def _check_shared(self, folder: Path) -> None:
        """Checkpoints are written where clients live and read where they live next."""
        sign = folder / f"{uuid4()}.sign"
        sign.touch()
        sights = self._tell_all("look", [sign] * len(self._workers))
        sign.unlink(missing_ok=True)
        if blind := sorted({worker.place for worker, sees in zip(self._workers, sights, strict=True) if not sees}):
            raise ValueError(
                f"{folder} is not to be seen from {', '.join(blind)}; put runs on a file system that all nodes of the "
                "Ray cluster share, under the same path (--out)"
            )

    def _count_cores(self) -> int:
        return len(self._list_cores())

    def _hire(self, number: int) -> RayWorker:
        cores = self._list_cores()
        return RayWorker(cores[number * len(cores) // self._n_workers])

    def _wait(self, workers: Sequence[RayWorker]) -> RayWorker:
        heads = {worker.results[0]: worker for worker in workers}  # an actor answers in order
        return heads[ray.wait(list(heads), fetch_local=False)[0][0]]

    def _list_cores(self) -> list[dict[str, Any]]:
        """Each core's node."""
        connect()
        nodes = [node for node in ray.nodes() if node["Alive"]]
        return [node for node in nodes for _ in range(int(node["Resources"].get("CPU", 0)))] or nodes


def connect() -> None:
    """To the cluster that RAY_ADDRESS names; else one is started here, and ends with this process."""
    if ray.is_initialized():
        return
    address = os.environ.get("RAY_ADDRESS")
    here = {"address": "local", "include_dashboard": False}  # without "local" Ray joins any cluster it finds running
    ray.init(**({"address": address} if address else here), log_to_driver=False, logging_level="ERROR")
