"""A personal model leaves its run as a file, and predicts elsewhere what it predicted there."""

import contextlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import laconic
from laconic.algorithms import METHODS
from laconic.client_model import ClientModel
from laconic.conformance.small_runs import TWO_EACH, configure, make_data
from laconic.data import Partition
from laconic.data.datasets import load as load_data
from laconic.runs import checkpoint
from laconic.runs.client_models import read_client, read_test_rows
from laconic.runs.config import read_config
from laconic.runs.prepare import prepare
from laconic.runs.run import run

CLIENTS = (0, 2, 4)
# what a run does that changes what its models are made of, or what they read
VARIANTS = {
    "fedtm with patches and levels": ["fedtm", "method.patch=3", "data.booleanize=quantile:2"],
    "fedtm on turned images": ["fedtm", "data.shift=turned"],
    "cs-pfedtm by samples": ["cs-pfedtm", "method.normaliser=sample", "method.present_only=false"],
    "clausepool alone": ["clausepool", "method.share=false"],
    "fedproto by its head": ["fedproto", "method.tested=head"],
}
CASES = {method: [method] for method in METHODS} | VARIANTS

ELSEWHERE = """
import json, sys
import numpy as np, laconic
for case in json.load(sys.stdin):
    predicted = laconic.load(case["model"]).predict(np.load(case["rows"]))
    print(json.dumps(predicted.tolist()))
assert json.load(open(sys.argv[1])) or "torch" not in sys.modules
"""


