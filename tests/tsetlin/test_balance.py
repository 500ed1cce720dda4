"""Balanced machines: rivals, bias, turns."""

import numpy as np
import pytest

from laconic.tsetlin import Shape, build, build_coalesced, class_sums, fit, load, save
from laconic.tsetlin.balance import VotesSeen, choose_bias, draw_rivals, order_by_class, remember, start_rivalry

NAN = np.nan


def ints(*numbers):
    return np.array(numbers, np.int32)


def test_rivalry_is_the_mean_of_clamped_votes_and_keeps_what_did_not_meet_again():
    rivalry = start_rivalry(2)
    remember(rivalry, 10, VotesSeen(ints(0, 0, 1), ints(0, 1, 1), ints(4, -30, 7)))
    remember(rivalry, 10, VotesSeen(ints(0, 0, 1), ints(0, 0, 0), ints(6, 99, -2)))
    np.testing.assert_array_equal(rivalry, [[8, -10], [-2, 7]])


def test_bias_puts_the_middle_between_own_and_other_votes_at_zero():
    rivalry = np.array([[100.0, -40, NAN], [20, 60, -80], [40, -20, NAN]])
    # class 0: own 100, others (20 + 40) / 2 = 30; class 1: 60 and -30; class 2 never met its own samples
    np.testing.assert_array_equal(choose_bias(rivalry), [-65, -15, 0])


def test_rivals_are_drawn_by_their_chance_of_feedback_and_one_in_four_evenly():
    # label 0, T = 100: chances of classes 1, 2, 3 are 0, 1/4 and 3/4
    rivalry = np.array([[90.0, -100, -50, 50], *[[NAN] * 4] * 3])
    labels = np.zeros(200_000, np.int32)
    drawn = draw_rivals(rivalry, 100, labels, ints(0, 1, 2, 3), np.random.default_rng(0))
    shares = np.bincount(drawn, minlength=4) / len(drawn)
    np.testing.assert_allclose(shares, [0, 1 / 12, 1 / 12 + 3 / 16, 1 / 12 + 9 / 16], atol=0.004)


def test_rivals_nobody_has_met_are_drawn_evenly_and_from_the_set_alone():
    labels = np.repeat(ints(1, 4), 50_000)
    drawn = draw_rivals(start_rivalry(5), 7, labels, ints(1, 3, 4), np.random.default_rng(0))
    for label, others in ((1, [3, 4]), (4, [1, 3])):
        classes, counts = np.unique(drawn[labels == label], return_counts=True)
        assert classes.tolist() == others
        np.testing.assert_allclose(counts / 50_000, 0.5, atol=0.01)


def test_every_class_ends_an_epoch_in_turns_and_a_lower_comes_last():
    rng = np.random.default_rng(0)
    raised = rng.integers(0, 3, 200)
    lowered = (raised + rng.integers(1, 3, 200)) % 3
    classes = np.stack([raised, lowered], axis=1).ravel().astype(np.int16)
    place = order_by_class(classes, 3)
    assert sorted(place) == list(range(400))
    assert (np.diff(classes[place]) >= 0).all()
    for k in range(3):
        mine = place[classes[place] == k]
        assert (mine[-32:] % 2).tolist() == [0, 1] * 16
        assert (np.diff(mine[:-32]) > 0).all()  # all others in the order they came
        assert (np.diff(mine[-32::2]) > 0).all()


def test_a_class_that_is_only_lowered_keeps_its_order():
    classes = np.array([0, 1, 0, 1, 0, 2], np.int16)
    assert order_by_class(classes, 4).tolist() == [0, 2, 4, 1, 3, 5]


def clouds(n_samples, rng):
    """Three classes of which the first two are much alike."""
    y = rng.integers(0, 3, n_samples)
    chances = np.full((3, 40), 0.3)
    chances[0, :20] = chances[1, 2:22] = 0.8
    chances[2, 20:] = 0.8
    return rng.random((n_samples, 40)) < chances[y], y


