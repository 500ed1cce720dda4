"""What a machine promises its users."""

import contextlib
import threading

import numpy as np
import pytest

from laconic.tsetlin import (
    Clauses,
    Shape,
    build,
    build_coalesced,
    choose_clauses,
    class_sums,
    clause_activity,
    clause_outputs,
    fit,
    include_bits,
    literal_states,
    load,
    load_include_bits,
    measure_machine,
    pack,
    read_clauses,
    read_machine,
    save,
)
from laconic.tsetlin.clauses import as_levels, measure_scales, scale_levels
from laconic.tsetlin.geometry import geometry

IMAGES = Shape.image(12, 14, patch=(4, 4))


def bright_halves(n_samples, rng):
    """Class 0 is bright on top, class 1 below, class 2 nowhere."""
    y = rng.integers(0, 3, n_samples)
    chance = np.full((n_samples, 12, 14), 0.1)
    chance[y == 0, :6] = chance[y == 1, 6:] = 0.8
    return (rng.random(chance.shape) < chance).astype(np.uint8), y


def trained(rng, *, coalesced=False, **options):
    x, y = bright_halves(200, rng)
    machine = build_coalesced(IMAGES, 3, 30, rng, threshold=50) if coalesced else build(IMAGES, 3, 20, threshold=50)
    fit(machine, x, y, np.random.default_rng(0), **options)
    return machine


@pytest.mark.parametrize("coalesced", [False, True])
def test_learns_a_plain_concept(coalesced):
    machine = trained(np.random.default_rng(0), coalesced=coalesced, epochs=10)
    x, y = bright_halves(300, np.random.default_rng(1))
    assert (class_sums(machine, x).argmax(axis=1) == y).mean() > 0.95


@pytest.mark.parametrize("coalesced", [False, True])
def test_threads_and_callbacks_change_nothing(coalesced):
    plain = trained(np.random.default_rng(0), coalesced=coalesced, epochs=6)
    heard = []
    watched = trained(np.random.default_rng(0), coalesced=coalesced, epochs=6, threads=3, on_epoch=heard.append)
    assert heard == [1, 2, 3, 4, 5, 6]
    np.testing.assert_array_equal(plain.states, watched.states)
    np.testing.assert_array_equal(plain.weights, watched.weights)
    x, _ = bright_halves(150, np.random.default_rng(2))
    np.testing.assert_array_equal(class_sums(plain, x), class_sums(plain, x, threads=3))
    np.testing.assert_array_equal(clause_outputs(plain, x), clause_outputs(plain, x, threads=3))


def test_packed_samples_give_the_same_result_and_serve_many_machines():
    x, y = bright_halves(100, np.random.default_rng(0))
    packed = pack(IMAGES, x)
    raw, twice = build(IMAGES, 3, 10), build(IMAGES, 3, 10)
    fit(raw, x, y, np.random.default_rng(1), epochs=2)
    fit(twice, packed, y, np.random.default_rng(1), epochs=2)
    np.testing.assert_array_equal(raw.states, twice.states)
    np.testing.assert_array_equal(class_sums(raw, packed), class_sums(raw, x))


def test_machines_of_one_shape_share_their_tables():
    assert geometry(Shape.image(28, 28, patch=(5, 5))) is geometry(Shape.image(28, 28, patch=(5, 5)))


def test_kernels_run_side_by_side_with_python():
    """While a kernel trains, this thread goes on counting: the GIL is released."""
    x, y = bright_halves(4000, np.random.default_rng(0))
    packed, machine = pack(IMAGES, x), build(IMAGES, 3, 200)
    fit(machine, packed, y, np.random.default_rng(0))
    worker = threading.Thread(target=lambda: fit(machine, packed, y, np.random.default_rng(0), epochs=20))
    count = 0
    worker.start()
    while worker.is_alive():
        count += 1
    assert count > 1000


