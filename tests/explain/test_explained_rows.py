"""What decides about one row adds up to what the model says of it."""

from pathlib import Path

import numpy as np
import pytest
from explained import CASES, MACHINES, VOTING

from laconic.explain.row import explain_row
from laconic.explaining import explain_client
from laconic.runs.client_models import read_client, read_examples


@pytest.mark.parametrize("case", [*MACHINES, "seedhead"])
def test_sums_come_to_the_scores(case, runs) -> None:
    model = read_client(runs[case], 1)
    rows, _ = read_examples(runs[case], 1, "test")
    scores = model.scores(rows)
    for row in range(4):
        found = explain_row(model, [], rows, row)
        assert found.scores == tuple(scores[row, [model.classes.index(label) for label in found.classes]])
        assert np.sum(list(found.sums.values()), axis=0) == pytest.approx(found.scores, abs=1e-9)
        assert found.predicted == model.predict(rows)[row]


@pytest.mark.parametrize("case", VOTING)
def test_clauses_come_to_the_sums_unless_these_are_cut_off_which_is_said(case, runs) -> None:
    model = read_client(runs[case], 1)
    rows, _ = read_examples(runs[case], 1, "test")
    for row in range(4):
        found = explain_row(model, model.rules(), rows, row)
        for part in {voice.rule.part for voice in found.voices}:
            mine = [voice for voice in found.voices if voice.rule.part == part]
            heard = [sum(voice.adds_to(label) for voice in mine) for label in found.classes]
            is_cut = any(f"votes of {part} clauses go beyond" in note for note in found.notes)
            assert (heard == pytest.approx(found.sums[part], abs=1e-9)) != is_cut


@pytest.mark.parametrize("case", MACHINES)
def test_clauses_come_by_how_much_they_say(case, runs) -> None:
    model = read_client(runs[case], 0)
    found = explain_client(model, runs[case], row=0).row
    sizes = [max(abs(amount) for _, amount in voice.amounts) for voice in found.voices]
    assert sizes
    assert sizes == sorted(sizes, reverse=True)


def test_a_fuzzy_clause_may_speak_several_times(runs) -> None:
    found = explain_client(read_client(runs["fuzzy"], 0), runs["fuzzy"], row=0).row
    assert {1.0, 2.0, 3.0} >= {voice.speaks for voice in found.voices} > {1.0}


def test_a_test_row_of_a_run_has_its_class_beside_it(runs) -> None:
    model = read_client(runs["fedtm"], 1)
    _, labels = read_examples(runs["fedtm"], 1, "test")
    assert explain_client(model, runs["fedtm"], row=3).row.label == model.classes[labels[3]]


def test_the_nearest_target_is_the_one_of_least_distance(runs) -> None:
    model = read_client(runs["fedproto"], 1)
    found = explain_client(model, runs["fedproto"], row=0).row
    assert found.classes[int(np.argmin(found.sums["distance"]))] == found.predicted
    order = np.argsort(found.sums["distance"])
    assert (order == np.argsort(-np.array(found.scores))).all()


def test_chances_of_a_network_are_its_logits_softened(runs) -> None:
    found = explain_client(read_client(runs["fedavg"], 1), runs["fedavg"], row=0).row
    assert sum(found.sums["chance"]) == pytest.approx(1)
    assert found.sums["logit"] == pytest.approx(found.scores)


def test_only_a_run_knows_which_parameters_were_critical(runs, tmp_path: Path) -> None:
    import laconic

    model = read_client(runs["fedpurin"], 1)
    layers = explain_client(model, runs["fedpurin"]).layers
    known = [layer for layer in layers if layer.n_critical is not None]
    assert sum(layer.n_critical for layer in known) == np.count_nonzero(model.state.critical)
    (head,) = [layer for layer in known if layer.is_head and len(layer.shape) == 2]
    assert len(head.critical_rows) == len(model.classes)
    assert np.mean(head.critical_rows) == pytest.approx(head.share)
    model.save(tmp_path / "m.safetensors")
    elsewhere = explain_client(laconic.load(tmp_path / "m.safetensors"), tmp_path / "m.safetensors").layers
    assert {layer.n_critical for layer in elsewhere} == {None}


@pytest.mark.parametrize("case", ["fedtm", "fedavg"])
@pytest.mark.parametrize("row", [-1, 99])
def test_a_row_that_is_not_there_is_answered_with_those_that_are(row, case, runs) -> None:
    with pytest.raises(ValueError, match=rf"row {row} is not there; there are 0 to 11"):
        explain_client(read_client(runs[case], 0), runs[case], row=row)


@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_model_can_be_told_as_json(case, runs) -> None:
    import json

    found = explain_client(read_client(runs[case], 0), runs[case], row=0)
    again = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert again["about"]["client"] == 0
    assert again["row"]["predicted"] in again["about"]["classes"]
    assert bool(again["rules"]) == (case in MACHINES)
