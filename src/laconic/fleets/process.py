"""Clients in worker processes of this machine: a client stays with its worker, and so does its state."""

import multiprocessing
import signal
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn

from threadpoolctl import threadpool_limits

from laconic.algorithm import ClientId
from laconic.fleets.base import BaseFleet, Conditions
from laconic.fleets.host import Home, Host, Reply, Request, Score


class Worker:
    """A process, our end of its pipe, and how many results it owes us."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would inherit threads and locks in any state
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        self.n_due = 0

    def send(self, what: str, jobs: list[Any]) -> None:
        self.n_due += len(jobs)
        try:
            self.pipe.send((what, jobs))
        except (BrokenPipeError, ConnectionResetError):
            self._mourn()

    def receive(self) -> Any:
        try:
            result, error = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            self._mourn()
        self.n_due -= 1
        if error is not None:
            problem, trace = error
            problem.add_note(f"in a worker process:\n{trace}")
            raise problem
        return result

    def _mourn(self) -> NoReturn:
        self.process.join(5)
        raise RuntimeError(
            f"worker process {self.process.pid} ended with exit code {self.process.exitcode} (-9: killed, perhaps for "
            "lack of memory); resume the run, with fewer fleet.workers or fleet.state=disk if memory was short"
        )


_idle: list[Worker] = []  # a worker takes seconds to start, so the next fleet gets those of the last


class ProcessFleet(BaseFleet):
    def __init__(
        self, home: Home, conditions: Conditions, on_progress: Callable[[str, int, int], None], workers: int
    ) -> None:
        super().__init__(home, conditions, on_progress)
        n_workers = min(workers, home.task.n_clients)
        self._workers = [_idle.pop() if _idle else Worker() for _ in range(n_workers)]
        for k, worker in enumerate(self._workers):
            own = home.source.only(range(k, home.task.n_clients, n_workers))
            worker.send("settle_in", [replace(home, source=own)])
        for worker in self._workers:
            worker.receive()

    def _perform(self, requests: Sequence[Request]) -> Generator[Reply]:
        yield from self._spread("perform", {request.client: request for request in requests})

    def _evaluate(self, clients: Sequence[ClientId], round: int) -> Generator[Score]:
        yield from self._spread("evaluate", {client: (client, round) for client in clients})

    def _spread(self, what: str, jobs: Mapping[ClientId, Any]) -> Generator[Any]:
        for k, worker in enumerate(self._workers):
            worker.send(what, [job for client, job in jobs.items() if client % len(self._workers) == k])
        by_pipe = {worker.pipe: worker for worker in self._workers}
        for _ in jobs:
            ready = wait([worker.pipe for worker in self._workers if worker.n_due])[0]
            yield by_pipe[ready].receive()  # type: ignore[index]  # wait also takes sockets, which are none of ours

    def _save_clients(self, round: int) -> dict[int, str]:
        files: dict[int, str] = {}
        for part in self._tell_all("save", [round] * len(self._workers)):
            files |= part
        return dict(sorted(files.items()))

    def _settle_clients(self, round: int) -> None:
        self._tell_all("settle", [round] * len(self._workers))

    def _open_clients(self, files: dict[int, str], round: int) -> None:
        parts: list[dict[int, str]] = [{} for _ in self._workers]
        for client, name in files.items():
            parts[client % len(parts)][client] = name
        self._tell_all("open", [(part, round) for part in parts])

    def _tell_all(self, what: str, jobs: Sequence[Any]) -> list[Any]:
        for worker, job in zip(self._workers, jobs, strict=True):
            worker.send(what, [job])
        return [worker.receive() for worker in self._workers]

    def close(self) -> None:
        for worker in self._workers:
            if worker.n_due or not worker.process.is_alive():  # in the middle of something, or dead
                worker.process.kill()
                worker.process.join()
                worker.pipe.close()
            else:
                worker.send("move_out", [])
                _idle.append(worker)
        self._workers = []


def serve(pipe: Connection) -> None:
    """A worker's life: jobs in, results out, until the other end closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends us
    threadpool_limits(1)  # as many processes as cores: threads of BLAS would only get in their way
    host: Host | None = None
    while True:
        try:
            what, jobs = pipe.recv()
        except (EOFError, ConnectionResetError):
            return
        if what == "move_out":
            host = None
        for job in jobs:
            try:
                result, error = None, None
                if what == "settle_in":
                    host = Host(job)
                else:
                    assert host is not None
                    result = act(host, what, job)
            except Exception as problem:  # goes to the parent, whose user must see it
                error = (problem, traceback.format_exc())
            try:
                pipe.send((result, error))
            except (BrokenPipeError, ConnectionResetError):
                return
        if host is not None:
            host.forget_decoded()


def act(host: Host, what: str, job: Any) -> Any:
    match what:
        case "perform":
            return host.perform(job)
        case "evaluate":
            return host.evaluate(*job)
        case "save":
            return host.cells.save(job)
        case "settle":
            return host.cells.settle(job)
        case _:
            return host.cells.open(*job)