def predict_in_run(folder: Path, client: int) -> list[str]:
    """As the run itself did when it tested: by the method, on examples as it prepared them."""
    config = read_config(folder / "config.toml")
    prepared = prepare(config, Partition.load(folder / "partition.npz"))
    state = checkpoint.read_state(folder, config.method, client)
    test = prepared.source.at(client, config.rounds)[2]
    return [prepared.dataset.classes[label] for label in config.method.predict(state, test.x)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    home = tmp_path_factory.mktemp("runs")
    data = make_data(home, TWO_EACH)
    folders = {}
    for name, (method, *settings) in CASES.items():
        folders[name] = home / name.replace(" ", "-")
        run(configure(method, "local", data, *settings), folders[name])
    return folders


@pytest.fixture(scope="module")
def predicted_elsewhere(runs: dict[str, Path]) -> dict[tuple[str, int], list[str]]:
    """In two fresh processes: one for models of Tsetlin Machines, which PyTorch stays out of, one for networks."""
    found: dict[tuple[str, int], list[str]] = {}
    for needs_torch in (False, True):
        cases = {}
        for name, folder in runs.items():
            if (METHODS[CASES[name][0]].extra == "nn") == needs_torch:
                for client in CLIENTS:
                    model, rows = folder / f"{client}.safetensors", folder / f"{client}.npy"
                    read_client(folder, client).save(model)
                    np.save(rows, read_test_rows(folder, client))
                    cases[name, client] = {"model": str(model), "rows": str(rows)}
        flag = next(iter(runs.values())).parent / "needs_torch.json"
        flag.write_text(json.dumps(needs_torch))
        told = json.dumps(list(cases.values()))
        done = subprocess.run(
            [sys.executable, "-c", ELSEWHERE, flag], input=told, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        found |= dict(zip(cases, map(json.loads, done.stdout.splitlines()), strict=True))
    return found


@pytest.mark.parametrize("case", CASES)
def test_a_saved_model_predicts_in_another_process_what_it_did_in_its_run(case, runs, predicted_elsewhere) -> None:
    for client in CLIENTS:
        due = predict_in_run(runs[case], client)
        assert due
        assert predicted_elsewhere[case, client] == due


@pytest.mark.parametrize("case", ["fedtm", "cs-pfedtm", "clausepool", "fedavg", "fedproto"])
def test_scores_are_highest_for_the_class_predicted(case, runs) -> None:
    model, rows = read_client(runs[case], 0), read_test_rows(runs[case], 0)
    best = np.array(model.classes)[model.scores(rows).argmax(axis=1)]
    assert (best == model.predict(rows)).all()


def test_a_model_says_where_it_comes_from(runs, tmp_path: Path) -> None:
    read_client(runs["clausepool"], 2).save(tmp_path / "m.safetensors")
    about = laconic.load(tmp_path / "m.safetensors").about
    assert (about.method, about.client, about.name, about.seed, about.data) == ("clausepool", 2, "2", 0, "made")
    assert about.run == checkpoint.find_digest(runs["clausepool"])
    assert about.laconic == laconic.__version__


def test_a_fedtm_model_of_digits_takes_at_most_40_kb(tmp_path: Path) -> None:
    run = laconic.run("fedtm", data="digits", rounds=2, epochs=10, out=tmp_path / "run")
    run.client(7).save(tmp_path / "m.safetensors")
    assert (tmp_path / "m.safetensors").stat().st_size <= 40_000


# ---------------------------------------------------------------- files that are no models
@pytest.fixture
def saved(runs, tmp_path: Path) -> Path:
    read_client(runs["fedtm"], 0).save(tmp_path / "m.safetensors")
    return tmp_path / "m.safetensors"


def test_every_flipped_byte_is_refused_or_changes_nothing(saved: Path) -> None:
    sound, rng = saved.read_bytes(), np.random.default_rng(0)
    model, n_refused = laconic.load(saved), 0
    rows = rng.integers(0, 2, (20, 8, 8))
    for place in rng.choice(len(sound), 120, replace=False):
        data = bytearray(sound)
        data[place] ^= 1 << int(rng.integers(8))
        saved.write_bytes(data)
        with contextlib.suppress(ValueError):
            found = laconic.load(saved)  # the header has room to spare, which says nothing
            assert (found.predict(rows) == model.predict(rows)).all()
            assert found.about == model.about
            continue
        n_refused += 1
    assert n_refused > 100


@pytest.mark.parametrize(
    ("content", "due"),
    [
        (b"", "no sound model"),
        (b"PK\x03\x04 something else", "no sound model"),
        (b"\xff" * 4000, "no sound model"),
    ],
)
def test_a_foreign_file_is_refused_with_what_was_expected(tmp_path: Path, content: bytes, due: str) -> None:
    path = tmp_path / "foreign.safetensors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"{due}.*laconic export"):
        laconic.load(path)


def test_a_state_of_laconics_own_is_no_model(runs, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="laconic-model-1"):
        laconic.load(runs["fedtm"] / "preprocessing.safetensors")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nothing.safetensors is not there"):
        laconic.load(tmp_path / "nothing.safetensors")


OWN_NETWORK = """
from math import prod
from torch import nn

class Own(nn.Module):
    def __init__(self, input_shape, n_classes):
        super().__init__()
        self.body, self.head = nn.Flatten(), nn.Linear(prod(input_shape), n_classes)

    def forward(self, x):
        return self.head(self.body(x))
"""


def test_a_file_may_have_no_code_imported_that_nobody_allowed(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "my_network.py").write_text(OWN_NETWORK)
    monkeypatch.chdir(tmp_path)
    settings = ["method.training.model=my_network:Own", "method.n_features=0"]
    run(configure("separate", "local", make_data(tmp_path, TWO_EACH), *settings), tmp_path / "run")
    model = read_client(tmp_path / "run", 0)
    model.save(tmp_path / "m.safetensors")
    with pytest.raises(ValueError, match="my_network:Own, code that is not laconic's"):
        laconic.load(tmp_path / "m.safetensors")
    found = laconic.load(tmp_path / "m.safetensors", own_code="my_network:Own")
    rows = read_test_rows(tmp_path / "run", 0)
    assert (found.predict(rows) == model.predict(rows)).all()


# ---------------------------------------------------------------- rows that do not fit
@pytest.mark.parametrize(
    ("rows", "due"),
    [
        (np.zeros((3, 7)), r"rows are of shape \(3, 7\), \[row, 8, 8\] was expected"),
        (np.zeros((8, 8)), r"rows are of shape \(8, 8\)"),
        (np.array([["a"] * 64]), "numbers were expected"),
        (np.full((2, 8, 8), np.nan), "row 0 holds NaN"),
        (np.full((2, 8, 8), 7), "values from 7 to 7 came, 0 and 1 were expected"),
    ],
)
def test_rows_that_do_not_fit_are_refused(runs, rows, due) -> None:
    with pytest.raises(ValueError, match=due):
        read_client(runs["fedtm"], 0).predict(rows)


def test_an_image_may_come_flat(runs) -> None:
    model, rows = read_client(runs["fedtm"], 0), read_test_rows(runs["fedtm"], 0)
    assert (model.predict(rows.reshape(len(rows), -1)) == model.predict(rows)).all()


# ---------------------------------------------------------------- runs that have no such model
def test_a_client_that_is_not_there_is_answered_with_those_that_are(runs) -> None:
    with pytest.raises(ValueError, match=r"client is 77; .* has 0 to 4"):
        read_client(runs["fedtm"], 77)


def test_clients_are_found_by_their_names(runs) -> None:
    model: ClientModel = read_client(runs["fedtm"], "3")
    assert model.about.client == 3


def test_a_run_of_before_models_could_leave_it_says_by_its_data_how_rows_are_read(runs, tmp_path: Path) -> None:
    old = tmp_path / "old"
    shutil.copytree(runs["fedtm"], old)
    (old / "preprocessing.safetensors").unlink()
    manifest = json.loads((old / "checkpoints" / "manifest.json").read_text())
    del manifest["sha256"], manifest["checksum"]
    (old / "checkpoints" / "manifest.json").write_text(json.dumps(manifest))
    assert predict_in_run(old, 2) == read_client(old, 2).predict(read_test_rows(old, 2)).tolist()


def test_damaged_states_are_refused(runs, tmp_path: Path) -> None:
    shutil.copytree(runs["fedtm"], tmp_path / "run")
    for file in (tmp_path / "run" / "checkpoints").glob("client-*"):
        data = bytearray(file.read_bytes())
        data[-3] ^= 4
        file.write_bytes(data)
    with pytest.raises(ValueError, match="not as it was saved"):
        read_client(tmp_path / "run", 0)


def test_a_method_that_does_not_say_what_its_models_are_is_told_how(tmp_path: Path) -> None:
    data = make_data(tmp_path, TWO_EACH)
    run(configure("mean_label:MeanLabel", "local", data), tmp_path / "run")
    with pytest.raises(ValueError, match=r"personal_model\(client\)"):
        read_client(tmp_path / "run", 0)


def test_names_of_columns_go_with_a_model(tmp_path: Path) -> None:
    from sklearn.datasets import load_iris

    iris = load_iris(as_frame=True)
    run = laconic.run("local-tm", data=iris.frame, label="target", clients=3, alpha=100.0, rounds=2, out=tmp_path / "r")
    model = run.client(0)
    assert model.about.features == tuple(iris.feature_names)
    mixed = iris.frame[["target", *reversed(iris.feature_names)]]
    assert (model.predict(mixed) == model.predict(iris.frame)).all()
    with pytest.raises(ValueError, match=r"have no column petal length \(cm\)"):
        model.predict(iris.frame.drop(columns="petal length (cm)"))
    assert load_data(str(tmp_path / "r" / "data.npz")).features == tuple(iris.feature_names)
