"""A real run that all tests of live copy; runs and live servers as processes that end with their test."""

import contextlib
import json
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from laconic.runs.config import read_config
from laconic.runs.run import run

SMALL = ["method.epochs=1", "method.n_clauses=4", "data.clients=4"]
N_ROUNDS, LIAR = 3, 2
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four clients under a budget; in the last round a reply comes damaged."""
    folder = tmp_path_factory.mktemp("live") / "run"

    def spoil(fleet: Any) -> None:
        honest = fleet._perform

        def damage(requests: Any) -> Iterator[Any]:
            for reply in honest(requests):
                data = reply.encoded.data
                is_due = fleet.round == N_ROUNDS and reply.client == LIAR and data
                worse = bytes([*data[:-1], data[-1] ^ 1]) if is_due else data
                yield reply._replace(encoded=reply.encoded._replace(data=worse))

        fleet._perform = damage

    run(read_config(None, [*SMALL, f"rounds={N_ROUNDS}", "budget=100kB"]), folder, on_open=spoil)
    return folder


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    """The same, to do with as a test likes."""
    return Path(shutil.copytree(finished, tmp_path / "runs" / "one"))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """`laconic` as a process in the test's folder."""
    with contextlib.ExitStack() as stack:

        def begin(*words: object) -> "subprocess.Popen[str]":
            command = [sys.executable, "-m", "laconic", *map(str, words)]
            process = subprocess.Popen(
                command,
                cwd=tmp_path,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                stdin=subprocess.DEVNULL,
            )
            stack.callback(process.communicate)
            stack.callback(process.kill)
            return process

        yield begin


class Events:
    """What a live server sends, one event after the other."""

    def __init__(self, url: str) -> None:
        self._stream = urllib.request.urlopen(url.replace("/?", "/events?"), timeout=60)
        self.type = self._stream.headers["content-type"]

    def next(self) -> tuple[str, dict[str, Any]]:
        kind = ""
        while line := self._stream.readline().decode():
            name, _, rest = line.rstrip("\n").partition(": ")
            if name == "event":
                kind = rest
            elif name == "data":
                return kind, json.loads(rest)
        raise AssertionError("the stream has ended")

    def wait_for(self, is_due: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while not is_due(found := self.next()[1]):
            pass
        return found

    def close(self) -> None:
        self._stream.close()
