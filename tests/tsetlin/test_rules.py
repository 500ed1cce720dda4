"""Claims about rules read from machines whose clauses are set by hand."""

from math import isnan

import numpy as np

from laconic.tsetlin import Machine, Shape, build, build_coalesced, load_include_bits
from laconic.tsetlin.booleanize import Bit
from laconic.tsetlin.rules import Evidence, Flag, Rule, read_rules, votes_by_class

PETAL = [Bit("petal length", t) for t in (1.5, 2.45, 4.9)] + [Bit("petal width", t) for t in (0.8, 1.75)]


def set_clauses(machine: Machine, clauses: dict[tuple[int, int], list[int]]) -> Machine:
    """clauses: (bank, clause) -> included literals; a negated feature is literal ~feature."""
    bits = np.zeros((*machine.states.shape[:2], machine.shape.n_literals), np.bool_)
    for place, literals in clauses.items():
        for literal in literals:
            bits[(*place, literal if literal >= 0 else machine.shape.n_features + ~literal)] = True
    load_include_bits(machine, bits)
    return machine


def read(machine: Machine, bits: list[Bit], labels: tuple[str, ...] = ("setosa", "versicolor")) -> list[Rule]:
    """As if each clause had fired on one of four examples of the first class, and on three of four of the second."""
    outputs = np.tile(np.array([1, 0, 0, 0, 1, 1, 1, 0], np.bool_)[:, None, None], (1, *machine.states.shape[:2]))
    return read_rules(machine, labels, bits, Evidence.count(outputs, np.repeat([0, 1], 4), votes_by_class(machine)))


def texts(machine: Machine, bits: list[Bit]) -> list[str]:
    return [str(rule) for rule in read(machine, bits)]


def test_nested_thresholds_merge_into_one_interval_per_feature():
    machine = set_clauses(build(Shape.flat(5), 2, 2), {(1, 0): [0, 1, ~2, ~4]})
    machine.weights[1, 0] = 12
    assert texts(machine, PETAL) == [
        "IF 2.45 < petal length <= 4.9 AND petal width <= 1.75 THEN versicolor "
        "(weight 12, support 0.50, precision 0.75)"
    ]


def test_odd_clauses_speak_against_their_class():
    machine = set_clauses(build(Shape.flat(5), 2, 2), {(1, 1): [3]})
    (rule,) = read(machine, PETAL)
    assert str(rule) == "IF petal width > 0.8 THEN NOT versicolor (weight 1, support 0.50, precision 0.25)"
    assert (rule.label, rule.is_for, rule.weight, rule.bank, rule.clause) == ("versicolor", False, 1, 1, 1)


def test_features_without_thresholds_are_named_or_negated():
    machine = set_clauses(build(Shape.flat(3), 2, 2), {(0, 0): [0, ~2]})
    (rule,) = read(machine, [Flag("red"), Flag("round"), Flag("sweet")])
    assert rule.literals == ("red", "NOT sweet")


def test_empty_contradictory_and_voteless_clauses_are_left_out():
    clauses = {(0, 1): [2, ~1], (0, 2): [0, ~0], (0, 3): [1], (1, 0): [1]}
    machine = set_clauses(build(Shape.flat(5), 2, 4), clauses)
    machine.weights[1, 0] = 0
    assert [(rule.bank, rule.clause) for rule in read(machine, PETAL)] == [(0, 3)]


def test_rules_come_by_class_and_heaviest_first():
    machine = set_clauses(build(Shape.flat(5), 2, 2), {(b, c): [0] for b in (0, 1) for c in (0, 1)})
    machine.weights[:] = [[2, 7], [9, 1]]
    rules = [(rule.label, rule.weight) for rule in read(machine, PETAL)]
    assert rules == [("setosa", 7), ("setosa", 2), ("versicolor", 9), ("versicolor", 1)]


def test_a_coalesced_clause_lists_its_votes_strongest_first():
    machine = build_coalesced(Shape.flat(5), 2, 2, np.random.default_rng(0))
    set_clauses(machine, {(0, 0): [3], (0, 1): [~3]})
    machine.weights[:] = [[-3, 5], [12, 0]]
    assert texts(machine, PETAL) == [
        "IF petal width <= 0.8 THEN setosa (weight 5, support 0.50, precision 0.25)",
        "IF petal width > 0.8 THEN versicolor +12, setosa -3 (support 0.50, precision 0.75)",
    ]


def test_a_rule_that_never_fires_has_no_precision():
    machine = set_clauses(build(Shape.flat(5), 2, 2), {(0, 0): [3]})
    never = np.zeros((2, 2), np.int64)
    (rule,) = read_rules(machine, ["a", "b"], PETAL, Evidence(never, never, 8))
    assert rule.support == 0
    assert isnan(rule.precision)


def test_without_evidence_a_rule_claims_none():
    machine = set_clauses(build(Shape.flat(5), 2, 2), {(0, 0): [3]})
    assert str(*read_rules(machine, ["a", "b"], PETAL, None)) == "IF petal width > 0.8 THEN a (weight 1)"


def test_votes_may_come_from_elsewhere_and_speak_of_several_classes():
    machine = set_clauses(build(Shape.flat(5), 1, 2), {(0, 0): [3], (0, 1): [~3]})
    votes = np.array([[[0.5, -1.25, 0], [0, 0, 0]]])
    (rule,) = read_rules(machine, ["a", "b", "c"], PETAL, None, votes=votes)
    assert str(rule) == "IF petal width > 0.8 THEN b -1.25, a +0.5"


def test_a_convolutional_rule_names_the_rows_and_columns_its_patch_may_cover():
    shape = Shape.image(5, 6, patch=(2, 3))  # 4 × 4 patch positions
    bits = [Bit(f"pixel({row},{column})", 75) for row in range(2) for column in range(3)]
    row_above, column_above = shape.n_pixels, shape.n_pixels + shape.n_rows - 1
    clauses = {
        (0, 0): [1, ~3, row_above, row_above + 1, ~(column_above + 1)],
        (0, 1): [0],
        (1, 0): [0, row_above + 1, ~(row_above + 1)],
        (1, 1): [~(row_above + 2)],
    }
    machine = set_clauses(build(shape, 2, 2), clauses)
    machine.weights[0, 0] = 2
    assert [text.split(" THEN")[0] for text in texts(machine, bits)] == [
        "IF somewhere in rows 2-4, columns 0-3: pixel(0,1) > 75 AND pixel(1,0) <= 75",
        "IF anywhere: pixel(0,0) > 75",
        "IF somewhere in rows 0-3, columns 0-5: anything",
    ]


def test_evidence_counts_how_often_a_clause_fired_and_was_right():
    outputs = np.array([[[1, 0]], [[1, 1]], [[0, 1]]], np.bool_)
    votes = np.array([[[0, 3, -5], [1, 0, 2]]])  # the first speaks against the last class, the second for it
    evidence = Evidence.count(outputs, np.array([0, 2, 2]), votes)
    assert evidence.fired.tolist() == [[2, 2]]
    assert evidence.right.tolist() == [[1, 2]]
    assert evidence.n_examples == 3
