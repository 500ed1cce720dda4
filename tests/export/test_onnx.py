"""Networks as ONNX files: run in onnxruntime, from raw rows, against the model that they were made of."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray

from laconic import networks as nn
from laconic import tsetlin as tm
from laconic.algorithms import METHODS
from laconic.client_model import ClientModel
from laconic.conformance import TWO_EACH, configure, make_data
from laconic.models.base import PersonalModel, Scores
from laconic.models.machines import Ballot
from laconic.models.networks import Logits, NearestTarget
from laconic.models.portable import About
from laconic.models.preprocessing import Centred, Pixels, Preprocessing, Threshold
from laconic.runs.client_models import read_client, read_test_rows
from laconic.runs.run import run

NETWORKS = [name for name, method in METHODS.items() if method.family == "networks"]
N_CLASSES = 4


def wrap(
    model: PersonalModel, preprocessing: Preprocessing, input_shape: tuple[int, ...], turns: int = 0
) -> ClientModel:
    about = About(
        classes=("ant", "bee", "cat", "dog"),
        features=(),
        input_shape=input_shape,
        method="fedavg",
        client=7,
        name="north",
        data="made",
        seed=3,
        rounds=1,
        laconic="0",
        git=None,
        run="abc",
        turns=turns,
    )
    return ClientModel(model, preprocessing, about)


def make_network(model: str, input_shape: tuple[int, ...], peak: float = 255.0, head: str = "head") -> nn.Network:
    """Trained for a moment, so that statistics of batch normalisation are not those of a start."""
    network = nn.build(nn.Spec(model, input_shape, N_CLASSES, peak, head), 0)
    rows = draw_images(16, input_shape, int(peak) or 1)
    training = nn.Training(model=model, batch=8)
    nn.fit(network, (rows, np.arange(16) % N_CLASSES), np.random.default_rng(0), training)
    return network


def draw_images(n: int, shape: tuple[int, ...], peak: int = 255) -> NDArray[np.uint8]:
    return np.random.default_rng(1).integers(0, peak, (n, *shape), np.uint8, endpoint=True)


def predict(path: Path, rows: NDArray[Any]) -> tuple[NDArray[np.int64], Scores]:
    """As a stranger would, who has nothing but the file."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    labels, scores = session.run(["label", "scores"], {"rows": rows})
    return labels, scores


def assert_same(model: ClientModel, path: Path, rows: NDArray[Any]) -> None:
    """One at a time, some, all: the same labels and scores."""
    for some in (rows[:1], rows[1:4], rows):
        labels, scores = predict(path, some)
        assert labels.dtype == np.int64
        assert np.array(model.classes)[labels].tolist() == model.predict(some).tolist()
        np.testing.assert_allclose(scores, model.scores(some), rtol=1e-3, atol=1e-3)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("data"), TWO_EACH)


