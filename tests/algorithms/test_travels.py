"""What is said to travel is what travels: of every method, run small, each row of its ledger and each note."""

from pathlib import Path

import numpy as np
import pytest
from rumour import Rumour

from laconic.algorithm import Examples, Site, Task
from laconic.algorithms import METHODS
from laconic.catalogue import list_travels
from laconic.conformance import TWO_EACH, configure, make_data
from laconic.conformance.small_runs import read_rows
from laconic.fleets.base import BaseFleet
from laconic.fleets.source import ClientData
from laconic.runs.run import run
from laconic.simulation import federate
from laconic.wire import ENVELOPE

MORE = {"cs-pfedtm": ["method.gate=true"]}  # settings with which everything is noted


@pytest.mark.parametrize("method", METHODS)
def test_each_field_and_note_of_a_small_run_is_listed(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if METHODS[method].extra:
        pytest.importorskip("torch", reason="torch is not installed")
    noted, take = set(), BaseFleet._take_notes

    def listen(self, hop, reply) -> None:
        noted.update(name.partition("[")[0] for name in reply.notes)
        take(self, hop, reply)
        assert not self.dropped

    monkeypatch.setattr(BaseFleet, "_take_notes", listen)
    run(configure(method, "local", make_data(tmp_path, TWO_EACH), "rounds=1", *MORE.get(method, [])), tmp_path / "run")
    rows = list_travels(method)
    listed = {(row["direction"], row["step"], row["field"]) for row in rows}
    sent = {(row["direction"], row["step"], row["field"]) for row in read_rows(tmp_path / "run", "traffic")}
    assert {row for row in sent if row[2] != ENVELOPE} <= listed
    assert {row["field"] for row in rows if row["direction"] == "note"} == noted


def test_what_peers_tell_each_other_and_what_is_noted_stand_apart() -> None:
    rows = list_travels("rumour:Rumour")
    assert [(row["direction"], row["step"], row["field"], row["kind"]) for row in rows] == [
        ("down", "guess", "bits", "bits"),
        ("up", "guess", "bits", "bits"),
        ("up", "guess", "score", "float"),
        ("peer", "whisper", "values", "floats"),
        ("note", "", "n_equal", "floats"),
    ]


def test_a_note_that_was_not_declared_is_the_makers_mistake() -> None:
    examples = Examples(np.zeros((3, 2), np.uint8), np.arange(3))

    class Hasty(Rumour):
        client_notes = ("n_other",)

    source = ClientData.of([(examples,) * 3] * 3)
    with federate(Hasty(), Task((2,), 3, 3), source, 0) as federation:
        federation.play(0, is_evaluated=False)
        with pytest.raises(ValueError, match=r"n_equal noted, but not declared; .* = \('n_other', 'n_equal'\)"):
            federation.play(1, is_evaluated=False)
    site = Site(0, 1, examples, examples, np.random.default_rng(0), declared=("a",))
    with pytest.raises(ValueError, match="b noted, but not declared"):
        site.note_classes(b=np.ones(3))
