import numpy as np
import pytest

from laconic.linear import (
    Lesson,
    as_features,
    average_blocks,
    dequantise,
    judge,
    log_chances,
    log_shares,
    move_rows,
    quantise,
    snap,
    train,
)


def make_lesson(seed: int = 0, n_examples: int = 40, n_features: int = 6, n_classes: int = 3) -> Lesson:
    rng = np.random.default_rng(seed)
    places = rng.choice(n_classes, n_examples, p=[0.6, 0.3, 0.1])
    fired = rng.random((n_examples, n_features)) < 0.2 + 0.3 * (np.arange(n_features) % n_classes == places[:, None])
    return Lesson(as_features(fired - 0.5), places, log_shares(places, np.arange(n_classes)))


def test_shares_are_of_held_classes_and_one_without_examples_counts_half() -> None:
    shares = log_shares(np.array([4, 4, 4, 1, 7]), np.array([1, 4, 5]))
    np.testing.assert_allclose(np.exp(shares), np.array([1, 3, 0.5]) / 4.5)


def test_an_empty_head_guesses_the_clients_own_shares() -> None:
    lesson = make_lesson()
    chances = np.exp(log_chances(np.zeros((3, 7)), lesson.features, lesson.log_shares))
    np.testing.assert_allclose(chances, np.tile(np.bincount(lesson.places) / 40, (40, 1)))


def test_gradient_is_that_of_the_loss() -> None:
    lesson, rng = make_lesson(), np.random.default_rng(1)
    head, width = rng.normal(size=(3, 7)), 1e-5
    _, slope = judge(head, lesson)
    for place in np.ndindex(head.shape):
        nudge = np.zeros_like(head)
        nudge[place] = width
        rise = judge(head + nudge, lesson)[0] - judge(head - nudge, lesson)[0]
        assert slope[place] == pytest.approx(rise / (2 * width), abs=1e-6)


def test_shares_take_away_what_a_client_has_more_of() -> None:
    """Two clients see the same feature; one has class 1 nine times as often. Both should learn the same head."""
    heads = []
    for n_zero, n_one in ((100, 100), (180, 20)):
        places = np.repeat([0, 1], [n_zero, n_one])
        fires = np.concatenate([np.arange(n_zero) % 10 < 2, np.arange(n_one) % 10 < 8])[:, None]
        lesson = Lesson(as_features(fires - 0.5), places, log_shares(places, np.arange(2)))
        heads.append(train(np.zeros((2, 2)), lesson, steps=2000, rate=2.0, decay=0.0))
    np.testing.assert_allclose(heads[0], heads[1], atol=1e-3)
    assert heads[0][1, 1] - heads[0][0, 1] == pytest.approx(2 * np.log(4), abs=1e-2)  # log odds, 0.8 against 0.2


@pytest.mark.parametrize("n_features", [3, 300, 3000])
@pytest.mark.parametrize("rate", [1.0, 170.0, 1e4])
def test_loss_never_rises_whatever_the_rate_and_number_of_features(rate: float, n_features: int) -> None:
    lesson = make_lesson(n_features=n_features)
    heads = [train(np.zeros((3, 1 + n_features)), lesson, steps=n, rate=rate, decay=0.0) for n in (0, 1, 2, 5, 20)]
    losses = [judge(head, lesson)[0] for head in heads]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0]


def test_sums_do_not_depend_on_their_order() -> None:
    lesson, rng = make_lesson(n_examples=500, n_features=200), np.random.default_rng(1)
    head, order = snap(rng.normal(size=(3, 201))), rng.permutation(201)
    scores = lesson.features @ head.T
    assert np.array_equal(scores, lesson.features[:, order] @ head[:, order].T)
    assert np.array_equal(scores, np.stack([(lesson.features * row).cumsum(axis=1)[:, -1] for row in head], axis=1))
    reverse = Lesson(lesson.features[::-1], lesson.places[::-1], lesson.log_shares)
    assert np.array_equal(judge(head, lesson)[1], judge(head, reverse)[1])


@pytest.mark.parametrize("limit", [7, 31, 127])
def test_quantised_rows_are_off_by_half_a_step_at_most(limit: int) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(4, 50)) * np.array([[1e-5], [0.3], [40], [0]])
    numbers, exponents = quantise(rows, limit)
    step = 2.0 ** exponents.astype(float)
    assert numbers.dtype == exponents.dtype == np.int8
    assert np.abs(numbers).max() <= limit
    assert (np.abs(dequantise(numbers, exponents) - rows) <= step[:, None] / 2).all()
    assert (step[:3] < 2 * np.abs(rows[:3]).max(axis=1) / limit).all()  # no coarser than need be
    again, same = quantise(dequantise(numbers, exponents), limit)
    assert np.array_equal(dequantise(again, same), dequantise(numbers, exponents))


def test_rows_of_classes_no_longer_held_go_and_those_of_new_ones_are_zero() -> None:
    before, now = np.array([True, False, True, True]), np.array([False, True, True, True])
    assert move_rows(np.array([[1.0, 2], [3, 4], [5, 6]]), before, now).tolist() == [[0, 0], [3, 4], [5, 6]]


def test_quantising_no_rows_gives_none() -> None:
    numbers, exponents = quantise(np.zeros((0, 5)), 7)
    assert (numbers.shape, exponents.shape) == ((0, 5), (0,))


def test_parts_of_a_head_are_averaged_number_by_number_over_those_who_have_it() -> None:
    parts = [(np.ix_([0, 1], [0, 1]), np.full((2, 2), 2.0)), (np.ix_([1], [0, 2]), np.full((1, 2), 6.0))]
    mean, is_held = average_blocks((3, 3), parts, [30, 10])
    assert mean.tolist() == [[2, 2, 0], [3, 2, 6], [0, 0, 0]]
    assert is_held.tolist() == [[True, True, False], [True, True, True], [False, False, False]]