@pytest.mark.parametrize("method", NETWORKS)
def test_every_method_on_networks_gives_the_same_labels_on_all_test_examples(
    method: str, data: Path, tmp_path: Path
) -> None:
    run(configure(method, "local", data, "rounds=1"), tmp_path / "run")
    model, rows = read_client(tmp_path / "run", 2), read_test_rows(tmp_path / "run", 2)
    told = model.export_onnx(tmp_path / "m.onnx", rows)
    assert (told.n_compared, told.row_type) == (len(rows), "uint8")
    assert told.largest_error < 1e-5
    assert_same(model, tmp_path / "m.onnx", rows)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("mlp", (8, 8)),
        ("cnn", (28, 28)),
        ("cnn-fedpac", (32, 32, 3)),
        ("cnn-small", (9, 8)),
        ("resnet8", (28, 28)),
        ("resnet-small", (8, 8, 3)),
        ("vgg8", (28, 28)),
        ("mobilenetv2", (32, 32, 3)),
        ("efficientnet-slim", (16, 16, 3)),
        ("shufflenetv2-slim", (16, 16)),
    ],
)
def test_networks_by_name_give_the_same_labels_for_any_number_of_rows(
    name: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    model = wrap(Logits(make_network(name, shape)), Pixels(), shape)
    rows = draw_images(60, shape)
    model.export_onnx(tmp_path / "m.onnx", rows)
    assert_same(model, tmp_path / "m.onnx", rows)


def test_a_network_of_ones_own_is_written(tmp_path: Path) -> None:
    network = make_network("odd_networks:TwoPaths", (8, 8), 16, head="last")
    model = wrap(Logits(network), Pixels(16), (8, 8))
    model.export_onnx(tmp_path / "m.onnx")
    assert_same(model, tmp_path / "m.onnx", draw_images(50, (8, 8), 16))


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_images_are_turned_inside_the_graph(turns: int, tmp_path: Path) -> None:
    model = wrap(Logits(make_network("cnn-small", (8, 8, 3))), Pixels(), (8, 8, 3), turns)
    model.export_onnx(tmp_path / "m.onnx")
    rows = draw_images(50, (8, 8, 3))
    assert_same(model, tmp_path / "m.onnx", rows)
    assert (predict(tmp_path / "m.onnx", np.rot90(rows, axes=(1, 2)))[1] != predict(tmp_path / "m.onnx", rows)[1]).any()


def test_columns_far_from_zero_are_centred_without_losing_digits(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal([1e9, 0, -5], [1, 1e-3, 100], (200, 3))
    model = wrap(Logits(make_network("mlp", (3,), peak=0)), Centred.fit(rows), (3,))
    model.export_onnx(tmp_path / "m.onnx", rows)
    assert_same(model, tmp_path / "m.onnx", rows)
    model.export_onnx(tmp_path / "m.onnx")  # rows of its own range


def test_images_of_numbers_are_centred_place_by_place(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(np.arange(64).reshape(8, 8), 3, (200, 8, 8)).astype(np.float32)
    model = wrap(Logits(make_network("cnn-small", (8, 8), peak=0)), Centred.fit(rows), (8, 8), turns=1)
    told = model.export_onnx(tmp_path / "m.onnx", rows)
    assert told.row_type == "float64"
    assert_same(model, tmp_path / "m.onnx", rows.astype(np.float64))


def test_the_log_of_a_clients_shares_is_in_the_scores(tmp_path: Path) -> None:
    network = make_network("mlp", (8, 8))
    network.log_prior = nn.log_shares(np.array([0, 0, 2]), N_CLASSES)
    model = wrap(Logits(network), Pixels(), (8, 8))
    model.export_onnx(tmp_path / "m.onnx")
    labels, scores = predict(tmp_path / "m.onnx", draw_images(50, (8, 8)))
    assert set(labels) <= {0, 2}
    assert (scores[:, [1, 3]] < -1e8).all()
    assert_same(model, tmp_path / "m.onnx", draw_images(50, (8, 8)))


def test_a_class_without_a_target_is_never_chosen(tmp_path: Path) -> None:
    network = make_network("mlp", (8, 8))
    targets = np.random.default_rng(0).random((N_CLASSES, 256), np.float32)
    targets[1] = np.nan  # nothing is said of it
    model = wrap(NearestTarget(network, targets, np.array([True, False, True, True])), Pixels(), (8, 8))
    model.export_onnx(tmp_path / "m.onnx")
    labels, scores = predict(tmp_path / "m.onnx", draw_images(50, (8, 8)))
    assert 1 not in labels
    assert (scores[:, 1] == -np.inf).all()
    assert_same(model, tmp_path / "m.onnx", draw_images(50, (8, 8)))


def test_numbers_that_ran_away_are_held_in_as_in_the_run(tmp_path: Path) -> None:
    network = make_network("odd_networks:Flat", (8, 8))
    network.vector[-N_CLASSES:-2] = np.nan, 1e9  # biases of two classes
    model = wrap(Logits(network), Pixels(), (8, 8))
    model.export_onnx(tmp_path / "m.onnx")
    _, scores = predict(tmp_path / "m.onnx", draw_images(50, (8, 8)))
    assert (scores[:, :2] == [0, nn.LARGEST]).all()
    assert_same(model, tmp_path / "m.onnx", draw_images(50, (8, 8)))


def test_the_file_says_what_it_is_and_nothing_of_the_machine_it_was_made_on(tmp_path: Path) -> None:
    model = wrap(Logits(make_network("cnn-small", (8, 8))), Pixels(), (8, 8))
    model.export_onnx(tmp_path / "m.onnx")
    told = onnx.load(tmp_path / "m.onnx")
    said = {prop.key: prop.value for prop in told.metadata_props}
    assert json.loads(said["classes"]) == ["ant", "bee", "cat", "dog"]
    assert json.loads(said["features"]) == []
    assert json.loads(said["client"]) == 7
    assert (said["method"], said["name"], said["run"], said["git"]) == ("fedavg", "north", "abc", "null")
    assert told.producer_name == "laconic"
    data = (tmp_path / "m.onnx").read_bytes()
    assert b"site-packages" not in data
    assert b".py" not in data


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("CountsRows", "different rows get the same scores"),
        ("SaysTheSame", "does not depend on its rows"),
        ("LeavesTorch", "cannot be written as ONNX: .*torch's own operations"),
        ("LooksFirst", "cannot be written as ONNX: .*the same ones for any rows"),
        ("TellsManyFromFew", "cannot be written as ONNX: .*the same ones for any rows"),
    ],
)
def test_a_graph_that_does_not_depend_on_its_input_or_on_the_example_alone_cannot_be_written(
    name: str, complaint: str, tmp_path: Path
) -> None:
    network = nn.build(nn.Spec(f"odd_networks:{name}", (8, 8), N_CLASSES, 255), 0)
    model = wrap(Logits(network), Pixels(), (8, 8))
    with pytest.raises(ValueError, match=complaint):
        model.export_onnx(tmp_path / "m.onnx", draw_images(50, (8, 8)))
    assert not list(tmp_path.iterdir())


class Other(Logits):
    """Says something else in Python than its network does."""

    shift: float = 0.0

    def scores(self, x: NDArray[Any]) -> Scores:
        scores = super().scores(x)
        return scores + self.shift * np.arange(scores.shape[1])


def test_a_graph_with_other_labels_is_not_written(tmp_path: Path) -> None:
    other = Other(make_network("mlp", (8, 8)))
    other.shift = 3.0
    model = wrap(other, Pixels(), (8, 8))
    (tmp_path / "m.onnx").write_bytes(b"as it was")
    with pytest.raises(ValueError, match=r"other scores, .* of 50 labels differ; nothing was written"):
        model.export_onnx(tmp_path / "m.onnx", draw_images(50, (8, 8)))
    assert (tmp_path / "m.onnx").read_bytes() == b"as it was"


def test_rows_on_which_rounding_decides_are_named(tmp_path: Path) -> None:
    network = make_network("odd_networks:Flat", (8, 8))
    layout = nn.layout(network.spec)
    for piece in layout.pieces:  # all classes are one, so that they tie
        part = network.vector[piece.start : piece.stop].reshape(N_CLASSES, -1)
        part[:] = part[:1]
    other = Other(network)
    other.shift = 1e-7
    rows = draw_images(50, (8, 8))
    model = wrap(other, Pixels(), (8, 8))
    with pytest.raises(ValueError, match="rounding decides: rows 0, 1, 2, 3, 4 …; nothing was written"):
        model.export_onnx(tmp_path / "m.onnx", rows)
    assert not list(tmp_path.iterdir())


def test_machines_and_unknown_preprocessing_are_refused_with_what_to_do(tmp_path: Path) -> None:
    machine = tm.build(tm.Shape(8, 8, 1, 8, 8), N_CLASSES, 4, threshold=5)
    with pytest.raises(ValueError, match=r"made of Tsetlin Machines.*export it as C or as rules"):
        wrap(Ballot(machine), Threshold(), (8, 8)).export_onnx(tmp_path / "m.onnx")
    model = wrap(Logits(make_network("mlp", (8, 8))), Threshold(), (8, 8))
    with pytest.raises(ValueError, match="'pixels' or 'centred' was expected"):
        model.export_onnx(tmp_path / "m.onnx")


def test_rows_are_checked_as_those_of_a_prediction(tmp_path: Path) -> None:
    model = wrap(Logits(make_network("mlp", (8, 8))), Pixels(), (8, 8))
    with pytest.raises(ValueError, match="rows are none; give some"):
        model.export_onnx(tmp_path / "m.onnx", np.zeros((0, 8, 8), np.uint8))
    with pytest.raises(ValueError, match=r"\[row, 8, 8\] was expected"):
        model.export_onnx(tmp_path / "m.onnx", np.zeros((5, 7), np.uint8))
    with pytest.raises(ValueError, match="whole numbers to 255 were expected"):
        model.export_onnx(tmp_path / "m.onnx", np.full((5, 8, 8), 0.5))


@pytest.mark.parametrize("lacking", ["onnx", "onnxruntime", "onnxscript"])
def test_what_is_not_installed_is_named_with_the_extra_to_install(
    lacking: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = wrap(Logits(make_network("mlp", (8, 8))), Pixels(), (8, 8))
    monkeypatch.delitem(sys.modules, "laconic.export.onnx", raising=False)
    monkeypatch.setitem(sys.modules, lacking, None)
    with pytest.raises(ImportError, match=rf'needs {lacking}, which is not .* pip install "laconic-fl\[export\]"'):
        model.export_onnx(tmp_path / "m.onnx")


def test_the_command_line_compares_on_all_test_examples_and_refuses_machines(data: Path, tmp_path: Path) -> None:
    for method in ("fedproto", "fedtm"):
        run(configure(method, "local", data, "rounds=1"), tmp_path / method)
    program = "from laconic.cli import main; main()"

    def export(folder: Path) -> subprocess.CompletedProcess[str]:
        words = ["export", folder, "--client", "2", "--to", "onnx", "-o", tmp_path / "m.onnx", "--json"]
        return subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)

    done = export(tmp_path / "fedproto")
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    rows = read_test_rows(tmp_path / "fedproto", 2)
    told = json.loads(done.stdout)
    assert (told["n_compared"], told["bytes"]) == (len(rows), (tmp_path / "m.onnx").stat().st_size)
    assert_same(read_client(tmp_path / "fedproto", 2), tmp_path / "m.onnx", rows)
    refused = export(tmp_path / "fedtm")
    assert refused.returncode == 2
    assert "export it as C or as rules" in refused.stderr


def test_the_example_of_the_guide_runs_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "export-onnx.md").read_text("utf-8")
    train, use = re.findall(r"^```python\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(train, {})  # our own page
    known: dict[str, Any] = {}
    exec(use, known)
    assert known["names"].tolist() == read_client(tmp_path / "run", 7).predict(known["rows"]).tolist()
