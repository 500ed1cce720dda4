"""A real run that all tests of live copy; runs and live servers as processes that end with their test."""

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from followed import LIAR, N_ROUNDS, SMALL, Start

from laconic.runs.config import read_config
from laconic.runs.run import run


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
