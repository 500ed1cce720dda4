"""Methods run small: whatever the page has a figure for, they still note under the name that it knows."""

import re
from pathlib import Path

import pytest

from laconic.conformance import TWO_EACH, configure, make_data
from laconic.report import read_run
from laconic.report.notes import N_SHARED_BY_PAPER, SIMILARITY, find_models
from laconic.report.page import build_page
from laconic.runs.run import run

OF_NOTES = {"split", "models", "pairs", "targets", "cosines", "heads", "matrices"}
TORCH = "torch is not installed"
DRAWN = {
    "local-tm": set[str](),
    "separate": set[str](),
    "cs-pfedtm": {"split", "models", "pairs"},
    "fedcac": {"pairs"},
    "fedpurin": {"models", "pairs"},
    "fedproto": {"models", "targets", "cosines", "heads"},
    "fedtgp": {"models", "targets", "cosines", "heads"},
}


@pytest.mark.parametrize("method", DRAWN)
def test_a_method_notes_what_its_figures_need(method: str, tmp_path: Path) -> None:
    if method not in ("local-tm", "cs-pfedtm"):
        pytest.importorskip("torch", reason=TORCH)
    budget = ["budget=2kB"] if method == "cs-pfedtm" else []
    run(configure(method, "local", make_data(tmp_path, TWO_EACH), "rounds=2", *budget), tmp_path / "run")
    found = read_run(tmp_path / "run")
    page = build_page([found])
    assert set(re.findall(r'<section id="([^"]+)"', page)) & OF_NOTES == DRAWN[method]
    assert found.is_silent == (method in ("local-tm", "separate"))
    if method == "cs-pfedtm":
        assert {"private", "shared"} <= find_models(found).keys()
        assert found.noted(SIMILARITY)
        assert found.noted(N_SHARED_BY_PAPER)
        assert "at the worst round’s bytes, about" in page
