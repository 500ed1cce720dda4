"""The command line: what it says, what it refuses, what it does not load, and how it ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from laconic.bench.peers import VERSIONS

LACONIC = [sys.executable, "-c", "from laconic.cli import main; main()"]


@pytest.mark.parametrize("arguments", [["--help"], ["bench", "--help"], ["bench", "tsetlin", "--help"]])
def test_help_gives_an_example_and_loads_nothing_heavy(arguments: list[str]) -> None:
    script = (
        "import json, sys\n"
        "from laconic.cli import app\n"
        "app(sys.argv[1:], standalone_mode=False)\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True)
    shown, modules = done.stdout.rsplit("\n", 2)[:2]
    assert "Example: laconic " in shown
    assert not {"numpy", "numba", "scipy", "sklearn", "laconic.tsetlin"} & set(json.loads(modules))


@pytest.mark.parametrize(
    ("arguments", "due"),
    [
        (["--jobs", "A,Z"], ["'Z'", "A, B, C, D, E, coalesced"]),
        (["--against", "tmu2"], ["'tmu2'", "pyTsetlinMachineParallel", "pyTsetlinMachine,", "tmu"]),
        (["--jobs", "coalesced", "--against", "PYTSETLINMACHINE"], ["coalesced", "tmu"]),
        (["--seeds", "0"], ["--seeds"]),
        (["--threads", "0"], ["--threads"]),
    ],
)
def test_wrong_arguments_end_with_code_2_and_name_the_valid_ones(arguments: list[str], due: list[str]) -> None:
    wide = os.environ | {"COLUMNS": "200", "TERMINAL_WIDTH": "200"}  # else messages are broken between words
    done = subprocess.run(
        [*LACONIC, "bench", "tsetlin", *arguments], capture_output=True, text=True, env=wide, check=False
    )
    assert done.returncode == 2
    assert all(words in done.stderr for words in due)


def test_demo_prints_accuracy_and_rules_without_escape_codes() -> None:
    done = subprocess.run([*LACONIC, "demo"], capture_output=True, text=True, check=True)
    accuracy = float(done.stdout.split("accuracy ")[1].split("%")[0])
    assert accuracy > 97
    assert done.stdout.count("\nIF somewhere in rows") == 3
    assert "\x1b" not in done.stdout


def test_missing_data_ends_with_code_1_and_one_line(tmp_path: Path) -> None:
    install_stand_in(tmp_path, "tmu", "exit 1")
    folders = os.environ | {"LACONIC_DATA": str(tmp_path), "LACONIC_CACHE": str(tmp_path)}
    done = subprocess.run(
        [*LACONIC, "bench", "tsetlin", "--jobs", "B", "--against", "tmu"],
        capture_output=True,
        text=True,
        env=folders,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith(f"error: {tmp_path}/fashion_mnist.npz is missing")


def test_interrupt_ends_the_workers_and_gives_code_130(tmp_path: Path) -> None:
    install_stand_in(tmp_path, "tmu", f"echo $$ > {tmp_path}/new && mv {tmp_path}/new {tmp_path}/pid && exec sleep 600")
    y, x = np.arange(6000) % 10, np.zeros((6000, 28, 28), np.uint8)
    np.savez(tmp_path / "fashion_mnist.npz", x_train=x, y_train=y, x_test=x[:2000], y_test=y[:2000])
    folders = os.environ | {"LACONIC_DATA": str(tmp_path), "LACONIC_CACHE": str(tmp_path)}
    command = [*LACONIC, "bench", "tsetlin", "--jobs", "B", "--against", "tmu"]
    with subprocess.Popen(command, env=folders, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as bench:
        while not (tmp_path / "pid").exists():
            assert bench.poll() is None
            time.sleep(0.05)
        bench.send_signal(signal.SIGINT)
        bench.communicate()
    assert bench.returncode == 130
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def install_stand_in(cache: Path, peer: str, script: str) -> None:
    """A peer whose Python is a shell script."""
    python = cache / "peers" / f"{peer}-{VERSIONS[peer]}" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    (python.parent.parent / "installed").touch()
