"""Rules of clients' models: what they say is what the model does, in the user's words."""

import re
import shutil
from dataclasses import replace
from math import isnan
from pathlib import Path

import numpy as np
import pytest
from explained import MACHINES, NETWORKS

import laconic
from laconic.explain.parts import dissect
from laconic.explain.row import Voice, join_voices
from laconic.explain.rules import ModelRule, join_alike, list_rules
from laconic.explain.words import word_origin, word_spoken
from laconic.exporting import export_model
from laconic.runs import checkpoint
from laconic.runs.client_models import read_client, read_examples
from laconic.runs.config import read_config


def holds(literal: str, row: dict[str, float]) -> bool:
    """A literal as rules word it, on a row by the names of its columns."""
    if found := re.fullmatch(r"(\S+) < (\S+) <= (\S+)", literal):
        return float(found[1]) < row[found[2]] <= float(found[3])
    name, sign, threshold = literal.split(" ")
    return row[name] > float(threshold) if sign == ">" else row[name] <= float(threshold)


def test_a_rule_fires_where_its_words_hold_and_its_votes_make_the_score(cellar: Path) -> None:
    model = read_client(cellar, "cellar 1")
    rows, labels = read_examples(cellar, 1, "test")
    named = [dict(zip(model.about.features, row, strict=True)) for row in rows.tolist()]
    sums = np.zeros((len(rows), len(model.classes)))
    for rule in model.rules(rows, np.array(model.classes)[labels]):
        fires = np.array([all(holds(literal, row) for literal in rule.literals) for row in named])
        for label, vote in rule.votes:
            sums[fires, model.classes.index(label)] += vote
        assert rule.support == pytest.approx(fires.mean())
        of_class = np.array(model.classes)[labels[fires]] == rule.label
        right = of_class if rule.is_for else ~of_class
        assert rule.precision == pytest.approx(right.mean()) if fires.any() else isnan(rule.precision)
    assert (sums == model.scores(rows)).all()


def test_support_and_precision_are_over_the_clients_training_examples(cellar: Path) -> None:
    model = read_client(cellar, 2)
    rows, labels = read_examples(cellar, 2, "train")
    assert str(model.rules()) == str(model.rules(rows, np.array(model.classes)[labels]))


@pytest.mark.parametrize("case", MACHINES)
def test_a_file_knows_the_rules_that_its_run_knew_but_not_who_offered_them(case, runs, tmp_path: Path) -> None:
    model = read_client(runs[case], 2)
    model.save(tmp_path / "m.safetensors")
    elsewhere = laconic.load(tmp_path / "m.safetensors")
    assert list(map(str, elsewhere.rules())) == list(map(str, model.rules()))
    assert model.rules()
    assert {rule.offered_by for rule in elsewhere.rules()} == {None}


def test_counts_of_private_examples_can_be_left_out(runs, tmp_path: Path) -> None:
    model = read_client(runs["fedtm"], 2)
    model.save(tmp_path / "with.safetensors")
    model.save(tmp_path / "without.safetensors", evidence=False)
    without = laconic.load(tmp_path / "without.safetensors")
    assert without.evidence is None
    assert all(isnan(rule.support) and "support" not in str(rule) for rule in without.rules())
    cost = [(tmp_path / f"{name}.safetensors").stat().st_size for name in ("with", "without")]
    assert 0 < cost[0] - cost[1] < 1000


def test_evidence_of_a_model_of_digits_costs_less_than_two_kilobytes(tmp_path: Path) -> None:
    model = laconic.run("fedtm", data="digits", rounds=2, epochs=10, out=tmp_path / "run").client(7)
    model.save(tmp_path / "with.safetensors")
    model.save(tmp_path / "without.safetensors", evidence=False)
    cost = [(tmp_path / f"{name}.safetensors").stat().st_size for name in ("with", "without")]
    assert cost[0] <= 40_000
    assert cost[0] - cost[1] < 2000


def test_without_its_data_set_a_run_has_rules_without_support(runs, tmp_path: Path) -> None:
    shutil.copytree(runs["fedtm"], tmp_path / "run")
    config = tmp_path / "run" / "config.toml"
    config.write_text(re.sub(r'name = ".*made.npz"', 'name = "gone.npz"', config.read_text()))
    rules = read_client(tmp_path / "run", 0).rules()
    assert rules
    assert all(isnan(rule.support) for rule in rules)


def test_parts_of_a_model_are_named_and_told_apart(runs) -> None:
    parts = {case: {rule.part for rule in read_client(runs[case], 0).rules()} for case in MACHINES}
    assert parts["fedtm"] == {"clauses"}
    assert parts["cs-pfedtm"] == {"private", "shared"}
    assert parts["pooled-patches"] == {"private", "pooled"}
    assert parts["alone"] == {"private"}


