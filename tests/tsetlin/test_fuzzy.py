"""Claims about machines whose clauses bear failing literals."""

import numpy as np
import pytest

from laconic.explain.parts import dissect
from laconic.models.machines import Ballot
from laconic.tsetlin import (
    Fuzzy,
    Machine,
    Shape,
    build,
    build_coalesced,
    class_sums,
    clause_activity,
    clause_counts,
    clause_outputs,
    clause_votes,
    fit,
    include_bits,
    load,
    load_include_bits,
    save,
)
from laconic.tsetlin.booleanize import Bit
from laconic.tsetlin.picture import match_map, wanted_values
from laconic.tsetlin.rules import Evidence, Flag, read_rules, votes_by_class


def set_clause(machine: Machine, literals: list[int], place: tuple[int, int] = (0, 0)) -> Machine:
    """A negated feature is literal ~feature; all other clauses are empty."""
    bits = np.zeros((*machine.states.shape[:2], machine.shape.n_literals), np.bool_)
    for literal in literals:
        bits[(*place, literal if literal >= 0 else machine.shape.n_features + ~literal)] = True
    load_include_bits(machine, bits)
    return machine


def blots(n_samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Three classes of 40 bits, each with ten bits of its own that are mostly set."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n_samples)
    chances = np.full((3, 40), 0.2)
    for label in range(3):
        chances[label, 10 * label : 10 * label + 10] = 0.7
    return rng.random((n_samples, 40)) < chances[y], y


def test_a_clause_votes_by_how_many_of_its_literals_fail():
    machine = set_clause(build(Shape.flat(6), 2, 2, fuzzy=Fuzzy(failures=3, literals=9)), [0, 1, 2, 3, ~5])
    x = np.array([[1, 1, 1, 1, 0, 0], [0, 1, 1, 1, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 0, 1]])
    assert clause_votes(machine, x)[:, 0, 0].tolist() == [3, 2, 1, 0, 0]
    assert clause_outputs(machine, x)[:, 0, 0].tolist() == [True, True, True, False, False]
    machine.weights[0, 0] = 7
    assert class_sums(machine, x)[:, 0].tolist() == [21, 14, 7, 0, 0]


def test_a_clause_of_fewer_literals_than_it_bears_failures_votes_no_more_than_it_has():
    machine = set_clause(build(Shape.flat(3), 2, 2, fuzzy=Fuzzy(failures=20, literals=9)), [0, 1])
    assert clause_votes(machine, np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0]]))[:, 0, 0].tolist() == [2, 1, 0]


def test_an_empty_clause_is_silent():
    machine = build(Shape.flat(3), 2, 2, fuzzy=Fuzzy(failures=20, literals=9))
    assert not clause_votes(machine, np.eye(3, dtype=bool)).any()


def test_with_one_failure_clauses_fire_as_classic_ones_do():
    rng = np.random.default_rng(0)
    for shape in (Shape.flat(30), Shape.image(6, 7, 2, patch=(3, 2))):
        machines = [build(shape, 3, 20, fuzzy=fuzzy) for fuzzy in (None, Fuzzy(failures=1, literals=9))]
        bits = rng.random((3, 20, shape.n_literals)) < 0.05
        for machine in machines:
            load_include_bits(machine, bits)
        x = rng.random((50, shape.height, shape.width, shape.layers)) < 0.5
        for ask in (class_sums, clause_outputs, clause_votes, clause_counts):
            np.testing.assert_array_equal(ask(machines[0], x), ask(machines[1], x))


def test_the_best_patch_votes_and_counts_are_of_patches_that_vote():
    machine = set_clause(build(Shape.image(1, 5, patch=(1, 2)), 2, 2, fuzzy=Fuzzy(failures=2, literals=9)), [0, 1])
    x = np.array([[[1, 1, 0, 1, 0]], [[0, 0, 0, 1, 0]], [[0, 0, 0, 0, 0]]])
    assert clause_votes(machine, x)[:, 0, 0].tolist() == [2, 1, 0]
    assert clause_counts(machine, x)[:, 0, 0].tolist() == [4, 2, 0]


