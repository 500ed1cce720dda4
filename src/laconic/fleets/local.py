"""Clients in this process, on threads: training releases the interpreter lock."""

import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from laconic.algorithm import ClientId
from laconic.fleets.base import BaseFleet, Conditions
from laconic.fleets.host import Home, Host, Reply, Request, Score

T = TypeVar("T")


class LocalFleet(BaseFleet):
    def __init__(
        self, home: Home, conditions: Conditions, on_progress: Callable[[str, int, int], None], workers: int
    ) -> None:
        super().__init__(home, conditions, on_progress)
        self._host = Host(home)
        self._pool = ThreadPoolExecutor(workers or os.cpu_count() or 1)
        self._limits = threadpool_limits(1)  # a worker each: threads of BLAS would only get in their way

    def _perform(self, requests: Sequence[Request]) -> Generator[Reply]:
        self._host.forget_decoded()
        # those with most examples first, so that none of them is left for the end when other threads have nothing to do
        heaviest_first = sorted(requests, key=lambda request: -self._host.count_examples(request))
        yield from self._as_completed([self._pool.submit(self._host.perform, request) for request in heaviest_first])

    def _evaluate(self, clients: Sequence[ClientId], round: int) -> Generator[Score]:
        yield from self._as_completed([self._pool.submit(self._host.evaluate, client, round) for client in clients])

    def _as_completed(self, futures: Sequence[Future[T]]) -> Generator[T]:
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:  # after an error or Ctrl-C nothing new starts
            for future in futures:
                future.cancel()

    def state(self, client: ClientId) -> Any:
        """As it is now."""
        return self._host.state(client)

    def states(self) -> list[Any]:
        return [self.state(client) for client in self.everyone]

    def _save_clients(self, round: int) -> dict[int, str]:
        return self._host.ends.save(round)

    def _settle_clients(self, round: int) -> None:
        self._host.ends.settle(round)

    def _open_clients(self, files: dict[int, str], round: int) -> None:
        self._host.ends.open(files, round)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._limits.restore_original_limits()
