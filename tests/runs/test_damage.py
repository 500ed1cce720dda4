"""Flipped bits, power cuts, two at once: short versions of benchmarks/chaos.py and benchmarks/powercut.py."""

import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from laconic import files
from laconic.conformance import read_all
from laconic.files import InUse, is_in_use, lock
from laconic.runs.config import read_config
from laconic.runs.run import resume, run

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    chaos, powercut = importlib.import_module("chaos"), importlib.import_module("powercut")

SMALL = ["method.name=fedtm", "method.n_clauses=10", "method.epochs=1", "data.clients=3", "rounds=1"]
LACONIC = [sys.executable, "-c", "from laconic.cli import main; main()"]


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("begun") / "run"
    run(read_config(None, SMALL), folder)
    return folder


@pytest.fixture
def folder(begun: Path, tmp_path: Path) -> Path:
    shutil.copytree(begun, tmp_path / "run")
    return tmp_path / "run"


def read_manifest(folder: Path) -> dict[str, object]:
    return json.loads((folder / "checkpoints" / "manifest.json").read_text())


# ---------------------------------------------------------------- damage
def test_a_bit_flipped_in_any_file_of_a_checkpoint_is_refused_by_the_files_name(tmp_path: Path) -> None:
    assert set(chaos.flips(60, tmp_path, random.Random(1))) == {"refused by name"}


def test_all_that_a_run_goes_on_from_is_in_its_manifest(folder: Path) -> None:
    names = {path.name for path in (folder / "checkpoints").iterdir()} - {"manifest.json"}
    due = {f"checkpoints/{name}" for name in names} | {path.name for path in folder.glob("*.jsonl")}
    assert read_manifest(folder)["sha256"].keys() == due | {"config.toml", "partition.npz", "preprocessing.safetensors"}


def test_a_checkpoint_from_before_there_were_hashes_goes_on_to_the_same_end(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "other")
    resume(tmp_path / "other", rounds=2)
    old = read_manifest(folder)
    del old["sha256"], old["checksum"]
    (folder / "checkpoints" / "manifest.json").write_text(json.dumps(old))
    resume(folder, rounds=2)
    assert read_all(folder) == read_all(tmp_path / "other")
    assert read_manifest(folder)["sha256"].keys() == read_manifest(tmp_path / "other")["sha256"].keys()


def test_hashes_without_a_checksum_are_no_older_checkpoint(folder: Path) -> None:
    manifest = folder / "checkpoints" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"checksum"', '"chucksum"'))
    with pytest.raises(ValueError, match="its checksum does not fit what is in it; restore a copy"):
        resume(folder, rounds=2)


def test_a_checkpoint_of_a_newer_laconic_asks_for_that(folder: Path) -> None:
    newer = {"schema": 99, "whatever": "it holds"}
    (folder / "checkpoints" / "manifest.json").write_text(json.dumps(newer))
    with pytest.raises(ValueError, match="its schema is 99, this laconic reads up to 2; upgrade laconic"):
        resume(folder, rounds=2)


def test_settings_changed_by_hand_are_refused_with_how_a_run_gets_more_rounds(folder: Path) -> None:
    config = folder / "config.toml"
    config.write_text(config.read_text().replace("rounds = 1\n", "rounds = 3\n"))
    with pytest.raises(ValueError, match=r"config.toml is not as it was saved.* --set rounds=N"):
        resume(folder)


def test_a_crash_while_a_run_is_prolonged_leaves_it_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object) -> None:
        raise OSError("crash")

    for broken in ("write_settings", "write_settings", "_go"):  # before the new settings are there, and afterwards
        with monkeypatch.context() as patched:
            patched.setattr(f"laconic.runs.run.{broken}", crash)
            with pytest.raises(OSError, match="crash"):
                resume(folder, rounds=2)
        assert not (folder / "DONE.json").exists()
    assert resume(folder, rounds=3).rounds == 3


def test_states_on_disk_are_looked_at_each_time_they_are_read(tmp_path: Path) -> None:
    from laconic.fleets.store import Store

    store: Store[str] = Store(tmp_path, "word", str.encode, bytes.decode, on_disk=True)
    store.put(1, "one")
    (path,) = tmp_path.iterdir()
    path.write_text("One")
    with pytest.raises(ValueError, match=rf"{path.name} is not as it was saved; restore a copy"):
        store.get(1)


