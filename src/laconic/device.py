"""On which device networks are worked out in this process: the CPU, unless whoever has clients here says otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

CPU = "cpu"
NAMES = re.compile(r"auto|cpu|mps|cuda(:\d+)?")

_chosen = CPU


def choose(name: str) -> None:
    """Until another is chosen; a name as torch has it."""
    global _chosen  # noqa: PLW0603  # for all threads: clients train on several
    _chosen = name


def chosen() -> str:
    return _chosen


@contextmanager
def restored() -> Iterator[None]:
    """Whatever is chosen inside, it is as before afterwards."""
    before = _chosen
    try:
        yield
    finally:
        choose(before)
