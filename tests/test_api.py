"""Laconic in Python: the same words, checks and files as the command line's."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris

import laconic
from laconic.records import Times

SMALL = {"rounds": 2, "n_clauses": 10, "epochs": 2}


def read_folder(folder: Path) -> dict[str, bytes]:
    """All of it but what differs from run to run: the clock, the command, and what is made from these."""
    timed = {"env.json", "events.log", "report.html", "DONE.json", Times.file, "manifest.json"}
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in timed
    }


def run_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "laconic", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> laconic.Run:
    return laconic.run("fedtm", data="digits", clients=5, alpha=0.5, seed=3, out=tmp_path_factory.mktemp("r"), **SMALL)


def test_python_and_the_command_line_leave_the_same_folder(tmp_path: Path) -> None:
    settings = {
        "data.clients": 4,
        "data.alpha": 0.3,
        "rounds": 2,
        "method.n_clauses": 10,
        "method.epochs": 2,
        "seed": 5,
    }
    for method in ("fedtm", "clausepool"):
        by_hand, by_python = tmp_path / f"{method}-cli", tmp_path / f"{method}-python"
        given = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        run_command("run", "--set", f"method.name={method}", *given, "--out", str(by_hand))
        laconic.run(method, data="digits", clients=4, alpha=0.3, seed=5, out=by_python, **SMALL)
        assert read_folder(by_python) == read_folder(by_hand)
        assert len(read_folder(by_python)) > 10


def test_a_run_is_columns(done: laconic.Run) -> None:
    assert done.rounds.round.tolist() == [0, 1, 2]
    assert np.isnan(done.rounds["accuracy_mean"][0])
    assert done.accuracy == done.rounds.accuracy_mean[-1]
    assert done.clients.client.tolist() == [0, 1, 2, 3, 4]
    assert done.clients.accuracy.mean() == pytest.approx(done.accuracy)
    sent = done.traffic.sent_bytes[done.traffic.direction == "up"].sum()
    assert sent == done.rounds.upload_bytes.sum() == done.summary.upload_bytes
    with pytest.raises(AttributeError, match="there is no column bytes; there are round, step"):
        done.traffic.bytes  # noqa: B018


def test_columns_become_a_frame(done: laconic.Run) -> None:
    frame = done.traffic.frame()
    assert isinstance(frame, pd.DataFrame)
    by_step = frame.groupby(["direction", "step"]).sent_bytes.sum()
    assert by_step["up"].sum() == done.summary.upload_bytes


def test_a_run_shows_itself_as_table_and_plot(done: laconic.Run) -> None:
    shown = done._repr_html_()
    assert "<table>" in shown
    assert "<polyline" in shown
    assert "fedtm" in repr(done)
    assert "<td>" in done.rounds._repr_html_()


def test_a_run_is_found_again_in_its_folder(done: laconic.Run) -> None:
    again = laconic.load_run(done.folder)
    assert again.accuracy == done.accuracy
    x, _ = load_digits(return_X_y=True)
    assert (again.client(2).predict(x[:50]) == done.client(2).predict(x[:50])).all()
    with pytest.raises(ValueError, match="nowhere"):
        laconic.load_run("nowhere")


def test_each_round_is_told_as_it_ends(tmp_path: Path) -> None:
    heard = []
    laconic.run("local-tm", data="digits", clients=3, out=tmp_path / "r", on_round=heard.append, **SMALL)
    assert [row.round for row in heard] == [1, 2]
    assert all(row.accuracy_mean > 0 for row in heard)


def test_called_again_a_run_goes_on_instead_of_starting_anew(tmp_path: Path) -> None:
    words = {"data": "digits", "clients": 3, "n_clauses": 10, "epochs": 2, "out": tmp_path / "r"}
    first = laconic.run("local-tm", rounds=1, **words)
    heard = []
    more = laconic.run("local-tm", rounds=3, on_round=heard.append, **words)
    assert [row.round for row in heard] == [2, 3]
    assert first.folder == more.folder
    assert len(more.rounds.round) == 4
    with pytest.raises(ValueError, match="holds a run with other settings"):
        laconic.run("local-tm", rounds=3, **(words | {"clients": 4}))


def test_methods_are_compared_on_one_partition(tmp_path: Path) -> None:
    words = {"clients": 3, "seed": [0, 1], "settings": {"fedtm.epochs": 1}} | SMALL
    compared = laconic.compare(["local-tm", "fedtm"], data="digits", out=tmp_path / "c", **words)
    assert compared.table.method.tolist() == ["local-tm", "fedtm"]
    assert compared.table.n_seeds.tolist() == [2, 2]
    assert len(compared) == 4
    assert compared["fedtm"].method == "fedtm"
    assert len({run.summary.partition.sha256 for run in compared if run.summary.seed == 0}) == 1
    assert compared.report().exists()
    assert "fedtm" in compared._repr_html_()


def test_what_a_run_would_cost_is_told_before_it(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = laconic.check("fedtm", data="digits", clients=3, budget="20kB", n_clauses=20, epochs=1)
    assert told["upload_bytes"] > 0
    assert told["most_bytes_per_client"] <= 20_000
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------- data at hand
def test_rows_of_a_frame_belong_to_the_clients_that_a_column_names(tmp_path: Path) -> None:
    frame = load_iris(as_frame=True).frame.rename(columns={"target": "kind"})
    frame["clinic"] = np.where(np.arange(len(frame)) % 3, "north", "south")
    frame["kind"] = frame["kind"].map({0: "setosa", 1: "versicolor", 2: "virginica"})
    run = laconic.run("clausepool", data=frame, label="kind", group="clinic", out=tmp_path / "r", **SMALL)
    assert run.clients.name.tolist() == ["north", "south"]
    predicted = run.client("south").predict(frame)
    assert set(predicted) <= {"setosa", "versicolor", "virginica"}
    assert np.mean(predicted == frame["kind"]) > 0.6
    resumed = json.loads(run_command("run", "--resume", str(tmp_path / "r"), "--set", "rounds=3", "--json").stdout)
    assert resumed["rounds"] == 3


def test_arrays_are_a_data_set_too(tmp_path: Path) -> None:
    x, y = load_digits(return_X_y=True)
    words = {"alpha": 100.0, "clients": 2} | SMALL
    dealt = laconic.run("local-tm", data=(x, y), out=tmp_path / "dealt", **words)
    owned = laconic.run("local-tm", data=(x, y, y % 2), out=tmp_path / "owned", **SMALL)
    assert dealt.accuracy > 0.5
    assert owned.clients.name.tolist() == ["0", "1"]


@pytest.mark.parametrize(
    ("data", "words", "due"),
    [
        (7, {}, "data is a int; give the name or path"),
        (pd.DataFrame({"a": [1.0, 2.0]}), {}, r"data\.label is empty; which column .* columns of the frame are a"),
        (pd.DataFrame({"a": [1.0, 2.0]}), {"label": "b"}, "there is no column b; columns of the frame are a"),
        (
            pd.DataFrame({"a": [1.0, np.inf] * 4, "b": ["x", "y"] * 4}),
            {"label": "b"},
            "column a holds inf in row 1 of the frame",
        ),
        ((np.eye(3), np.arange(2)), {}, "rows do not match: x has 3, y has 2"),
    ],
)
def test_data_that_do_not_fit_are_refused(data, words, due, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=due):
        laconic.run("fedtm", data=data, out=tmp_path / "r", **words)
    assert not (tmp_path / "r").exists()


# ---------------------------------------------------------------- words that do not fit
@pytest.mark.parametrize(
    ("words", "due"),
    [
        ({"rounds": 0}, "rounds = 0 must be at least 1"),
        ({"alpa": 0.1}, r"unknown setting alpa\.  Did you mean alpha\?"),
        ({"alpha": "small"}, 'data.alpha = "small" must be a number'),
        ({"epochs": "two"}, 'method.epochs = "two" must be a whole number'),
        ({"settings": {"training.rate": 0.1}}, r"unknown section method.training"),
        ({"name": "x"}, "unknown setting name"),
        ({"seed": [0, 1]}, "a run has one"),
        ({"budget": "few"}, '"few" is no number of bytes'),
        ({"clients": object()}, "a number, text or list was expected"),
    ],
)
def test_words_that_do_not_fit_are_refused_by_name(words, due, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=due) as caught:
        laconic.run("fedtm", out=tmp_path / "r", **({"data": "digits"} | words))
    assert "--set" not in str(caught.value)
    assert not (tmp_path / "r").exists()


def test_settings_of_a_group_are_a_mapping_or_whole_keys(tmp_path: Path) -> None:
    for given in ({"settings": {"training.rate": 0.5}}, {"training": {"rate": 0.5}}):
        run = laconic.run("separate", data="digits", clients=2, rounds=1, out=tmp_path / str(len(given)), **given)
        assert run.summary.config["method"]["training"]["rate"] == 0.5


def test_importing_laconic_imports_nothing_else() -> None:
    count = "import sys, laconic; print(len([name for name in sys.modules if name.startswith('laconic')]))"
    done = subprocess.run([sys.executable, "-c", count], capture_output=True, text=True, check=True)
    assert int(done.stdout) == 1


def test_everything_public_can_be_imported_from_laconic() -> None:
    assert all(getattr(laconic, name) is not None for name in laconic.__all__)
    with pytest.raises(AttributeError, match="no attribute 'rum'"):
        laconic.rum  # noqa: B018
