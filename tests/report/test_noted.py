"""Methods run small: whatever they declare to be drawn they note under that name, and the page draws it."""

import re
from pathlib import Path

import pytest

from laconic.algorithms import METHODS
from laconic.conformance import TWO_EACH, configure, make_data
from laconic.report import read_run
from laconic.report.page import build_page
from laconic.runs.config import find_method
from laconic.runs.run import run

TORCH = "torch is not installed"
OF_NOTES = re.compile(r'<section id="(panel-[^"]+|pairs|matrices)"')
MODELS, SPLIT, DONORS = "panel-two-models-of-each-client", "panel-shared-and-private", "panel-donors"
OF_PROTOTYPES = {MODELS, "panel-prototypes-of-the-classes", "panel-how-alike-the-prototypes-are"}
DRAWN = {
    "local-tm": set[str](),
    "separate": set[str](),
    "tpfl": {"panel-surest-classes"},
    "cs-pfedtm": {MODELS, SPLIT, DONORS, "pairs"},
    "fedcac": {"pairs"},
    "fedpurin": {MODELS, "pairs"},
    "fedproto": OF_PROTOTYPES | {"panel-heads-and-labels"},
    "fedtgp": OF_PROTOTYPES | {"panel-heads-and-labels"},
}


@pytest.mark.parametrize("method", DRAWN)
def test_a_method_notes_what_it_declares(method: str, tmp_path: Path) -> None:
    if method not in ("local-tm", "cs-pfedtm", "tpfl"):
        pytest.importorskip("torch", reason=TORCH)
    more = {"cs-pfedtm": ["budget=2kB"], "fedproto": ["method.cps_dims=2"], "fedtgp": ["method.cps_dims=2"]}
    settings = more.get(method, [])
    run(configure(method, "local", make_data(tmp_path, TWO_EACH), "rounds=2", *settings), tmp_path / "run")
    found = read_run(tmp_path / "run")
    page = build_page([found])
    assert set(OF_NOTES.findall(page)) == DRAWN[method]
    assert "Declared, but not noted" not in page
    assert found.is_silent == (method in ("local-tm", "separate"))
    if method == "cs-pfedtm":
        assert "at the worst round’s bytes, about" in page


@pytest.mark.parametrize("method", METHODS)
def test_what_clients_are_to_be_drawn_by_is_among_what_they_note(method: str) -> None:
    """Accuracies of predict_also are noted for them."""
    if METHODS[method].family == "networks":
        pytest.importorskip("torch", reason=TORCH)
    cls = find_method(method)
    for panel in cls.panels:
        names = [name for name in panel.notes if not name.endswith("_accuracy")]
        if panel.kind in ("classes", "models", "labels"):
            assert set(names) <= set(cls.client_notes)
