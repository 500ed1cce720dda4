"""Training that is only tried out, so that `laconic check` can tell within seconds what all of it would take.

Loops of training ask here which of their turns to take. Unless something is being tried out that is all of them, at no
cost. During a trial they take turns while there is time, and what the others would have taken is worked out from these.
Something is always trained, if less than a turn: what is sent of a model that did not move takes next to no bytes.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import TypeVar

T = TypeVar("T")

LEAST_TURNS = 3  # of each kind, time or not; the first is warming up


class Trial:
    """How long turns of each kind take, and how many were left out."""

    def __init__(self, seconds: float) -> None:
        self.seconds_left = seconds
        self._taken: dict[tuple[str, int], list[float]] = {}  # kind and thread -> seconds of each turn
        self._n_skipped: Counter[str] = Counter()
        self._lock = threading.Lock()  # clients train on threads
        self._here = threading.local()  # what this thread has done or left out

    def take_skipped(self) -> Counter[str]:
        """How many turns of each kind were left out since the last call."""
        with self._lock:
            skipped, self._n_skipped = self._n_skipped, Counter()
            return skipped

    def foretell(self, n_turns: Mapping[str, int]) -> float:
        """Seconds that so many turns of each kind take, one after the other."""
        return sum(n * self._mean(kind) for kind, n in n_turns.items())

    def some(self, turns: Iterator[T], n_due: int, kind: str, shorten: Callable[[T], T]) -> Iterator[T]:
        n_taken = 0
        while n_taken < n_due and self._has_time(kind):
            started = perf_counter()
            yield next(turns)
            n_taken += 1
            self._note(kind, perf_counter() - started)
        if n_due and not n_taken:
            yield shorten(next(turns))
        self._done_here[kind] += n_due
        self._skip(kind, n_due - n_taken)

    def first_of(self, turns: Sequence[T]) -> Iterator[T]:
        before = Counter(self._done_here)
        yield turns[0]
        for kind, n_turns in (self._done_here - before).items():
            self._done_here[kind] += n_turns * (len(turns) - 1)
            self._skip(kind, n_turns * (len(turns) - 1))

    @property
    def _done_here(self) -> Counter[str]:
        if not hasattr(self._here, "done"):
            self._here.done = Counter[str]()
        done: Counter[str] = self._here.done
        return done

    def _has_time(self, kind: str) -> bool:
        with self._lock:
            return self.seconds_left > 0 or self._count(kind) < LEAST_TURNS

    def _note(self, kind: str, seconds: float) -> None:
        with self._lock:
            self._taken.setdefault((kind, threading.get_ident()), []).append(seconds)
            self.seconds_left -= seconds

    def _skip(self, kind: str, n_turns: int) -> None:
        with self._lock:
            self._n_skipped[kind] += n_turns

    def _count(self, kind: str) -> int:
        return sum(len(seconds) for (known, _), seconds in self._taken.items() if known == kind)

    def _mean(self, kind: str) -> float:
        """The first turn of each thread is warming up: it compiles, loads and makes room."""
        taken = [seconds for (known, _), seconds in self._taken.items() if known == kind]
        warm = [second for seconds in taken for second in seconds[1:]] or [seconds[0] for seconds in taken]
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


def is_under_way() -> bool:
    return _current is not None


def some(turns: Iterator[T], n_due: int, kind: str, shorten: Callable[[T], T] = lambda turn: turn) -> Iterator[T]:
    """All turns; in a trial, as many as there is time for, or a shortened one. All of a kind take about as long."""
    return turns if _current is None else _current.some(turns, n_due, kind, shorten)


def first_of(turns: Sequence[T]) -> Iterable[T]:
    """Turns that are made of other turns, all alike; in a trial the first is taken, and what it did counts for all."""
    return turns if _current is None or not turns else _current.first_of(turns)
