"""Training that is only tried out, so that `laconic check` can tell within seconds what all of it would take.

Loops of training ask here which of their turns to take. Unless something is being tried out that is all of them, at no
cost. During a trial they take turns while there is time, and what the others would have taken is worked out from these.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TypeVar

T = TypeVar("T")

LEAST_TURNS = 3  # of each kind, time or not; the first is warming up
PIECE = 50  # units, where work is done in pieces and not in turns


class Trial:
    """How long turns of each kind take, and how many were left out."""

    def __init__(self, seconds: float) -> None:
        self.seconds_left = seconds
        self._taken: dict[str, list[float]] = {}  # kind -> seconds of each unit, those of a piece as one mean
        self._n_skipped: Counter[str] = Counter()
        self._lock = threading.Lock()  # clients train on threads

    @property
    def skipped_seconds(self) -> float:
        """What was left out so far, had it been done one after the other."""
        with self._lock:
            return sum(n * self._mean(kind) for kind, n in self._n_skipped.items())

    def some(self, turns: Iterator[T], n_due: int, kind: str) -> Iterator[T]:
        n_taken = 0
        while n_taken < n_due and self._has_time(kind):
            started = perf_counter()
            for turn in turns:
                yield turn
                break
            else:
                return
            n_taken += 1
            self._note(kind, perf_counter() - started, 1)
        self._skip(kind, n_due - n_taken)

    @contextmanager
    def share(self, n_due: int, kind: str) -> Iterator[int]:
        n_now = min(n_due, PIECE) if self._has_time(kind) else 0
        started = perf_counter()
        yield n_now
        if n_now:
            self._note(kind, perf_counter() - started, n_now)
        self._skip(kind, n_due - n_now)

    def _has_time(self, kind: str) -> bool:
        with self._lock:
            return self.seconds_left > 0 or len(self._taken.get(kind, ())) < LEAST_TURNS

    def _note(self, kind: str, seconds: float, n_units: int) -> None:
        with self._lock:
            self._taken.setdefault(kind, []).append(seconds / n_units)
            self.seconds_left -= seconds

    def _skip(self, kind: str, n_units: int) -> None:
        with self._lock:
            self._n_skipped[kind] += n_units

    def _mean(self, kind: str) -> float:
        taken = self._taken.get(kind, [])
        warm = taken[1:] or taken
        return sum(warm) / max(len(warm), 1)


_current: Trial | None = None


@contextmanager
def trying(seconds: float) -> Iterator[Trial]:
    """Until the end of the block training in this process is only tried out, for so long in all."""
    global _current  # noqa: PLW0603  # training happens on threads of its own, far below whoever tries it out
    _current = Trial(seconds)
    try:
        yield _current
    finally:
        _current = None


def some(turns: Iterator[T], n_due: int, kind: str) -> Iterator[T]:
    """All turns; in a trial, as many as there is time for. Turns of one kind take about as long as each other."""
    return turns if _current is None else _current.some(turns, n_due, kind)


@contextmanager
def share(n_due: int, kind: str) -> Iterator[int]:
    """Of work that is done in one piece: how many of its units to do."""
    if _current is None:
        yield n_due
    else:
        with _current.share(n_due, kind) as n_now:
            yield n_now
