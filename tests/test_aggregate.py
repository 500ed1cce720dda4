import numpy as np

from laconic.aggregate import average_weights, richest

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
