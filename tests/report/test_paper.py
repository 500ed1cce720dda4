import struct
import sys
from collections import Counter

import pytest
from made_runs import write_run

from laconic.records import Sockets, folder
from laconic.report import build_page, read_run
from laconic.report.paper import COLUMN_INCHES, DOTS_PER_INCH, write_figures

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
NAMES = ("accuracy-by-bytes", "accuracy-by-round", "fairness")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    home = tmp_path_factory.mktemp("paper")
    return [
        read_run(write_run(home / f"{method}{seed}", method=method, seed=seed))
        for method in ("local-tm", "fedtm", "tpfl")
        for seed in (0, 1)
    ]


def test_figures_are_of_every_kind_asked_for_and_the_same_bytes_each_time(runs, tmp_path):
    kinds = ("png", "pdf", "svg")
    first, second = (write_figures(runs, tmp_path / name, kinds) for name in ("one", "two"))
    assert [path.name for path in first] == [f"{name}.{kind}" for name in NAMES for kind in kinds]
    for a, b in zip(first, second, strict=True):
        assert a.read_bytes() == b.read_bytes()
        assert a.read_bytes().startswith({".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}[a.suffix])


def test_they_are_as_wide_as_a_column(runs, tmp_path):
    (path, *_) = write_figures(runs, tmp_path, ["png"])
    (width,) = struct.unpack(">I", path.read_bytes()[16:20])
    assert width == round(COLUMN_INCHES * DOTS_PER_INCH)


def test_a_vector_figure_names_methods_once_and_keeps_its_text(runs, tmp_path):
    (path, *_) = write_figures(runs, tmp_path, ["svg"])
    text = path.read_text("utf-8")
    assert all(text.count(f">{method}</text>") == 1 for method in ("local-tm", "fedtm", "tpfl"))
    assert "accuracy (%)" in text


def test_runs_that_send_nothing_have_figures_too(tmp_path):
    run = read_run(write_run(tmp_path / "alone", method="local-tm"))
    assert len(write_figures([run], tmp_path / "figures", ["svg"])) == 3


def test_page_and_figures_are_made_of_records_that_were_read_once(tmp_path, monkeypatch):
    home, n_times, read_text = write_run(tmp_path / "run"), Counter(), folder.read_text
    rows = [Sockets(number, 0, "exchange", 100, 50) for number in range(5)]
    folder.append_lines(home / Sockets.file, map(folder.to_line, rows))
    monkeypatch.setattr(folder, "read_text", lambda path: n_times.update([path.name]) or read_text(path))
    runs = [read_run(home)]
    assert "On the sockets of the nodes" in build_page(runs)
    assert len(write_figures(runs, tmp_path / "figures", ["svg"])) == 3
    assert n_times["traffic.jsonl"] == n_times[Sockets.file] == max(n_times.values()) == 1


def test_a_kind_that_is_none_is_refused(runs, tmp_path):
    with pytest.raises(ValueError, match="'gif' is no kind of figure; there are png, pdf, svg"):
        write_figures(runs, tmp_path / "figures", ["gif"])
    assert not (tmp_path / "figures").exists()


def test_without_matplotlib_the_extra_is_named(runs, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ValueError, match=r'which is not installed\.  pip install "laconic-fl\[plots\]"'):
        write_figures(runs, tmp_path / "figures", ["png"])
