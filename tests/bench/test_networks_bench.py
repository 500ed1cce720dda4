"""`laconic bench networks`, at a small scale."""

import json
import subprocess
import sys

import pytest


def test_a_row_has_the_speeds_and_their_ratios() -> None:
    command = [sys.executable, "-c", "from laconic.cli import main; main()", "bench", "networks"]
    done = subprocess.run(
        [*command, "--rounds", "1", "--examples", "8", "--against", "loop,serial", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = json.loads(done.stdout)
    assert [row["job"] for row in rows] == ["fedavg", "fedpurin"]
    for row in rows:
        for other in ("loop", "serial"):
            assert row[f"{other}_ratio"] * row[f"{other}_samples_per_s"] == pytest.approx(row["ours_samples_per_s"])
