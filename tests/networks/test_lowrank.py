"""Weights as products of thin matrices, by hand."""

import numpy as np
import pytest

from laconic import networks as nn
from laconic.networks.lowrank import Thin, check_thin, fill_out, thin_out


def mlp(n_inputs: int = 12, n_classes: int = 4) -> tuple[nn.Layout, nn.Part, np.ndarray]:
    spec = nn.Spec("mlp", (n_inputs,), n_classes)
    layout = nn.layout(spec)
    return layout, layout.part(), np.array(nn.start_vector(spec, 0))


def make(shapes: dict[str, tuple[int, ...]]) -> tuple[nn.Layout, nn.Part]:
    pieces, start = [], 0
    for name, shape in shapes.items():
        pieces.append(nn.Piece(name, shape, start, start + int(np.prod(shape)), False, False, False))
        start = pieces[-1].stop
    layout = nn.Layout(tuple(pieces))
    return layout, layout.part()


def test_all_of_the_energy_is_the_network_itself() -> None:
    layout, part, vector = mlp()
    thin = thin_out(vector, layout, part, 1.0)
    assert thin.ranks.tolist() == [0, 0, 0, 0]  # as many singular values as rows save nothing: sent as it is
    assert np.array_equal(fill_out(thin, layout, part), vector)


def test_a_product_of_two_vectors_travels_as_these() -> None:
    layout, part = make({"weight": (6, 5), "bias": (6,)})
    weight, bias = np.outer([1, 2, 0, -1, 3, 1], [1, 0, 2, 1, -1]), np.arange(6)
    vector = np.concatenate([weight.ravel(), bias]).astype(np.float32)
    thin = thin_out(vector, layout, part, 0.9999)
    assert thin.ranks.tolist() == [1, 0]
    assert thin.values.size == 6 + 5 + 6  # instead of 30 + 6
    assert thin.values[-6:].tolist() == bias.tolist()
    assert fill_out(thin, layout, part) == pytest.approx(vector, abs=1e-6)


def test_as_few_singular_values_are_kept_as_hold_the_energy() -> None:
    """Squares 64, 25, 9, 1, 1, of 100 in all."""
    layout, part = make({"weight": (20, 20)})
    vector = np.zeros((20, 20), np.float32)
    vector[range(5), range(5)] = 8, 5, 3, 1, 1
    for energy, rank in ((0.5, 1), (0.64, 1), (0.65, 2), (0.89, 2), (0.9, 3), (0.98, 3), (0.985, 4), (0.995, 5)):
        assert thin_out(vector.ravel(), layout, part, energy).ranks.tolist() == [rank], energy


@pytest.mark.parametrize("energy", [0.3, 0.6, 0.9])
def test_what_is_lost_is_no_more_than_the_rest_of_the_energy_and_bytes_fall_with_it(energy: float) -> None:
    layout, part, vector = mlp(200, 10)
    thin = thin_out(vector, layout, part, energy)
    lost = vector - fill_out(thin, layout, part)
    for piece in layout.pieces:
        whole, missing = ((each[piece.start : piece.stop] ** 2).sum() for each in (vector, lost))
        assert missing <= (1 - energy) * whole * 1.0001
    assert thin.values.size < vector.size
    assert thin_out(vector, layout, part, energy / 2).values.size < thin.values.size


def test_convolutions_are_cut_for_each_place_of_the_kernel_with_one_rank_for_all() -> None:
    """Each place is a product of two vectors, though the kernel as one 8 by 72 matrix is not."""
    layout, part = make({"conv": (8, 8, 3, 3)})
    rng = np.random.default_rng(0)
    places = [np.outer(rng.standard_normal(8), rng.standard_normal(8)) for _ in range(9)]  # [place][out, in]
    vector = np.stack(places, axis=1).ravel().astype(np.float32)  # channels last: [out, place, in]
    thin = thin_out(vector, layout, part, 0.9999)
    assert thin.ranks.tolist() == [1]
    assert thin.values.size == 9 * (8 + 8)
    assert fill_out(thin, layout, part) == pytest.approx(vector, abs=1e-5)


def test_channels_alone_and_what_has_run_away_stay_as_they_are() -> None:
    layout, part = make({"depthwise": (16, 1, 3, 3), "weight": (4, 4)})
    vector = np.ones(16 * 9 + 16, np.float32)
    vector[-1] = np.nan
    thin = thin_out(vector, layout, part, 0.5)
    assert thin.ranks.tolist() == [0, 0]
    assert np.array_equal(fill_out(thin, layout, part), vector, equal_nan=True)


def test_a_layer_of_zeros_is_one_pair_of_vectors() -> None:
    layout, part = make({"weight": (9, 9)})
    thin = thin_out(np.zeros(81, np.float32), layout, part, 0.95)
    assert thin.ranks.tolist() == [1]
    assert not fill_out(Thin(*thin), layout, part).any()


@pytest.mark.parametrize(
    ("ranks", "n_values", "words"),
    [
        ([0, 0, 0], 22, r"ranks has shape \(3,\), \(4,\) was expected"),
        ([-1, 0, 0, 0], 22, "rank -1, 0 to"),
        ([99, 0, 0, 0], 22, "rank 99, 0 to"),
        ([0, 1, 0, 0], 22, "rank 1, 0 to 0 was expected"),
    ],
)
def test_ranks_that_no_piece_has_are_refused(ranks: list[int], n_values: int, words: str) -> None:
    layout, part, _ = mlp()
    with pytest.raises(ValueError, match=words):
        check_thin(Thin(np.array(ranks), np.zeros(n_values, np.float32)), layout, part)


def test_values_must_be_as_many_as_the_ranks_take() -> None:
    layout, part, vector = mlp()
    for energy in (0.5, 1.0):
        thin = thin_out(vector, layout, part, energy)
        check_thin(thin, layout, part)
        with pytest.raises(ValueError, match=r"values has shape"):
            check_thin(Thin(thin.ranks, thin.values[:-1]), layout, part)