@pytest.mark.parametrize("coalesced", [False, True])
def test_those_mistaken_for_each_other_meet_more_often(coalesced):
    rng = np.random.default_rng(0)
    x, y = clouds(600, rng)
    settings = {"threshold": 30, "balanced": True}
    machine = (
        build_coalesced(Shape.flat(40), 3, 60, rng, **settings)
        if coalesced
        else build(Shape.flat(40), 3, 20, **settings)
    )
    for _ in range(5):
        fit(machine, x, y, rng)
    assert machine.rivalry[0, 1] > machine.rivalry[0, 2]
    drawn = draw_rivals(machine.rivalry, 30, np.zeros(10_000, np.int32), ints(0, 1, 2), rng)
    assert np.mean(drawn == 1) > 0.55


def test_a_class_that_votes_too_readily_is_held_back():
    rng = np.random.default_rng(1)
    x, y = clouds(300, rng)
    machine = build(Shape.flat(40), 3, 20, threshold=1000, balanced=True)
    fit(machine, x, y, rng)
    bare = class_sums(machine, x) - choose_bias(machine.rivalry)
    machine.rivalry[:, 2] += 500
    np.testing.assert_array_equal(class_sums(machine, x) - bare, np.tile(choose_bias(machine.rivalry), (300, 1)))
    assert (class_sums(machine, x).argmax(axis=1) != 2).all()


@pytest.mark.parametrize("n_samples", [0, 1])
def test_a_balanced_machine_learns_from_next_to_nothing(n_samples):
    machine = build(Shape.flat(5), 3, 4, balanced=True)
    fit(machine, np.ones((n_samples, 5), bool), np.full(n_samples, 2), np.random.default_rng(0), epochs=2)
    assert class_sums(machine, np.ones((1, 5), bool)).shape == (1, 3)


def test_threads_do_not_change_a_balanced_machine():
    rng = np.random.default_rng(2)
    x, y = clouds(200, rng)
    machines = [build(Shape.flat(40), 3, 20, threshold=30, balanced=True) for _ in range(2)]
    for machine, threads in zip(machines, (1, 3), strict=True):
        fit(machine, x, y, np.random.default_rng(0), epochs=3, threads=threads)
    np.testing.assert_array_equal(machines[0].rivalry, machines[1].rivalry)
    np.testing.assert_array_equal(machines[0].states, machines[1].states)


@pytest.mark.parametrize("coalesced", [False, True])
def test_whoever_watches_the_epochs_changes_nothing(coalesced):
    rng = np.random.default_rng(4)
    x, y = clouds(500, rng)
    sizes = (Shape.flat(40), 3, 30)
    machines = [
        build_coalesced(*sizes, np.random.default_rng(0), threshold=30, balanced=True)
        if coalesced
        else build(*sizes, threshold=30, balanced=True)
        for _ in range(2)
    ]
    heard = []
    fit(machines[0], x, y, np.random.default_rng(0), epochs=7)
    fit(machines[1], x, y, np.random.default_rng(0), epochs=7, on_epoch=heard.append)
    assert heard == list(range(1, 8))
    np.testing.assert_array_equal(machines[0].rivalry, machines[1].rivalry)
    np.testing.assert_array_equal(machines[0].states, machines[1].states)


def test_a_saved_balanced_machine_votes_and_learns_on_as_before(tmp_path):
    rng = np.random.default_rng(3)
    x, y = clouds(200, rng)
    machine = build(Shape.flat(40), 3, 20, threshold=30, balanced=True)
    fit(machine, x, y, rng, epochs=2)
    save(machine, tmp_path / "machine")
    copy = load(tmp_path / "machine")
    np.testing.assert_array_equal(class_sums(copy, x), class_sums(machine, x))
    for one in (machine, copy):
        fit(one, x, y, np.random.default_rng(0))
    np.testing.assert_array_equal(copy.states, machine.states)
    machine.rivalry = machine.rivalry[:2]
    save(machine, tmp_path / "damaged")
    with pytest.raises(ValueError, match=r"rivalry is float64 \[2, 3\]"):
        load(tmp_path / "damaged")
