"""laconic export and predict: a client's model by the path of what holds it, rows by the path of their file."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

import laconic

SMALL = {"rounds": 2, "n_clauses": 10, "epochs": 2}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> laconic.Run:
    return laconic.run("fedtm", data="digits", clients=3, out=tmp_path_factory.mktemp("run"), **SMALL)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    np.savez(tmp_path / "rows.npz", rows=load_digits().data[:20])
    return tmp_path / "rows.npz"


def call(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "laconic", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_model_leaves_its_run_as_a_file_and_predicts_there(run: laconic.Run, rows: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.safetensors"
    done = call("export", run.folder, "--client", "2", "-o", model)
    assert done.returncode == 0, done.stderr
    assert "fedtm model of client 2" in done.stdout
    due = run.client(2).predict(load_digits().data[:20]).tolist()
    assert call("predict", model, rows).stdout.splitlines() == due
    told = json.loads(call("predict", run.folder, rows, "--client", "2", "--json").stdout)
    assert told == {"client": 2, "labels": due}


def test_a_model_leaves_its_run_as_c_and_as_rules(run: laconic.Run, tmp_path: Path) -> None:
    in_c = json.loads(call("export", run.folder, "--client", "1", "--to", "c", "-o", tmp_path / "m.h", "--json").stdout)
    assert in_c["n_compared"] == sum(run.summary.partition.clients[1].test or [])
    assert "model_predict" in (tmp_path / "m.h").read_text()
    assert call("export", run.folder, "--client", "1", "--to", "rules", "-o", tmp_path / "r.json").returncode == 0
    rules = json.loads((tmp_path / "r.json").read_text())
    assert rules
    assert all("pixel(" in literal for rule in rules for literal in rule["literals"])
    assert call("export", run.folder, "--client", "1", "--to", "rules", "-o", tmp_path / "r.txt").returncode == 0
    assert (tmp_path / "r.txt").read_text().startswith("IF ")


def test_rows_of_a_csv_are_taken_by_name_or_by_order(tmp_path: Path) -> None:
    from sklearn.datasets import load_iris

    frame = load_iris(as_frame=True).frame
    run = laconic.run("local-tm", data=frame, label="target", clients=2, alpha=100.0, out=tmp_path / "run", **SMALL)
    due = run.client(0).predict(frame).tolist()
    frame[frame.columns[::-1]].to_csv(tmp_path / "named.csv", index=False)
    frame.drop(columns="target").to_csv(tmp_path / "plain.csv", index=False, header=False)
    for name in ("named.csv", "plain.csv"):
        assert call("predict", run.folder, tmp_path / name, "--client", "0").stdout.splitlines() == due


@pytest.mark.parametrize(
    ("content", "due"),
    [
        ("", "is empty"),
        ("1,2,3\n4,5\n", ":2 has 2 cells, 3 were expected"),
        ("a,b\n1,two\n", ":2: column b holds 'two', a number was expected"),
        ("1,2\n3,4\n", "was expected"),
    ],
)
def test_rows_that_cannot_be_read_are_named(content: str, due: str, run: laconic.Run, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(content)
    done = call("predict", run.folder, tmp_path / "rows.csv", "--client", "0")
    assert done.returncode == 2
    assert due in done.stderr
    assert not done.stdout


def test_what_holds_no_model_is_refused(run: laconic.Run, rows: Path, tmp_path: Path) -> None:
    for arguments, due in {
        (tmp_path / "nothing", rows): "is not there; a run folder, a node or a model",
        (tmp_path, rows): "is there, but holds none",
        (run.folder, rows): "say whose model is wanted: --client 0",
        (run.folder, rows, "--client", "9"): "client is '9'",
        (rows, rows): "is no sound model",
    }.items():
        done = call("predict", *arguments)
        assert (done.returncode, due in done.stderr) == (2, True), done.stderr
        assert "Traceback" not in done.stderr


def test_an_unknown_form_is_answered_with_those_there_are(run: laconic.Run) -> None:
    done = call("export", run.folder, "--client", "0", "--to", "pickle")
    assert done.returncode == 2
    assert "model, c, onnx, rules" in " ".join(done.stderr.replace("│", " ").split())


def test_a_model_of_another_client_is_not_taken_for_the_one_wanted(
    run: laconic.Run, rows: Path, tmp_path: Path
) -> None:
    run.client(1).save(tmp_path / "m.safetensors")
    done = call("predict", tmp_path / "m.safetensors", rows, "--client", "0")
    assert "is the model of client 1, not of 0" in done.stderr