def test_classes_absent_from_the_data_learn_only_what_speaks_against_them():
    x, y = bright_halves(100, np.random.default_rng(0))
    machine = build(IMAGES, 5, 10)
    fit(machine, x, y, np.random.default_rng(0), epochs=3)
    assert clause_activity(machine)[3:].any()
    assert class_sums(machine, x)[:, 3:].max() <= 0


def test_classes_left_out_of_the_negatives_stay_untrained_and_all_classes_are_the_default():
    x, y = bright_halves(100, np.random.default_rng(0))
    some, default, every = (build(IMAGES, 5, 10) for _ in range(3))
    fit(some, x, y, np.random.default_rng(0), epochs=3, negatives=np.unique(y))
    assert not clause_activity(some)[3:].any()
    assert clause_activity(some)[:3].any()
    fit(default, x, y, np.random.default_rng(0))
    fit(every, x, y, np.random.default_rng(0), negatives=range(5))
    assert np.array_equal(default.states, every.states)


def test_clauses_say_the_same_in_and_out_of_their_machine():
    x, y = bright_halves(50, np.random.default_rng(0))
    machine = build(IMAGES, 3, 10)
    fit(machine, x, y, np.random.default_rng(0), epochs=3)
    scales = measure_machine(machine, x, y)
    alone = read_clauses(IMAGES, Clauses(include_bits(machine)[1], scales[10:20]), x)
    assert np.array_equal(alone, read_machine(machine, scales, x)[:, 10:20])
    assert read_clauses(IMAGES, Clauses(include_bits(machine)[1, :0], scales[:0]), x).shape == (50, 0)


def test_a_clause_speaks_in_levels_around_the_middle_between_its_class_and_the_others():
    counts = np.array([[0, 3], [1, 3], [3, 3], [15, 3]], np.int32)
    levels = as_levels(counts)
    assert levels.tolist() == [[0, 8], [4, 8], [8, 8], [16, 8]]  # four for each doubling of one more than the count
    scales = measure_scales(levels, np.array([False, False, True, True]))
    # means 2 and 12, so 7 in the middle; levels lie 6 from it, twice that is nearest to 2^3 or 2^4
    assert scales.tolist() == [[7, 4], [8, 0]]
    assert scale_levels(levels, scales).tolist() == [[-7 / 16, 0], [-3 / 16, 0], [1 / 16, 0], [9 / 16, 0]]
    assert scale_levels(np.array([[127, 0]], np.int8), scales).tolist() == [[1, -1]]
    assert measure_scales(levels, np.ones(4, bool)).tolist() == [[7, 4], [8, 0]]  # a client of one class


def test_the_first_clause_chosen_has_the_widest_gap_between_its_rates_on_a_class_and_on_the_others():
    labels = np.array([0, 0, 0, 0, 1, 1, 2])
    fired = np.array([[1, 1, 1], [1, 0, 1], [1, 0, 1], [0, 0, 1], [1, 1, 1], [0, 1, 1], [0, 1, 1]]) - 0.5
    # 3/4 against (1/2 + 0) / 2 gives 1/2, 1/4 against 1 gives 3/4, and one that always fires says nothing
    assert choose_clauses(fired, labels, 0, 1).tolist() == [1]
    assert sorted(choose_clauses(fired, labels, 0, 5)) == [0, 1, 2]


def test_later_clauses_are_chosen_for_what_the_earlier_ones_miss():
    labels = np.repeat([0, 1], 4)
    # 0 covers three of class 0; 1 is its copy; 2 covers but two, one of them the missing one
    fired = np.array([[1, 1, 1, 0, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0, 0, 0]]).T
    assert choose_clauses(2.0 * fired - 1, labels, 0, 2).tolist() == [0, 2]