def test_a_position_that_fails_costs_one_vote():
    """Patch column > 0: features are one pixel, then three columns."""
    machine = set_clause(build(Shape.image(1, 4, patch=(1, 1)), 2, 2, fuzzy=Fuzzy(failures=2, literals=9)), [0, 1])
    x = np.array([[[1, 0, 0, 0]], [[0, 1, 0, 0]]])
    assert clause_votes(machine, x)[:, 0, 0].tolist() == [1, 2]


def test_clauses_stop_to_grow_at_their_budget():
    x, y = blots(600, 0)
    sizes = []
    for literals in (4, 8, 30):
        machine = build(Shape.flat(40), 3, 10, threshold=60, specificity=20.0, fuzzy=Fuzzy(3, literals))
        fit(machine, x, y, np.random.default_rng(0), epochs=20)
        sizes.append(include_bits(machine).sum(axis=2).mean())
    assert sizes[0] < sizes[1] < sizes[2]
    assert sizes[0] < 12


@pytest.mark.parametrize("coalesced", [False, True])
@pytest.mark.parametrize("balanced", [False, True])
def test_few_fuzzy_clauses_learn_what_as_few_classic_ones_do_not(coalesced, balanced):
    (x, y), (x_test, y_test) = blots(1500, 0), blots(1000, 1)
    scores = []
    for fuzzy, threshold in ((None, 10), (Fuzzy(failures=8, literals=16), 200)):
        rng, settings = np.random.default_rng(0), {"threshold": threshold, "balanced": balanced, "fuzzy": fuzzy}
        machine = (
            build_coalesced(Shape.flat(40), 3, 6, rng, **settings)
            if coalesced
            else build(Shape.flat(40), 3, 2, **settings)
        )
        fit(machine, x, y, rng, epochs=20)
        scores.append((class_sums(machine, x_test).argmax(axis=1) == y_test).mean())
    assert scores[1] > scores[0] + 0.02
    assert scores[1] > 0.85


def test_threads_do_not_change_a_fuzzy_machine():
    rng = np.random.default_rng(2)
    shape = Shape.image(9, 9, patch=(4, 4))
    x, y = rng.random((150, 9, 9)) < 0.5, rng.integers(0, 3, 150)
    machines = [build(shape, 3, 20, threshold=30, fuzzy=Fuzzy(4, 9)) for _ in range(2)]
    for machine, threads in zip(machines, (1, 3), strict=True):
        fit(machine, x, y, np.random.default_rng(0), epochs=3, threads=threads)
    np.testing.assert_array_equal(machines[0].states, machines[1].states)
    np.testing.assert_array_equal(class_sums(machines[0], x), class_sums(machines[0], x, threads=3))


def test_a_saved_fuzzy_machine_votes_and_learns_on_as_before(tmp_path):
    x, y = blots(200, 3)
    machine = build(Shape.flat(40), 3, 10, threshold=30, fuzzy=Fuzzy(failures=4, literals=9))
    fit(machine, x, y, np.random.default_rng(0), epochs=2)
    save(machine, tmp_path / "machine")
    copy = load(tmp_path / "machine")
    assert copy.fuzzy == machine.fuzzy
    np.testing.assert_array_equal(class_sums(copy, x), class_sums(machine, x))
    for one in (machine, copy):
        fit(one, x, y, np.random.default_rng(0))
    np.testing.assert_array_equal(copy.states, machine.states)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ((0, 5), "failures is 0"),
        ((5, 1.5), "literals is 1.5"),
        ((5, True), "literals is True"),
        ((1 << 16, 5), "65536"),
    ],
)
def test_limits_that_make_no_sense_are_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        Fuzzy(*wrong)


def test_anything_but_limits_is_refused():
    with pytest.raises(ValueError, match=r"fuzzy is \(3, 5\); give Fuzzy\(failures, literals\)"):
        build(Shape.flat(3), 2, 2, fuzzy=(3, 5))