def test_a_folder_is_never_both_done_and_failed(folder: Path) -> None:
    (folder / "FAILED.json").write_text('{"schema": 2, "error": "of an earlier start"}')
    resume(folder)
    assert not (folder / "FAILED.json").exists()
    (folder / "FAILED.json").write_text('{"schema": 2, "error": "of an earlier start"}')
    resume(folder, rounds=2)
    assert {path.name for path in folder.glob("*.json")} >= {"DONE.json"}
    assert not (folder / "FAILED.json").exists()


def test_what_a_crash_left_behind_the_last_checkpoint_stops_nobody(folder: Path) -> None:
    with (folder / "metrics.jsonl").open("ab") as file:
        file.write(b"\0\0\0\n\xff\xfe no row at all\n")
    done = subprocess.run(
        [*LACONIC, "run", "--resume", str(folder), "--set", "rounds=2"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


# ---------------------------------------------------------------- power cuts
@pytest.mark.parametrize("store", ["memory", "disk"])
def test_a_power_cut_loses_nothing(store: str, tmp_path: Path) -> None:
    config = read_config(None, [*SMALL, f"fleet.state={store}"])
    points, due = powercut.record(config, tmp_path)
    assert len(points) > 100
    outcomes = {
        out for point in points[:: len(points) // 15] for out in powercut.try_point(point, config, due, tmp_path)
    }
    assert outcomes == {"kept"}


def test_a_run_that_did_not_sync_names_would_lose_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trial of the trial."""
    config = read_config(None, SMALL)
    monkeypatch.setattr(files, "sync_folder", lambda folder: None)
    points, due = powercut.record(config, tmp_path)
    assert any("was told of and lost" in out for out in powercut.try_point(points[-8], config, due, tmp_path))


# ---------------------------------------------------------------- two at once
def test_of_two_who_go_on_at_once_one_does_and_the_other_is_told_who(tmp_path: Path) -> None:
    assert set(chaos.locks(2, tmp_path, random.Random(0))) == {"one went on, one was told who holds it"}


def test_a_folder_in_use_is_refused_and_the_holder_named(folder: Path) -> None:
    with lock(folder):
        before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        with pytest.raises(InUse, match=rf"is in use by process {os.getpid()} on \S+ since 20.*Wait for it to end"):
            resume(folder, rounds=2)
        assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
    assert resume(folder, rounds=2).rounds == 2


def test_a_lock_of_the_dead_is_taken_over_even_if_another_has_their_number(folder: Path) -> None:
    (folder / "lock").write_text(f"process {os.getpid()} on here since yesterday: laconic run\n")
    assert resume(folder, rounds=2).rounds == 2


def test_whoever_waits_gets_the_lock_of_a_killed_process(tmp_path: Path) -> None:
    code = (
        f"from laconic.files import *; l = lock(Path({str(tmp_path)!r})); l.__enter__(); print(1, flush=True); input()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1, text=True) as holder:
        assert holder.stdout.readline()
        with pytest.raises(InUse, match=f"process {holder.pid} on "), lock(tmp_path):
            pass
        holder.kill()
        with lock(tmp_path, 10):
            assert f"process {os.getpid()} " in (tmp_path / "lock").read_text()
    assert (tmp_path / "lock").read_text() == ""


def test_whether_a_folder_is_in_use_is_seen_without_a_trace_even_where_the_holder_was_killed(tmp_path: Path) -> None:
    assert not is_in_use(tmp_path)
    code = (
        f"from laconic.files import *; l = lock(Path({str(tmp_path)!r})); l.__enter__(); print(1, flush=True); input()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1, text=True) as holder:
        assert holder.stdout.readline()
        words = (tmp_path / "lock").read_text()
        assert is_in_use(tmp_path)
        holder.kill()
        holder.wait()
        assert not is_in_use(tmp_path)  # though its words are still there
        assert (tmp_path / "lock").read_text() == words
    with lock(tmp_path):
        assert is_in_use(tmp_path)
    assert not is_in_use(tmp_path)


def test_who_only_looks_whether_a_folder_is_in_use_keeps_nobody_out(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("process 1 on here since yesterday: laconic run\n")
    is_over = threading.Event()

    def look() -> None:
        while not is_over.is_set():
            is_in_use(tmp_path)

    with ThreadPoolExecutor() as pool:
        for _ in range(3):
            pool.submit(look)
        try:
            for _ in range(50):
                with lock(tmp_path):
                    pass
                (tmp_path / "lock").write_text("process 1 on here since yesterday: laconic run\n")
        finally:
            is_over.set()


def test_a_start_cut_short_does_not_take_the_folder_with_it(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    for name in ("lock", "env.json", "partition.json", "partition.npz", "config.toml.17.draft"):
        (tmp_path / "run" / name).write_text("")
    assert run(read_config(None, SMALL), tmp_path / "run").rounds == 1


# ---------------------------------------------------------------- signals and pipes
def count_rounds(folder: Path) -> int:
    return (folder / "metrics.jsonl").read_bytes().count(b"\n") if (folder / "metrics.jsonl").exists() else 0


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
@pytest.mark.parametrize("fleet", ["local", "process"])
def test_a_signal_ends_a_run_as_ctrl_c_does(name: str, code: int, fleet: str, tmp_path: Path) -> None:
    folder, settings = tmp_path / "run", [*SMALL[:-1], f"fleet.name={fleet}", "rounds=9999"]
    command = [*LACONIC, "run", "--out", str(folder), *(part for one in settings for part in ("--set", one))]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True, start_new_session=True) as process:
        while count_rounds(folder) < 6:
            assert process.poll() is None
            time.sleep(0.02)
        if name == "SIGHUP":  # a terminal that is closed tells all that run in it
            os.killpg(process.pid, signal.SIGHUP)
        else:
            process.send_signal(signal.SIGTERM)
        _, err = process.communicate()
    assert process.returncode == code, err
    assert err.splitlines()[-1] == f"stopped, with all finished rounds safe.  Go on with: laconic run --resume {folder}"
    assert "Traceback" not in err
    assert (folder / "events.log").read_text().splitlines()[-1].endswith(f"stopped by {name}")
    assert not (folder / "FAILED.json").exists()
    assert read_manifest(folder)["round"] >= 4


def pipe(command: str) -> subprocess.CompletedProcess[str]:
    laconic = f"{sys.executable} -c 'from laconic.cli import main; main()'"
    script = f"set -o pipefail; {command.replace('laconic', laconic)}"
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("what", ["list", "list fedtm", "list methods --json", "--help"])
def test_a_reader_that_goes_ends_a_list_quietly(what: str) -> None:
    ended = pipe(f"laconic {what} | sleep 0")  # gone before anything is written
    assert ended.stderr == ""
    assert ended.returncode in ((141,) if what != "--help" else (0, 1))  # that is click's own


def test_a_reader_that_goes_leaves_a_run_that_goes_on(folder: Path) -> None:
    ended = pipe(f"laconic run --resume {folder} --set rounds=9999 2>&1 | head -1")
    assert len(ended.stdout.splitlines()) == 1
    assert ended.stderr == ""
    assert ended.returncode == 141
    assert (folder / "events.log").read_text().splitlines()[-1].endswith("stopped by SIGPIPE")
    assert not (folder / "FAILED.json").exists()


def test_a_reader_of_results_that_goes_does_not_undo_them(folder: Path) -> None:
    ended = pipe(f"laconic run --resume {folder} --set rounds=2 --quiet | sleep 0")
    assert (ended.stderr, ended.returncode) == ("", 141)
    assert (folder / "DONE.json").exists()


def find_workers(pid: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(pid), "-f", "spawn_main"], check=False, capture_output=True, text=True)
    return [int(number) for number in found.stdout.split()]


def test_workers_of_a_killed_run_end_with_it(tmp_path: Path) -> None:
    settings = [part for setting in (*SMALL[:-1], "fleet.name=process", "rounds=9999") for part in ("--set", setting)]
    command = [*LACONIC, "run", "--out", str(tmp_path / "run"), *settings]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True) as process:
        while not count_rounds(tmp_path / "run"):
            assert process.poll() is None
            time.sleep(0.02)
        workers = find_workers(process.pid)
        process.kill()
    assert workers
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < deadline
        time.sleep(0.01)
