import numpy as np
import pytest

from laconic import networks as nn
from laconic.networks.prototypes import (
    choose_margin,
    choose_masks,
    cosines,
    head_norms,
    nearest,
    start_maker,
    sum_features,
    train_maker,
)


def distances(masks: np.ndarray) -> np.ndarray:
    apart = (masks[:, None] != masks[None]).sum(axis=2)
    return apart[~np.eye(len(masks), dtype=bool)]


@pytest.mark.parametrize(
    ("n_classes", "dim", "kept", "least_apart"),
    [
        (10, 500, 50, 100),  # a block each: nothing in common
        (10, 500, 250, 200),  # words of weight 5 over 10 blocks of 50: 4 blocks or more apart
        (100, 500, 50, 60),  # blocks of 5
        (200, 500, 50, 60),  # 500 is no multiple of 200: blocks of 2
        (3, 7, 5, 2),
    ],
)
def test_every_class_keeps_as_many_dimensions_and_classes_keep_different_ones(
    n_classes, dim, kept, least_apart
) -> None:
    masks = choose_masks(n_classes, dim, kept)
    assert masks.shape == (n_classes, dim)
    assert (masks.sum(axis=1) == kept).all()
    assert distances(masks).min() >= least_apart
    assert np.array_equal(masks, choose_masks.__wrapped__(n_classes, dim, kept))  # the same at every node


def test_all_dimensions_kept_is_no_mask_and_none_is_refused() -> None:
    assert choose_masks(4, 6, 6).all()
    with pytest.raises(ValueError, match="0 of 6 dimensions cannot be kept; 1 to 6 can"):
        choose_masks(4, 6, 0)


def test_sums_and_nearest_by_hand() -> None:
    features = np.array([[1, 0], [3, 0], [0, 5]], np.float32)
    sums, counts = sum_features(features, np.array([2, 2, 0]), 3)
    assert sums.tolist() == [[0, 5], [0, 0], [4, 0]]
    assert counts.tolist() == [1, 0, 2]
    targets = np.array([[0, 4], [0.9, 0.1], [2, 0]], np.float32)
    has_target = np.array([True, False, True])  # the nearest of the first example is not to be had
    assert nearest(features, targets, has_target).tolist() == [2, 2, 0]


def test_nearest_in_the_dimensions_that_a_class_keeps() -> None:
    """From (1, 9) to (1, 0) in the first dimension alone it is no way at all; in both, (0, 4) is nearer."""
    features, targets = np.array([[1, 9]], np.float32), np.array([[1, 0], [0, 4]], np.float32)
    everyone, masks = np.ones(2, np.bool_), np.array([[True, False], [False, True]])
    assert nearest(features, targets, everyone).tolist() == [1]
    assert nearest(features, targets, everyone, masks).tolist() == [0]


def test_cosines_and_lengths_of_heads_by_hand() -> None:
    rows = np.array([[3, 4], [0, 2], [0, 0]], np.float32)
    assert cosines(rows) == pytest.approx(np.array([[1, 0.8, 0], [0.8, 1, 0], [0, 0, 0]]))
    spec = nn.Spec("mlp", (2,), 2)
    network = nn.build(spec, 0)
    piece = next(piece for piece in network.layout.pieces if piece.name == "head.weight")
    vector = np.zeros_like(network.vector)
    vector[piece.start], vector[piece.stop - 1] = 3, -2  # the first class's first weight, the second's last
    assert head_norms(vector, network.layout).tolist() == [3, 2]


def test_margin_is_the_widest_gap_to_a_nearest_neighbour_and_never_above_its_limit() -> None:
    points = np.array([[0, 0], [0, 2], [3, 1], [20, 1]], np.float32)
    labels = np.array([0, 0, 1, 2])  # means (0, 1), (3, 1), (20, 1): nearest neighbours 3, 3 and 17 away
    assert choose_margin(points, labels, 100.0) == 17
    assert choose_margin(points, labels, 5.0) == 5
    assert choose_margin(points[:1], labels[:1], 5.0) == 5  # one class has no neighbour


def test_trained_targets_are_nearest_to_the_points_of_their_own_class() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(3), 10)
    centres = 3 * rng.standard_normal((3, 8))
    points = (centres[labels] + 0.3 * rng.standard_normal((30, 8))).astype(np.float32)
    maker = start_maker(3, 8, rng)
    masks = np.ones((3, 8), np.bool_)
    margin = choose_margin(points, labels, 100.0)
    trained = train_maker(maker, points, labels, masks, rng, margin=margin, epochs=100, batch=8, rate=0.01)
    assert (nearest(points, trained.make(), np.ones(3, np.bool_)) == labels).all()


def test_a_margin_pushes_targets_further_apart() -> None:
    labels = np.repeat(np.arange(2), 8)
    points = np.where(labels[:, None] == 0, 1.0, -1.0) * np.ones((16, 4), np.float32)
    points = points.astype(np.float32)
    gaps = []
    for margin in (0.0, 10.0):
        maker, masks = start_maker(2, 4, np.random.default_rng(1)), np.ones((2, 4), np.bool_)
        rng = np.random.default_rng(2)
        trained = train_maker(maker, points, labels, masks, rng, margin=margin, epochs=50, batch=4, rate=0.01)
        gaps.append(np.linalg.norm(np.subtract(*trained.make())))
    assert gaps[1] > gaps[0] + 1