# ---------------------------------------------------------------- read by people
def read(machine: Machine, bits: list[Bit]) -> list[str]:
    """On eight examples every clause fires on one of the first class and three of the second."""
    outputs = np.zeros((8, *machine.states.shape[:2]), np.bool_)
    outputs[3:7] = True
    evidence = Evidence.count(outputs, np.repeat([0, 1], 4), votes_by_class(machine))
    return [str(rule) for rule in read_rules(machine, ("no", "yes"), bits, evidence)]


FRUIT = [Flag("red"), Flag("round"), Flag("sweet"), Flag("large")]


def test_a_rule_says_how_many_literals_must_hold():
    machine = set_clause(build(Shape.flat(4), 2, 2, fuzzy=Fuzzy(failures=2, literals=9)), [0, 2, ~3], (1, 0))
    machine.weights[1, 0] = 5
    assert read(machine, FRUIT) == [
        "IF at least 2 of these 3: red, sweet, NOT large THEN yes "
        "(weight 5, again for each beyond 2, support 0.50, precision 0.75)"
    ]


def test_a_rule_that_bears_no_failure_reads_as_a_classic_one():
    machine = set_clause(build(Shape.flat(4), 2, 2, fuzzy=Fuzzy(failures=1, literals=9)), [0, 2], (1, 0))
    assert read(machine, FRUIT) == ["IF red AND sweet THEN yes (weight 1, support 0.50, precision 0.75)"]


def test_a_literal_and_its_negation_are_left_out_and_one_failure_less_is_borne():
    machine = set_clause(build(Shape.flat(4), 2, 2, fuzzy=Fuzzy(failures=3, literals=9)), [0, 1, 2, 3, ~3], (1, 0))
    assert read(machine, FRUIT)[0].startswith("IF at least 2 of these 3: red, round, sweet THEN")
    for failures in (1, 2):
        machine.fuzzy = Fuzzy(failures, literals=9)
        assert len(read(machine, FRUIT)) == failures - 1  # with one, nothing can make it fire


def test_a_rule_of_an_image_names_where_the_patch_should_lie():
    shape = Shape.image(3, 3, patch=(2, 2))
    machine = set_clause(build(shape, 2, 2, fuzzy=Fuzzy(failures=2, literals=9)), [0, 4, ~5], (1, 0))
    names = [Flag(f"pixel({row},{column})") for row, column in np.ndindex(2, 2)]
    assert read(machine, names)[0].startswith(
        "IF on some patch: at least 2 of these 3: pixel(0,0), patch row > 0, patch column <= 0 THEN yes"
    )


def test_a_picture_shows_what_a_clause_wants_even_if_it_cannot_have_it_all():
    shape = Shape.image(3, 3, patch=(2, 2))
    machine = set_clause(build(shape, 1, 2, fuzzy=Fuzzy(failures=2, literals=9)), [0, ~0, 4, ~4, ~5])
    assert wanted_values(machine, 0, 0)[0, 0] == [0.5]
    covered = match_map(machine, 0, 0)
    assert covered[:, :2].all()  # either row is as good, the first column is better
    assert not covered[:, 2].any()


def test_activity_and_include_bits_are_as_of_classic_machines():
    machine = set_clause(build(Shape.flat(4), 2, 2, fuzzy=Fuzzy(failures=2, literals=9)), [0, 2, ~3], (1, 0))
    assert clause_activity(machine).tolist() == [[False, False], [True, False]]
    assert include_bits(machine)[1, 0].tolist() == [True, False, True, False, False, False, False, True]


def test_what_an_explanation_hears_of_each_clause_adds_up_to_the_class_sums():
    x, y = blots(100, 4)
    machine = build(Shape.flat(40), 3, 10, threshold=60, fuzzy=Fuzzy(failures=4, literals=9))
    fit(machine, x, y, np.random.default_rng(0), epochs=5)
    anatomy = dissect(Ballot(machine))
    assert anatomy is not None
    (part,) = anatomy.parts
    heard = np.einsum("nbk,bkc->nc", part.speaks(x.astype(np.uint8)), part.votes)
    np.testing.assert_array_equal(heard, class_sums(machine, x))
