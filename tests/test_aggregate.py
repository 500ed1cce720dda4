import numpy as np
import pytest

from laconic.aggregate import (
    average,
    average_weights,
    find_donors,
    highest,
    jaccard,
    mean_of_pairs,
    richest,
    unite_states,
)

BEFORE = np.array([[10, 20], [7, 7], [3, 30]], np.int32)
UPLOADS = [np.array([[1, 50], [9, 9], [4, 31]], np.int32), np.array([[4, 80], [9, 9], [5, 41]], np.int32)]
NONE, ALL = np.zeros(3, np.bool_), np.ones(3, np.bool_)


def test_first_merge_is_the_mean_by_examples_truncated() -> None:
    merged = average_weights(BEFORE, UPLOADS, [1, 2], blend=0.1, is_new=ALL, is_held=ALL)
    assert merged.tolist() == [[3, 70], [9, 9], [4, 37]]  # (1 + 2*4)/3, (50 + 160)/3; ...; (31 + 82)/3 = 37.67
    assert merged.dtype == np.int32


def test_later_merges_blend_and_truncate_twice() -> None:
    merged = average_weights(BEFORE, UPLOADS, [1, 2], blend=0.1, is_new=NONE, is_held=ALL)
    # 0.9*10 + 0.1*3 = 9.3; 0.9*20 + 0.1*70 = 25; 0.9*7 + 0.1*9 = 7.2; 0.9*3 + 0.1*4 = 3.1; 0.9*30 + 0.1*37 = 30.7
    assert merged.tolist() == [[9, 25], [7, 7], [3, 30]]


def test_a_class_nobody_holds_keeps_its_weights() -> None:
    merged = average_weights(BEFORE, UPLOADS, [1, 2], blend=0.5, is_new=ALL, is_held=np.array([False, True, False]))
    assert merged.tolist() == [[10, 20], [9, 9], [3, 30]]


def test_the_richest_are_the_holders_with_most_and_ties_go_to_the_lower_id() -> None:
    counts = {k: np.array([n, 0]) for k, n in ((4, 5), (1, 5), (2, 9), (3, 0))}
    assert richest(counts, 0, 2) == [2, 1]
    assert richest(counts, 0, 9) == [2, 1, 4]
    assert richest(counts, 1, 2) == []
    donors = find_donors(counts, 2)
    assert {client for client, classes in donors.items() if classes[0]} == {1, 2}
    assert list(donors) == list(counts)
    assert {client for client, classes in find_donors(counts, 10**12).items() if classes[0]} == {1, 2, 4}
    assert find_donors({}, 2) == {}


def test_sizes_may_differ_from_class_to_class() -> None:
    sizes = [np.array([1, 0, 0]), np.array([0, 2, 0])]
    merged = average_weights(BEFORE, UPLOADS, sizes, blend=0.1, is_new=ALL, is_held=np.array([True, True, False]))
    assert merged.tolist() == [[1, 50], [9, 9], [3, 30]]


def test_the_highest_come_first_and_ties_go_to_the_lower_id() -> None:
    assert highest({3: 0.5, 1: 0.9, 2: 0.9, 0: 0.1}, 3) == [1, 2, 3]
    assert highest({7: 0.0}, 2) == [7]
    assert highest({}, 2) == []


def test_united_states_are_the_or_of_what_was_sent_and_stay_where_nothing_was() -> None:
    before = np.array([[[1, 0]], [[1, 0]], [[1, 0]]]) > 0
    a = (np.array([True, True, False]), np.array([[[0, 1]], [[0, 0]]]) > 0)
    b = (np.array([True, False, False]), np.array([[[1, 0]]]) > 0)
    assert unite_states(before, [a, b]).astype(int).tolist() == [[[1, 1]], [[0, 0]], [[1, 0]]]
    assert np.array_equal(unite_states(before, []), before)


def test_jaccard_is_the_share_both_have_and_0_where_two_have_nothing() -> None:
    a, b, none = np.array([1, 1, 0, 0]) > 0, np.array([0, 1, 1, 1]) > 0, np.zeros(4, np.bool_)
    assert jaccard([a, b, none]).tolist() == [[1, 0.25, 0], [0.25, 1, 0], [0, 0, 0]]
    assert jaccard([a.reshape(2, 2), b.reshape(2, 2)])[0, 1] == 0.25


def test_the_mean_of_pairs_leaves_out_everyone_with_itself() -> None:
    assert mean_of_pairs(np.array([[1, 0.2, 0.4], [0.2, 1, 0.9], [0.4, 0.9, 1]])) == pytest.approx(0.5)
    assert mean_of_pairs(np.ones((1, 1))) == mean_of_pairs(np.ones((0, 0))) == 0.0


def test_a_mean_goes_by_weight() -> None:
    assert average([np.array([0.0, 4.0]), np.array([4.0, 0.0])], [3, 1]).tolist() == [1.0, 3.0]
    assert average([np.ones(2)], [0]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("averaging", ["clipped", "trimmed", "median"])
def test_one_liar_among_five_moves_a_robust_mean_little(averaging: str) -> None:
    honest = [np.array([[1.0, 2.0]]) + 0.1 * k for k in range(4)]
    merged = average([*honest, np.array([[1e9, -1e9]])], [1] * 5, averaging)
    assert merged.shape == (1, 2)
    assert np.abs(merged - np.mean(honest, axis=0)).max() < 1
    assert np.abs(average([*honest, np.array([[1e9, -1e9]])], [1] * 5)).max() > 1e8


@pytest.mark.parametrize("averaging", ["mean", "clipped", "trimmed", "median"])
def test_equal_vectors_have_themselves_for_a_mean(averaging: str) -> None:
    for n_vectors in (1, 2, 5):
        assert average([np.array([0.0, 3.0])] * n_vectors, [2] * n_vectors, averaging).tolist() == [0.0, 3.0]


@pytest.mark.parametrize("averaging", ["trimmed", "median"])
def test_a_claim_of_many_examples_does_not_move_a_trimmed_mean_or_a_median(averaging: str) -> None:
    vectors = [np.array([float(k)]) for k in (1, 2, 3)]
    assert average(vectors, [1, 1, 10**7], averaging).tolist() == [2.0]


def test_a_vector_longer_than_numbers_go_is_clipped_like_any_other() -> None:
    clipped = average([np.ones(2), np.ones(2), np.full(2, 1e300)], [1, 1, 1], "clipped")
    assert np.isfinite(clipped).all()
    assert np.abs(clipped).max() <= 1