def test_a_pooled_clause_says_of_each_class_what_the_head_does(runs) -> None:
    model = read_client(runs["clausepool"], 0)
    held = [name for name, holds in zip(model.classes, model.model.holds, strict=True) if holds]
    for rule in model.rules():
        assert {label for label, _ in rule.votes} <= set(held)
        if rule.part == "pooled":
            weights = dict(zip(held, model.model.pooled.head[:, 1 + rule.clause], strict=True))
            assert dict(rule.votes) == {label: weight for label, weight in weights.items() if weight}


def test_clauses_that_say_the_same_are_one_rule_with_all_their_votes() -> None:
    def say(clause: int, ill: float, *literals: str) -> ModelRule:
        votes = tuple((label, vote) for label, vote in (("ill", ill), ("well", -ill)) if vote)
        return ModelRule(0, clause, votes, literals, len(literals), "", 0.5, 0.9, "pooled", clause, 2 + clause)

    rules = [say(0, -2, "a"), say(1, -1.5, "b"), say(2, -1, "b"), say(3, 1, "b")]
    heavy, light, against = join_alike(rules)
    assert (heavy.votes, heavy.literals, [rule.clause for rule in heavy.alike]) == (
        (("ill", -2.5), ("well", 2.5)), ("b",), [2]
    )  # fmt: skip
    assert word_origin(heavy) == "pooled, 2 clauses, offered by clients 1, 2, held by 4 clients"
    assert (light, against) == (rules[0], rules[3])  # what speaks the other way is told apart
    voices = [Voice(rule, speaks, rule.votes) for rule, speaks in zip(rules, [1.0] * 4, strict=True)]
    assert [(v.rule.clause, dict(v.amounts)["ill"]) for v in join_voices(voices)] == [(1, -2.5), (0, -2), (3, 1)]
    assert len(join_voices([replace(voices[1], speaks=0.5), voices[2]])) == 2  # one speaks as far as the other does not
    assert word_spoken(join_voices(voices), None) == "4 clauses spoke"


def test_votes_of_rules_are_those_of_all_clauses(cellar: Path) -> None:
    model = read_client(cellar, "cellar 1")
    each = list_rules(model, None)
    joined = model.rules()
    assert len(joined) == len({(rule.label, rule.part, rule.condition, rule.is_for) for rule in each})
    assert sum(sum(dict(rule.votes).values()) for rule in joined) == sum(
        sum(dict(rule.votes).values()) for rule in each
    )


def test_a_run_knows_who_offered_a_clause_and_how_many_hold_it(runs) -> None:
    folder, model = runs["clausepool"], read_client(runs["clausepool"], 0)
    config = read_config(folder / "config.toml")
    pool = checkpoint.read_server(folder, config.method).pool
    states = [checkpoint.read_state(folder, config.method, client) for client in range(5)]
    slots = np.flatnonzero(states[0].slots)
    pooled = [rule for rule in model.rules() if rule.part == "pooled"]
    assert pooled
    for rule in pooled:
        slot = slots[rule.clause]
        assert rule.offered_by == pool.owners[slot]
        assert rule.n_holders == sum(len(state.clauses) > slot for state in states)


def test_clauses_of_images_are_worded_by_pixels_and_places(runs) -> None:
    text = "\n".join(map(str, read_client(runs["patches"], 0).rules()))
    assert re.search(r"(anywhere|rows \d-\d, columns \d-\d): (NOT )?pixel\([012],[012]\)", text)
    assert "pixel(7,7)" in "\n".join(map(str, read_client(runs["fedtm"], 0).rules()))


def test_a_fuzzy_clause_says_how_many_of_its_conditions_it_needs(runs) -> None:
    rules = read_client(runs["fuzzy"], 0).rules()
    assert any(re.match(r"at least \d of these \d+: ", rule.condition) for rule in rules)


def test_a_clause_under_a_head_fires_where_it_speaks_above_its_middle(runs) -> None:
    model = read_client(runs["pooled-patches"], 0)
    x = model.read(read_examples(runs["pooled-patches"], 0, "train")[0])
    for part in dissect(model.model).parts:
        speaks, fires = part.speaks(x), part.fires(x)
        assert (speaks[~fires] <= 0).all()
        assert ((speaks > 0) <= fires).all()
    assert any("on at least" in rule.place for rule in model.rules())


@pytest.mark.parametrize("case", NETWORKS)
def test_a_network_is_said_to_have_no_rules(case, runs) -> None:
    with pytest.raises(ValueError, match=r"has no rules: a neural network .* --row N"):
        read_client(runs[case], 0).rules()


def test_rules_of_a_model_without_clauses_are_not_written(runs, tmp_path) -> None:
    with pytest.raises(ValueError, match=r"no clauses, so there are no rules and nothing was written"):
        export_model(read_client(runs["seedhead"], 0), "rules", tmp_path / "rules.txt")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("labels", "due"),
    [(["0", "1"], "18 rows came with 2 labels"), (["plum"] * 18, r"labels hold 'plum'; the classes are 0, 1, 2, 3")],
)
def test_labels_that_do_not_fit_are_refused(labels, due, runs) -> None:
    with pytest.raises(ValueError, match=due):
        read_client(runs["fedtm"], 0).rules(np.zeros((18, 8, 8)), labels)
