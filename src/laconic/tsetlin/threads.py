"""The same work on one thread or on many."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np


@contextmanager
def workers(threads: int) -> Iterator[Callable[[Callable[[Any], None], Any], None]]:
    """A way to run a function over items, on so many threads."""
    if not isinstance(threads, int | np.integer) or threads < 1:
        raise ValueError(f"threads is {threads!r}; give a whole number of at least 1")

    def run_here(task: Callable[[Any], None], items: Any) -> None:
        for item in items:
            task(item)

    if threads == 1:
        yield run_here
        return

    with ThreadPoolExecutor(threads) as pool:

        def run(task: Callable[[Any], None], items: Any) -> None:
            for _ in pool.map(task, items):
                pass

        yield run