def test_no_samples_and_no_epochs_leave_the_machine_alone():
    machine = build(IMAGES, 3, 10)
    fit(machine, np.zeros((0, 12, 14), np.uint8), np.zeros(0, int), np.random.default_rng(0), epochs=3)
    x, y = bright_halves(10, np.random.default_rng(0))
    fit(machine, x, y, np.random.default_rng(0), epochs=0)
    assert (literal_states(machine) == 127).all()
    assert (machine.weights == 1).all()
    assert class_sums(machine, np.zeros((0, 12, 14), np.uint8)).shape == (0, 3)


def test_empty_clauses_are_silent_and_activity_says_so():
    machine = build(Shape.flat(5), 2, 4)
    assert not clause_activity(machine).any()
    assert not clause_outputs(machine, np.ones((3, 5), int)).any()
    bits = np.zeros((2, 4, 10), bool)
    bits[1, 2, [0, 6]] = True  # x0 and not x1
    load_include_bits(machine, bits)
    assert clause_activity(machine).sum() == 1
    assert clause_outputs(machine, np.array([[1, 0, 0, 0, 0], [1, 1, 0, 0, 0]]))[:, 1, 2].tolist() == [True, False]


def test_odd_clauses_vote_against_their_class():
    machine = build(Shape.flat(1), 1, 3)
    load_include_bits(machine, np.array([[[True, False]] * 3]))
    machine.weights[0] = [5, 7, 1]
    assert class_sums(machine, np.array([[1], [0]])).tolist() == [[-1], [0]]


def test_include_bits_come_back_as_they_were_sent():
    machine = trained(np.random.default_rng(0), epochs=3)
    copy = build(IMAGES, 3, 20)
    load_include_bits(copy, include_bits(machine))
    np.testing.assert_array_equal(include_bits(copy), include_bits(machine))
    assert set(np.unique(literal_states(copy))) <= {95, 128}
    x, _ = bright_halves(50, np.random.default_rng(3))
    copy.weights[:] = machine.weights
    np.testing.assert_array_equal(class_sums(copy, x), class_sums(machine, x))


def test_keep_depth_changes_only_automata_that_disagree():
    machine = build(Shape.flat(2), 1, 1)
    machine.states[0, 0, machine.shape.literal_slots] = [200, 10, 130, 127]
    load_include_bits(machine, np.array([[[True, True, False, False]]]), keep_depth=True, exclude_state=0)
    assert literal_states(machine)[0, 0].tolist() == [200, 128, 0, 127]


@pytest.mark.parametrize("coalesced", [False, True])
def test_saved_machine_comes_back_whole(tmp_path, coalesced):
    machine = trained(np.random.default_rng(0), coalesced=coalesced, epochs=2)
    save(machine, tmp_path / "machine.safetensors")
    back = load(tmp_path / "machine.safetensors")
    assert (back.shape, back.threshold, back.specificity) == (machine.shape, machine.threshold, machine.specificity)
    assert (back.boost, back.coalesced) == (machine.boost, machine.coalesced)
    np.testing.assert_array_equal(back.states, machine.states)
    np.testing.assert_array_equal(back.weights, machine.weights)
    x, y = bright_halves(50, np.random.default_rng(1))
    fit(machine, x, y, np.random.default_rng(2))
    fit(back, x, y, np.random.default_rng(2))
    np.testing.assert_array_equal(back.states, machine.states)


def test_every_damaged_save_file_is_refused_or_sound(tmp_path):
    path = tmp_path / "machine.safetensors"
    save(build(Shape.flat(3), 2, 2), path)
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    refused = 0
    for cut in range(0, len(whole), 7):
        path.write_bytes(whole[:cut])
        with pytest.raises(ValueError, match="no sound machine file"):
            load(path)
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        with contextlib.suppress(ValueError):  # a flipped bit inside a state is a state like any other
            load(path)
            continue
        with pytest.raises(ValueError, match="no sound machine file"):
            load(path)
        refused += 1
    assert refused > 50


