"""What fleets of workers share, processes of this machine or actors on many: how clients are dealt, what is said."""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from time import monotonic
from typing import Any, ClassVar

from threadpoolctl import threadpool_limits

from laconic.algorithm import ClientId
from laconic.fleets.base import BaseFleet, Conditions, WorkerLost
from laconic.fleets.host import Home, Host, Reply, Request, Score

PATIENCE_SECONDS = 1.0  # for a worker to come to an end when a fleet closes; another takes seconds to start
Answer = tuple[Any, tuple[Exception, str] | None]  # a result, or an error and its traceback


class Worker(ABC):
    """Our end of a worker: jobs go in, results come out in the same order."""

    n_due = 0  # results it owes us; more than 0 after it was lost

    def send(self, what: str, jobs: Sequence[Any]) -> None:
        self.n_due += len(jobs)
        self._send(what, jobs)

    def receive(self) -> Any:
        """The next result; WorkerLost if there is nobody left to give it."""
        result, error = self._receive()
        self.n_due -= 1
        if error is not None:
            problem, trace = error
            problem.add_note(f"in a worker:\n{trace}")
            raise problem
        return result

    @abstractmethod
    def _send(self, what: str, jobs: Sequence[Any]) -> None: ...

    def finish(self, seconds: float) -> bool:
        """Whether it comes to an end of what it was told, in that time; nobody wants to know the results any more."""
        end = monotonic() + seconds
        try:
            while self.n_due and self._has_answer(max(end - monotonic(), 0)):
                self._receive()
                self.n_due -= 1
        except WorkerLost:
            pass
        return not self.n_due

    @abstractmethod
    def _receive(self) -> Answer: ...

    @abstractmethod
    def _has_answer(self, seconds: float) -> bool:
        """Now or in that time; also true of one that was lost."""

    @abstractmethod
    def end(self) -> None:
        """At once, whatever it is doing."""


class WorkerFleet(BaseFleet):
    """Client k lives with worker k modulo their number. A child says what a worker is and how one waits for it."""

    idle: ClassVar[list[Any]]  # workers take seconds to start, so the next fleet gets those of the last

    def __init__(
        self, home: Home, conditions: Conditions, on_progress: Callable[[str, int, int], None], workers: int
    ) -> None:
        super().__init__(home, conditions, on_progress)
        self._n_workers = min(workers or self._count_cores(), home.task.n_clients)
        self._workers: list[Any] = []
        self._limits = threadpool_limits(1)  # the server's sums too must not depend on cores
        try:
            self._start()
        except BaseException:  # nobody could close a fleet that never came to be
            self.close()
            raise

    @abstractmethod
    def _count_cores(self) -> int: ...

    @abstractmethod
    def _hire(self, number: int) -> Worker: ...

    @abstractmethod
    def _wait(self, workers: Sequence[Any]) -> Any:
        """One of them that has a result, or was lost."""

    def _start(self) -> None:
        try:
            self._settle_in()
        except WorkerLost:  # one that was idle may have died meanwhile; close has none of those return
            self.close()
            self._settle_in()

    def _settle_in(self) -> None:
        count = self._n_workers
        self._workers = [self.idle.pop() if self.idle else self._hire(k) for k in range(count)]
        for k, worker in enumerate(self._workers):
            own = self.home.source.only(range(k, self.home.task.n_clients, count))
            worker.send("settle_in", [replace(self.home, source=own)])
        for worker in self._workers:
            worker.receive()

    def replace_lost(self) -> None:
        self.close()
        self._start()

    def _perform(self, requests: Sequence[Request]) -> Generator[Reply]:
        yield from self._spread("perform", {request.client: request for request in requests})

    def _evaluate(self, clients: Sequence[ClientId], round: int) -> Generator[Score]:
        yield from self._spread("evaluate", {client: (client, round) for client in clients})

    def _spread(self, what: str, jobs: Mapping[ClientId, Any]) -> Generator[Any]:
        for worker, clients in zip(self._workers, self._deal(jobs), strict=True):
            worker.send(what, [jobs[client] for client in clients])
        for _ in jobs:
            yield self._wait([worker for worker in self._workers if worker.n_due]).receive()

    def _save_clients(self, round: int) -> dict[int, str]:
        files: dict[int, str] = {}
        for part in self._tell_all("save", [round] * len(self._workers)):
            files |= part
        return dict(sorted(files.items()))

    def _settle_clients(self, round: int) -> None:
        self._tell_all("settle", [round] * len(self._workers))

    def _open_clients(self, files: dict[int, str], round: int) -> None:
        parts = [{client: files[client] for client in clients} for clients in self._deal(files)]
        self._tell_all("open", [(part, round) for part in parts])

    def _tell_all(self, what: str, jobs: Sequence[Any]) -> list[Any]:
        for worker, job in zip(self._workers, jobs, strict=True):
            worker.send(what, [job])
        return [worker.receive() for worker in self._workers]

    def _deal(self, clients: Mapping[ClientId, Any]) -> list[list[ClientId]]:
        """Whose clients are whose."""
        hands: list[list[ClientId]] = [[] for _ in self._workers]
        for client in clients:
            hands[client % len(hands)].append(client)
        return hands

    def close(self) -> None:
        for worker in self._workers:
            if worker.finish(PATIENCE_SECONDS):
                worker.send("move_out", [])
                self.idle.append(worker)
            else:  # in the middle of something, or lost
                worker.end()
        self._workers = []
        self._limits.restore_original_limits()


class Resident:
    """The other end: a host, and what it is told."""

    def __init__(self) -> None:
        threadpool_limits(1)  # as many workers as cores: threads of BLAS would only get in their way
        self.host: Host | None = None

    def answer(self, what: str, job: Any) -> Answer:
        try:
            return self._act(what, job), None
        except Exception as problem:  # goes to the other end, whose user must see it
            return None, (problem, traceback.format_exc())

    def rest(self, what: str) -> None:
        """After the last job sent with others."""
        if what == "move_out":
            self.host = None
        if self.host is not None:
            self.host.forget_decoded()

    def _act(self, what: str, job: Any) -> Any:
        if what == "settle_in":
            self.host = Host(job)
            return None
        assert self.host is not None
        match what:
            case "perform":
                return self.host.perform(job)
            case "evaluate":
                return self.host.evaluate(*job)
            case "save":
                return self.host.ends.save(job)
            case "settle":
                return self.host.ends.settle(job)
            case _:
                return self.host.ends.open(*job)
