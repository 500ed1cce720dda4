"""Clients in worker processes of this machine: a client stays with its worker, and so does its state."""

import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from typing import Any

from laconic.algorithm import ClientId
from laconic.fleets.base import BaseFleet, Conditions
from laconic.fleets.host import Home, Host, Reply, Request, Score


class ProcessFleet(BaseFleet):
    def __init__(
        self, home: Home, conditions: Conditions, on_progress: Callable[[str, int, int], None], workers: int
    ) -> None:
        super().__init__(home, conditions, on_progress)
        self._n_workers = min(workers, home.task.n_clients)
        context = multiprocessing.get_context("spawn")  # a fork would inherit threads and locks in any state
        self._pipes: list[Connection] = []
        self._processes = []
        for worker in range(self._n_workers):
            ours, theirs = context.Pipe()
            own = replace(home, source=home.source.only(range(worker, home.task.n_clients, self._n_workers)))
            process = context.Process(target=serve, args=(own, theirs), daemon=True, name=f"laconic worker {worker}")
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)

    def _perform(self, requests: Sequence[Request]) -> Generator[Reply]:
        yield from self._spread("perform", {request.client: request for request in requests})

    def _evaluate(self, clients: Sequence[ClientId], round: int) -> Generator[Score]:
        yield from self._spread("evaluate", {client: (client, round) for client in clients})

    def _spread(self, what: str, jobs: Mapping[ClientId, Any]) -> Generator[Any]:
        for worker, pipe in enumerate(self._pipes):
            self._send(pipe, (what, [job for client, job in jobs.items() if client % self._n_workers == worker]))
        for _ in jobs:
            yield self._receive(wait(self._pipes)[0])

    def _save_clients(self, round: int) -> dict[int, str]:
        files: dict[int, str] = {}
        for pipe in self._pipes:
            self._send(pipe, ("save", [round]))
        for pipe in self._pipes:
            files |= self._receive(pipe)
        return dict(sorted(files.items()))

    def _settle_clients(self, round: int) -> None:
        for pipe in self._pipes:
            self._send(pipe, ("settle", [round]))
        for pipe in self._pipes:
            self._receive(pipe)

    def _open_clients(self, files: dict[int, str], round: int) -> None:
        for worker, pipe in enumerate(self._pipes):
            own = {client: name for client, name in files.items() if client % self._n_workers == worker}
            self._send(pipe, ("open", [(own, round)]))
        for pipe in self._pipes:
            self._receive(pipe)

    def _send(self, pipe: Any, job: tuple[str, list[Any]]) -> None:
        try:
            pipe.send(job)
        except BrokenPipeError:
            self._mourn(pipe)

    def _receive(self, pipe: Any) -> Any:
        try:
            result, error = pipe.recv()
        except (EOFError, ConnectionResetError):
            self._mourn(pipe)
        if error is not None:
            problem, trace = error
            problem.add_note(f"in a worker process:\n{trace}")
            raise problem
        return result

    def _mourn(self, pipe: Any) -> None:
        process = self._processes[self._pipes.index(pipe)]
        process.join(5)
        raise RuntimeError(
            f"{process.name} ended with exit code {process.exitcode} (-9: killed, perhaps for lack of memory); "
            "resume the run, with fewer fleet.workers or fleet.state = 'disk' if memory was short"
        )

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.close()  # ends the worker's loop once it has finished its present step
        for process in self._processes:
            process.join(0.5)
            process.kill()
            process.join()


def serve(home: Home, pipe: Connection) -> None:
    """A worker's life: jobs in, results out, until the other end closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends us
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    host = Host(home)
    actions: dict[str, Callable[[Any], Any]] = {
        "perform": host.perform,
        "evaluate": lambda job: host.evaluate(*job),
        "save": host.cells.save,
        "settle": host.cells.settle,
        "open": lambda job: host.cells.open(*job),
    }
    while True:
        try:
            what, jobs = pipe.recv()
        except (EOFError, ConnectionResetError):
            return
        host.forget_decoded()
        for job in jobs:
            try:
                result, error = actions[what](job), None
            except Exception as problem:  # goes to the parent, whose user must see it
                result, error = None, (problem, traceback.format_exc())
            try:
                pipe.send((result, error))
            except BrokenPipeError:
                return
