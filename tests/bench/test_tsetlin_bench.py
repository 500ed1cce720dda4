"""Our side of the benchmark: arithmetic, data and the worker; peers need a package index and are left out."""

import io
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from laconic.bench import peers
from laconic.bench.jobs import JOBS, load, write_data
from laconic.bench.tsetlin import OURS, Tally, Worker, select_peers, summarize, table, take_turns

ROW_KEYS = {
    "job",
    "ours_train_per_s",
    "ours_predict_per_s",
    "best_peer",
    "peer_train_per_s",
    "peer_predict_per_s",
    "train_ratio",
    "predict_ratio",
    "ours_accuracy",
    "peer_accuracy",
    "ours_rss_mb",
    "peer_rss_mb",
}
PYTHON = [sys.executable, "-P"]


@pytest.fixture
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two classes of images, left or right half bright, for all data sets the jobs name."""
    rng = np.random.default_rng(0)
    for name, shape in (("fashion_mnist", (28, 28)), ("cifar10", (32, 32, 3))):
        arrays = {}
        for part, n in (("train", 80), ("test", 40)):
            x, y = rng.integers(0, 60, (n, *shape), dtype=np.uint8), np.arange(n) % 2
            x[y == 0, :, : shape[1] // 2] += 150
            x[y == 1, :, shape[1] // 2 :] += 150
            arrays |= {f"x_{part}": x, f"y_{part}": y}
        np.savez(tmp_path / f"{name}.npz", **arrays)
    monkeypatch.setenv("LACONIC_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    with Worker(OURS, PYTHON, 1, tmp_path / "worker.log") as worker:
        yield worker


def test_rates_are_total_samples_over_total_time() -> None:
    tally = Tally()
    tally.add("train", {"samples": 100, "seconds": 1.0, "rss_mb": 5.0, "working_mb": 2.0})
    tally.add("train", {"samples": 100, "seconds": 4.0, "rss_mb": 4.0, "working_mb": 3.0})
    tally.add("predict", {"samples": 30, "seconds": 0.5, "rss_mb": 4.5, "working_mb": 1.0})
    assert tally.train_per_s == 40.0  # the mean of the two rates would be 62.5
    assert tally.predict_per_s == 60.0
    assert (tally.rss_mb, tally.working_mb) == (5.0, 3.0)


def test_standard_error_is_that_of_the_mean_and_needs_two_seeds() -> None:
    assert Tally(accuracies=[0.7]).accuracy_se is None
    tally = Tally(accuracies=[0.70, 0.72, 0.74, 0.76])
    assert tally.accuracy == pytest.approx(0.73)
    assert tally.accuracy_se == pytest.approx(0.0258199 / 2, rel=1e-5)  # variance 0.002 / 3


def test_each_ratio_is_to_the_peer_that_is_best_at_it() -> None:
    ours = Tally(1000, 1.0, 500, 0.25, [0.80, 0.82], 20.0, 10.0)
    others = {
        "pyTsetlinMachine": Tally(1000, 10.0, 500, 5.0, [0.83, 0.83], 60.0, 50.0),  # trains fastest: 100/s
        "tmu": Tally(1000, 20.0, 500, 2.5, [0.70, 0.72], 40.0, 30.0),  # predicts fastest: 200/s
    }
    row = summarize("A", ours, others)
    assert row.keys() >= ROW_KEYS
    assert row["best_peer"] == "pyTsetlinMachine"
    assert (row["peer_train_per_s"], row["train_ratio"]) == (100.0, 10.0)
    assert (row["peer_predict_per_s"], row["predict_ratio"]) == (200.0, 10.0)
    assert row["ours_accuracy"] == pytest.approx(0.81)
    assert (row["peer_accuracy"], row["peer_accuracy_se"]) == (pytest.approx(0.83), pytest.approx(0.0, abs=1e-12))
    assert (row["peer_rss_mb"], row["peer_working_mb"]) == (40.0, 30.0)
    assert row["peers"]["tmu"]["train_per_s"] == 50.0


def test_a_job_without_prediction_leaves_it_empty_in_row_and_table() -> None:
    row = summarize("D", Tally(6000, 0.1), {"tmu": Tally(6000, 3.0)})
    assert row["train_ratio"] == pytest.approx(30.0)
    assert [row[key] for key in ("ours_predict_per_s", "peer_predict_per_s", "predict_ratio")] == [None] * 3
    assert [row[key] for key in ("ours_accuracy", "peer_accuracy")] == [None] * 2
    json.dumps(row, allow_nan=False)
    shown = table([row | {"threads": 1, "seeds": 1, "cpu": "some CPU", "compile_seconds": 1.0}])
    text = io.StringIO()
    Console(file=text, width=80).print(shown)
    ours, peer, ratio = (line.split() for line in text.getvalue().splitlines()[3:6])
    assert ours == ["D", "laconic", "60,000", "-", "-", "0"]
    assert peer == ["tmu", "2,000", "-", "-", "0"]
    assert ratio == ["ratio", "to", "the", "best", "peer", "30.0x", "-"]


@pytest.mark.parametrize("name", list(JOBS))
def test_every_job_gets_bits_in_its_own_shape(name: str, data_folder: Path) -> None:
    job = replace(JOBS[name], n_train=80, n_test=min(JOBS[name].n_test, 40))
    example = write_data(job, data_folder / "bits.npz")
    assert example == {"C": (784,), "F": (784,), "E": (32, 32, 24)}.get(name, (28, 28))
    with np.load(data_folder / "bits.npz") as bits:
        assert bits["x_train"].shape == (80, *example)
        assert set(np.unique(bits["x_train"])) <= {0, 1}
        assert len(bits["x_test"]) == len(bits["y_test"]) == job.n_test


def test_peers_meet_only_the_jobs_they_have_a_machine_for() -> None:
    every = list(peers.VERSIONS)
    assert select_peers(JOBS["C"], every) == select_peers(JOBS["F"], every) == every
    assert select_peers(JOBS["B"], every) == [peer for peer in every if peer != "green-tsetlin"]
    assert select_peers(JOBS["coalesced"], every) == ["tmu"]


def test_what_peers_do_in_place_of_a_fuzzy_job_is_on_the_same_data() -> None:
    fuzzy, classic = JOBS["F"], JOBS[JOBS["F"].classic]
    assert classic.fuzzy is None
    for name in ("dataset", "rule", "n_train", "n_test", "patch", "levels", "n_classes"):
        assert getattr(fuzzy, name) == getattr(classic, name)


def test_too_few_images_are_refused(data_folder: Path) -> None:
    with pytest.raises(ValueError, match="80 train images; the job needs 6000"):
        write_data(JOBS["A"], data_folder / "bits.npz")


def test_missing_data_names_the_file_and_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LACONIC_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"fashion_mnist\.npz is missing.*LACONIC_DATA"):
        load("fashion_mnist")


@pytest.mark.parametrize("name", ["B", "F", "coalesced"])
def test_our_worker_learns_and_reports(name: str, data_folder: Path, worker: Worker) -> None:
    tiny = replace(JOBS[name], rule="above", n_train=80, n_test=40, n_clauses=20, n_classes=2)
    job = replace(tiny, threshold=20, epochs=4)
    spec = job.spec() | {"threads": 1}
    worker.ask("warm_up", spec=spec, example=write_data(job, data_folder / "bits.npz"))
    worker.ask("load", path=str(data_folder / "bits.npz"))
    lines: list[str] = []
    tally = take_turns(job, {OURS: worker}, 2, lines.append)[OURS]
    assert tally.train_samples % (4 * 80) == 0
    assert tally.train_samples > 2 * 4 * 80, "so short a training is timed as often as fits into a second"
    assert tally.predict_samples % 40 == 0
    assert len(tally.accuracies) == 2
    assert min(tally.accuracies) > 0.9
    assert tally.rss_mb >= tally.working_mb > 0
    assert len(lines) == 2 * 2


def test_clients_get_a_new_machine_each_and_no_prediction(data_folder: Path, worker: Worker) -> None:
    job = replace(JOBS["D"], n_train=80, n_clauses=10, n_clients=4, n_classes=2)
    worker.ask("warm_up", spec=job.spec() | {"threads": 1}, example=write_data(job, data_folder / "bits.npz"))
    worker.ask("load", path=str(data_folder / "bits.npz"))
    tally = take_turns(job, {OURS: worker}, 1, lambda line: None)[OURS]
    assert tally.train_samples % 80 == 0
    assert tally.train_samples > 80
    assert tally.predict_per_s is None


def test_a_failing_worker_is_reported_with_its_last_words(worker: Worker) -> None:
    with pytest.raises(RuntimeError, match=r"laconic ended with code 1 in step load:(.|\n)*nowhere\.npz"):
        worker.ask("load", path="nowhere.npz")


def test_an_installed_peer_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LACONIC_CACHE", str(tmp_path))
    folder = tmp_path / "peers" / f"tmu-{peers.VERSIONS['tmu']}"
    folder.mkdir(parents=True)
    (folder / "installed").touch()
    said: list[str] = []
    assert peers.ensure_environment("tmu", said.append) == folder / "bin" / "python"
    assert said == []
