"""Clients in worker processes of this machine: a client stays with its worker, and so does its state."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, ClassVar, NoReturn

from laconic.fleets.base import WorkerLost
from laconic.fleets.workers import Answer, Resident, Worker, WorkerFleet


class ProcessWorker(Worker):
    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would inherit threads and locks in any state
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def _send(self, what: str, jobs: Sequence[Any]) -> None:
        try:
            self.pipe.send((what, jobs))
        except (BrokenPipeError, ConnectionResetError):
            if jobs:  # without any nothing is due, and the next to send some will know
                self._raise_lost()

    def _receive(self) -> Answer:
        try:
            answer: Answer = self.pipe.recv()
        except (EOFError, OSError):  # OSError: it ended in the middle of an answer
            self._raise_lost()
        return answer

    def _has_answer(self, seconds: float) -> bool:
        return self.pipe.poll(seconds)

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()

    def _raise_lost(self) -> NoReturn:
        self.process.join(5)
        raise WorkerLost(
            f"worker process {self.process.pid} ended with exit code {self.process.exitcode} (-9: killed, perhaps for "
            "lack of memory)"
        )


class ProcessFleet(WorkerFleet):
    idle: ClassVar[list[ProcessWorker]] = []

    def _count_cores(self) -> int:
        return os.cpu_count() or 1

    def _hire(self, number: int) -> ProcessWorker:
        return ProcessWorker()

    def _wait(self, workers: Sequence[ProcessWorker]) -> ProcessWorker:
        ready = wait([worker.pipe for worker in workers])[0]
        return next(worker for worker in workers if worker.pipe is ready)


def end_with_parent() -> None:
    """At once: a step that went on would write into the folder of whoever has taken the run over."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def serve(pipe: Connection) -> None:
    """A worker's life: jobs in, results out, until the other end closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends us
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # likewise
    threading.Thread(target=end_with_parent, daemon=True).start()
    resident = Resident()
    while True:
        try:
            what, jobs = pipe.recv()
            for job in jobs:
                pipe.send(resident.answer(what, job))
        except (EOFError, OSError):
            return
        resident.rest(what)
