"""Ends that come from outside: SIGTERM, SIGHUP and a reader that went away end a command as Ctrl-C does."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

SIGPIPE = 13  # Windows has no name for it
HEEDED = ("SIGTERM", "SIGHUP")


class Stopped(KeyboardInterrupt):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def find_number(stop: KeyboardInterrupt) -> int:
    """Of the signal; a bare KeyboardInterrupt is Ctrl-C's."""
    return stop.number if isinstance(stop, Stopped) else int(signal.SIGINT)


@contextmanager
def heeded() -> Iterator[None]:
    """A second signal of a kind ends the process at once, and one that was ignored stays so (nohup)."""

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise Stopped(number)

    is_main = threading.current_thread() is threading.main_thread()
    numbers = [getattr(signal, name) for name in HEEDED if is_main and hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    for number, handler in before.items():
        if handler == signal.SIG_DFL:
            signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler == signal.SIG_DFL:
                signal.signal(number, handler)


def hush() -> None:
    """What is left for readers that have gone is dropped; else Python complains of it as it ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            with suppress(OSError), open(os.devnull, "w") as nowhere:  # noqa: PTH123
                os.dup2(nowhere.fileno(), stream.fileno())