MACHINE = build(Shape.image(6, 6, patch=(3, 3)), 2, 4)
X, Y = np.zeros((5, 6, 6), np.uint8), np.zeros(5, int)
RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: fit(MACHINE, X.astype(float), Y, RNG), ["float64", "bits", "booleanize"]),
        (lambda: fit(MACHINE, X * np.nan, Y, RNG), ["float64", "bits", "booleanize"]),
        (lambda: fit(MACHINE, X + 7, Y, RNG), ["7", "0 and 1", "booleanize"]),
        (lambda: fit(MACHINE, X.astype(int) - 1, Y, RNG), ["-1", "0 and 1", "booleanize"]),
        (lambda: fit(MACHINE, X[:, :5], Y, RNG), ["[5, 5, 6]", "[n, 6, 6, 1]", "reshape"]),
        (lambda: fit(MACHINE, pack(Shape.flat(36), X.reshape(5, 36)), Y, RNG), ["packed for", "expects", "pack them"]),
        (lambda: fit(MACHINE, X, Y[:3], RNG), ["[3]", "[5]", "one label per sample"]),
        (lambda: fit(MACHINE, X, Y + 0.5, RNG), ["float64", "integers", "number the classes"]),
        (lambda: fit(MACHINE, X, Y + 2, RNG), ["2 to 2", "0 to 1", "n_classes=3"]),
        (lambda: fit(MACHINE, X, Y - 1, RNG), ["-1", "0 to 1"]),
        (lambda: fit(MACHINE, X, Y, RNG, epochs=-1), ["epochs", "-1", "at least 0"]),
        (lambda: fit(MACHINE, X, Y, RNG, negatives=[1]), ["[1]", "labels [0]", "np.unique(y)"]),
        (lambda: fit(MACHINE, X, Y, RNG, negatives=[0, 2]), ["[0, 2]", "below 2"]),
        (lambda: fit(MACHINE, X, Y, RNG, threads=0), ["threads", "0", "at least 1"]),
        (lambda: fit(MACHINE, X, Y, RNG, threads=1.5), ["threads", "1.5", "at least 1"]),
        (lambda: class_sums(MACHINE, X, threads=0), ["threads", "0", "at least 1"]),
        (lambda: Shape.image(6, 6, patch=(7, 3)), ["7×3", "6×6", "no larger"]),
        (lambda: Shape.image(6, 0, patch=(1, 1)), ["width", "0", "at least 1"]),
        (lambda: Shape.flat(2.5), ["layers", "2.5", "whole number"]),
        (lambda: Shape.image(6, 6, 5, patch=(1, 1), levels=2), ["5 layers", "levels=2"]),
        (lambda: build(Shape.flat(3), 2, 0), ["n_clauses", "0", "at least 1"]),
        (lambda: build(Shape.flat(3), 0, 4), ["n_classes", "0", "at least 1"]),
        (lambda: build(Shape.flat(3), 2, 4, specificity=0.9), ["specificity", "0.9", "at least 1"]),
        (lambda: build(Shape.flat(3), 2, 4, specificity=float("nan")), ["specificity", "nan", "at least 1"]),
        (lambda: build(Shape.flat(3), 2, 4, threshold=0), ["threshold", "0", "at least 1"]),
        (lambda: load_include_bits(MACHINE, np.ones((2, 4, 5), bool)), ["[2, 4, 5]", "[2, 4, 30]", "include_bits()"]),
        (lambda: load_include_bits(MACHINE, include_bits(MACHINE), include_state=5), ["include_state=5", "128 to 255"]),
        (
            lambda: pack(Shape.image(2, 2, 2, patch=(1, 1), levels=2), np.eye(2, dtype=int)[[[[0, 1], [1, 1]]]]),
            ["nest"],
        ),
    ],
)
def test_bad_input_is_named_with_what_was_due_and_what_to_do(act, words):
    with pytest.raises(ValueError, match=r".") as caught:
        act()
    for word in words:
        assert word in str(caught.value)


def test_missing_file_is_named():
    with pytest.raises(FileNotFoundError, match=r"nowhere\.safetensors does not exist"):
        load("nowhere.safetensors")
