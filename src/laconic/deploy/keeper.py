"""Processes on this machine: started, watched, and started again after a while when they end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType

from laconic.deploy.units import PRIVATE

POLL_SECONDS = 0.5


class Keeper:
    """One process, kept alive; what it says goes to a log."""

    def __init__(
        self,
        name: str,
        log: Path,
        make_command: Callable[[], Sequence[str]],
        say: Callable[[str], None],
        restart_seconds: float,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name, self.log, self._make_command, self._say = name, log.resolve(), make_command, say
        self._restart_seconds, self._environment = restart_seconds, environment
        self._process: subprocess.Popen[bytes] | None = None
        self._next_start = 0.0

    def look_after(self) -> bool:
        """Whether it has just been started."""
        if self._process is not None:
            code = self._process.poll()
            if code is None and not self._has_given_up():
                return False
            self.stop()
            self._next_start = time.monotonic() + self._restart_seconds
            fate = "gave up" if code is None else f"ended with exit code {code}"
            self._say(f"{self.name} {fate}; again in {self._restart_seconds:g} s (see {self.log})")
        if time.monotonic() < self._next_start:
            return False
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._make_command(), cwd=self.log.parent, env=self._environment, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True, umask=PRIVATE,
            )  # fmt: skip
        self._say(f"{self.name} started, process {self._process.pid}")
        return True

    def ask_to_end(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()

    def stop(self, patience_seconds: float = 0.0) -> None:
        """It and all that it started; patience_seconds: for it to end by itself, if it was asked to."""
        if self._process is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience_seconds)
        with contextlib.suppress(ProcessLookupError):
            if sys.platform == "win32":  # which has no groups of processes
                self._process.kill()
            else:
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def _has_given_up(self) -> bool:
        """Whether it is there, but will do nothing any more."""
        return False


def end_all(keepers: Sequence[Keeper], patience_seconds: float) -> None:
    """They take leave side by side."""
    for keeper in keepers:
        keeper.ask_to_end()
    for keeper in keepers:
        keeper.stop(patience_seconds)


def keep(keepers: Sequence[Keeper]) -> None:
    """Until SIGTERM or Ctrl-C."""
    with stopping(keepers):
        while True:
            for keeper in keepers:
                keeper.look_after()
            time.sleep(POLL_SECONDS)


@contextlib.contextmanager
def stopping(keepers: Sequence[Keeper]) -> Iterator[None]:
    """Ctrl-C and SIGTERM end what is inside, and the processes with it."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)
        for keeper in keepers:
            keeper.stop()
