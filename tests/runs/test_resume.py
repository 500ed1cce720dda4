"""kill -9, Ctrl-C, damage: what a run folder survives."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from laconic.runs.config import read_config
from laconic.runs.run import resume, run

SETTINGS = [
    "method.name=fedtm",
    "method.n_clauses=10",
    "method.epochs=5",
    "data.clients=4",
    "rounds=12",
    "fleet.lost_replies=0.2",
]
LACONIC = Path(sys.executable).parent / "laconic"


def start(out: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [str(LACONIC), "run", *arguments, "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=out.parent)


def sets(*more: str) -> list[str]:
    return [part for setting in (*SETTINGS, *more) for part in ("--set", setting)]


def read_all(folder: Path) -> dict[str, bytes]:
    files = [folder / f"{name}.jsonl" for name in ("metrics", "clients", "pairs", "traffic")]
    files += (folder / "checkpoints").glob("*.safetensors")
    return {file.name: file.read_bytes() for file in files}


def n_rounds(folder: Path) -> int:
    log = folder / "metrics.jsonl"
    return log.read_bytes().count(b"\n") if log.exists() else 0


def wait_for_round(process: subprocess.Popen[str], folder: Path, n_lines: int) -> None:
    while process.poll() is None and n_rounds(folder) < n_lines:
        time.sleep(0.005)


@pytest.mark.parametrize("fleet", [["fleet.state=disk"], ["fleet.name=process"]], ids=["disk", "process"])
def test_killed_at_any_moment_and_resumed_ends_bit_identical(fleet: list[str], tmp_path: Path) -> None:
    run(read_config(None, [*SETTINGS, *fleet]), tmp_path / "whole")
    chance, folder = random.Random(0), tmp_path / "killed"
    process = start(folder, "--out", str(folder), *sets(*fleet))
    for n_lines in (2, 5, 9):
        wait_for_round(process, folder, n_lines)
        time.sleep(chance.random() * 0.2)  # anywhere within a round
        process.kill()
        process.communicate()
        assert not (folder / "DONE.json").exists()
        process = start(folder, "--resume", str(folder))
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert read_all(folder) == read_all(tmp_path / "whole")
    assert json.loads(out.splitlines()[-1])["rounds"] == 12


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = start(folder, "--out", str(folder), *sets("rounds=500"))
    wait_for_round(process, folder, 3)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert f"laconic run --resume {folder}" in err
    assert "Traceback" not in err
    assert json.loads((folder / "checkpoints" / "manifest.json").read_text())["round"] >= 1


def test_a_finished_run_resumed_tells_its_summary_again(tmp_path: Path) -> None:
    config = read_config(None, [*SETTINGS, "rounds=1"])
    summary = run(config, tmp_path / "run")
    assert resume(tmp_path / "run") == summary


@pytest.mark.parametrize("damage", ["manifest.json", "server-*", "client-00000-*", "link-00001-*"])
def test_a_damaged_checkpoint_is_a_clear_error(damage: str, tmp_path: Path) -> None:
    run(read_config(None, [*SETTINGS, "rounds=1"]), tmp_path / "run")
    (file,) = (tmp_path / "run" / "checkpoints").glob(damage)
    file.write_bytes(file.read_bytes()[:40])
    with pytest.raises(ValueError, match=rf"{file.name}.* restore a copy or start the run anew"):
        resume(tmp_path / "run", rounds=3)


def test_resuming_what_is_no_run_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no run"):
        resume(tmp_path)


def test_checkpoints_leave_one_file_per_client_behind(tmp_path: Path) -> None:
    run(read_config(None, [*SETTINGS, "rounds=5", "fleet.state=disk"]), tmp_path / "run")
    names = sorted(file.name.rsplit("-", 1)[0] for file in (tmp_path / "run" / "checkpoints").iterdir())
    due = [f"{kind}-{k:05d}" for kind in ("client", "link") for k in range(4)]
    assert names == sorted([*due, "manifest.json", "server"])
    assert not list((tmp_path / "run").rglob("*.draft"))


def find_workers(process: subprocess.Popen[str]) -> list[int]:
    command = ["pgrep", "-P", str(process.pid), "-f", "spawn_main"]
    children = subprocess.run(command, check=False, capture_output=True, text=True)
    return [int(pid) for pid in children.stdout.split()]


def test_a_worker_process_killed_in_a_round_changes_nothing(tmp_path: Path) -> None:
    run(read_config(None, SETTINGS), tmp_path / "whole")
    folder = tmp_path / "hit"
    process = start(folder, "--out", str(folder), *sets("fleet.name=process"))
    wait_for_round(process, folder, 2)
    os.kill(find_workers(process)[0], signal.SIGKILL)
    _, err = process.communicate()
    assert process.returncode == 0, err
    assert "exit code -9" in err
    assert read_all(folder) == read_all(tmp_path / "whole")


def test_a_run_that_loses_a_worker_in_each_trial_of_a_round_gives_up_and_can_be_resumed(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = start(folder, "--out", str(folder), *sets("rounds=500", "checkpoint_every=500", "fleet.name=process"))
    wait_for_round(process, folder, 2)
    while process.poll() is None:
        for worker in find_workers(process):
            os.kill(worker, signal.SIGKILL)
        time.sleep(0.05)
    _, err = process.communicate()
    assert process.returncode == 1
    assert "exit code -9" in err
    assert "resume the run" in err


def test_a_run_begun_before_matrices_were_recorded_goes_on(tmp_path: Path) -> None:
    settings = ["method.name=cs-pfedtm", "method.n_clauses=8", "data.clients=2", "rounds=1"]
    run(read_config(None, settings), tmp_path / "run")
    manifest = tmp_path / "run" / "checkpoints" / "manifest.json"
    old = json.loads(manifest.read_text())
    del old["lengths"]["pairs.jsonl"], old["sha256"], old["checksum"]
    manifest.write_text(json.dumps(old))
    (tmp_path / "run" / "DONE.json").unlink()
    (tmp_path / "run" / "pairs.jsonl").unlink()
    assert resume(tmp_path / "run").rounds == 1


def test_a_run_that_cannot_go_on_is_not_prolonged(tmp_path: Path) -> None:
    run(read_config(None, ["method.name=local-tm", "method.epochs=1", "rounds=1"]), tmp_path / "run")
    before = {file.name: file.read_bytes() for file in (tmp_path / "run").iterdir() if file.is_file()}
    (tmp_path / "run" / "partition.npz").rename(tmp_path / "partition.npz")
    with pytest.raises(ValueError, match=r"partition\.npz"):
        resume(tmp_path / "run", rounds=3)
    (tmp_path / "partition.npz").rename(tmp_path / "run" / "partition.npz")
    assert {file.name: file.read_bytes() for file in (tmp_path / "run").iterdir() if file.is_file()} == before
    (tmp_path / "run" / "deployed.json").write_text("{}")
    with pytest.raises(ValueError, match="laconic deploy run SERVER --out"):
        resume(tmp_path / "run", rounds=3)
