"""Rounds of a real run, read back from what TensorBoard wrote."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import laconic
from laconic.loggers import MLflow, TensorBoard, list_numbers


def test_tensorboard_gets_each_round_of_a_run(tmp_path: Path) -> None:
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
    run = laconic.run(
        "local-tm", data="digits", clients=2, rounds=2, epochs=1, n_clauses=10, out=tmp_path / "run",
        on_round=TensorBoard(tmp_path / "logs"),
    )  # fmt: skip
    (file,) = (tmp_path / "logs").iterdir()
    events = list(loader.RawEventFileLoader(str(file)).Load())
    assert len(events) == 3  # a version, two rounds
    assert run.accuracy is not None


def test_only_numbers_of_a_round_are_told(tmp_path: Path) -> None:
    heard = []
    laconic.run(
        "local-tm", data="digits", clients=2, rounds=1, epochs=1, n_clauses=10, out=tmp_path, on_round=heard.append
    )
    numbers = list_numbers(heard[0])
    assert 0 <= numbers["accuracy_mean"] <= 1
    assert "round" not in numbers
    assert all(isinstance(number, float) for number in numbers.values())


def test_mlflow_gets_the_numbers_of_each_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # a database would need more of MLflow than its small half
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri((tmp_path / "logs").as_uri())
    words = {"clients": 2, "rounds": 2, "epochs": 1, "n_clauses": 10}
    with mlflow.start_run() as begun:
        run = laconic.run("local-tm", data="digits", out=tmp_path / "run", on_round=MLflow(), **words)
    assert mlflow.get_run(begun.info.run_id).data.metrics["accuracy_mean"] == pytest.approx(run.accuracy)


READ_BACK = """
import sys
from wandb.proto.wandb_internal_pb2 import Record
from wandb.sdk.internal.datastore import DataStore

store = DataStore()
store.open_for_scan(sys.argv[1])
while (data := store.scan_data()) is not None:
    record = Record.FromString(data)
    if record.WhichOneof("record_type") == "history":
        print(record.history.step.num, *(item.nested_key[0] for item in record.history.item))
"""


def test_wandb_keeps_each_round_on_this_machine(tmp_path: Path) -> None:
    if find_spec("wandb") is None:
        pytest.skip("W&B is not installed")
    code = "import laconic; from laconic.loggers import WandB\n"
    code += "small = {'clients': 2, 'rounds': 2, 'epochs': 1, 'n_clauses': 10}\n"
    code += "laconic.run('local-tm', data='digits', out='run', on_round=WandB(dir='.'), **small)"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=True)
    (kept,) = tmp_path.glob("wandb/offline-run-*/*.wandb")  # whole when the process has ended
    done = subprocess.run([sys.executable, "-c", READ_BACK, kept], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["1", "2"]
    assert all("accuracy_mean" in line for line in lines)
