from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import nn

from laconic.networks import Network, Spec, Training, build, fit, layout, live, outputs, start_vector

NORMS = Spec("resnet-small", (8, 8), 4, 1.0)


class Odd(nn.Module):
    """A model of one's own: its head comes first and is called otherwise."""

    def __init__(self, input_shape: tuple[int, ...], n_classes: int) -> None:
        super().__init__()
        self.last = nn.Linear(3, n_classes)
        self.first = nn.Linear(*input_shape, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.last(torch.tanh(self.first(x)))
        return logits


OWN = Spec("test_vector:Odd", (2,), 5, head="last")


def test_the_vector_holds_the_body_then_the_head_then_statistics() -> None:
    pieces = layout(NORMS).pieces
    assert [(p.is_statistic, p.is_head) for p in pieces] == sorted((p.is_statistic, p.is_head) for p in pieces)
    assert [piece.start for piece in pieces[1:]] == [piece.stop for piece in pieces[:-1]]
    n_head = 16 * 4 + 4
    assert layout(NORMS).n_trained - layout(NORMS).n_body == n_head
    # each normalisation has a scale, a shift, a mean and a variance
    n_norms = sum(piece.stop - piece.start for piece in pieces if piece.is_norm)
    assert layout(NORMS).size - layout(NORMS).n_trained == n_norms


def test_what_is_poured_in_comes_out_again_and_is_what_the_module_has() -> None:
    module = live(NORMS)
    vector = np.random.default_rng(0).normal(size=module.layout.size).astype(np.float32)
    module.pour(vector)
    assert np.array_equal(module.vector(), vector)
    named = {**dict(module.module.named_parameters()), **dict(module.module.named_buffers())}
    for piece in module.layout.pieces:
        mine = named[piece.name].detach().numpy()
        if mine.ndim == 4:
            mine = mine.transpose(0, 2, 3, 1)  # channels last
        assert np.array_equal(mine.ravel(), vector[piece.start : piece.stop])


def test_parts_are_whole_pieces_with_a_row_for_each_output() -> None:
    whole = layout(NORMS)
    body, head = whole.part(head=False, statistics=False), whole.part(body=False, statistics=False)
    assert body.mask[: whole.n_body].all()
    assert not body.mask[whole.n_body :].any()
    assert head.size == 68
    assert head.row_starts.tolist() == [0, 16, 32, 48, 64]  # four rows of weights, then the biases
    no_norms = whole.part(norms=False, statistics=False)
    assert whole.n_trained - no_norms.size == sum(p.stop - p.start for p in whole.pieces if p.is_norm)


@pytest.mark.parametrize("left_out", [{}, {"head": False}, {"norms": False}, {"body": False}])
def test_a_part_takes_a_copy_of_its_entries(left_out: dict[str, bool]) -> None:
    part, vector = layout(NORMS).part(statistics=False, **left_out), build(NORMS, 0).vector.copy()
    taken = part.take(vector)
    assert np.array_equal(taken, vector[part.mask])
    assert np.array_equal(taken, part.take(vector[: layout(NORMS).n_trained]))
    taken[:] = 7
    assert not (vector == 7).any()


def test_first_weights_follow_from_the_seed_and_nobody_can_change_them() -> None:
    assert np.array_equal(start_vector(NORMS, 3), start_vector.__wrapped__(NORMS, 3))
    assert not np.array_equal(start_vector(NORMS, 3), start_vector(NORMS, 4))
    with pytest.raises(ValueError, match="read-only"):
        start_vector(NORMS, 3)[0] = 1


def test_drawing_first_weights_leaves_torchs_own_stream_alone() -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    start_vector.__wrapped__(NORMS, 5)
    assert torch.equal(torch.rand(3), expected)


def test_a_model_of_ones_own_works_by_naming_its_head() -> None:
    network = build(OWN, 0)
    assert (network.layout.n_body, network.layout.n_trained) == (9, 9 + 20)
    assert network.layout.linear_head == (5, 3)
    before = network.vector
    x, y = np.eye(2, dtype=np.float32), np.array([1, 4])
    fit(network, (x, y), np.random.default_rng(0), Training(rate=0.1), part="head")
    assert np.array_equal(network.vector[:9], before[:9])
    assert (network.vector[9:] != before[9:]).any()
    features, logits = outputs(network, x)
    assert (features.shape, logits.shape) == ((2, 3), (2, 5))


def test_a_head_that_is_not_there_is_asked_for_by_name() -> None:
    with pytest.raises(ValueError, match='has no layer "head"; name its head: last, first'):
        layout(Spec("test_vector:Odd", (2,), 5))


def test_a_head_of_two_layers_is_no_linear_one() -> None:
    with pytest.raises(ValueError, match="one linear layer with biases was expected"):
        layout(Spec("test_vector:Odd", (2,), 5, head="")).linear_head  # noqa: B018


def test_arrays_that_may_not_be_written_to_are_taken_as_they_come() -> None:
    vector = start_vector(OWN, 0)
    x = np.zeros((1, 2), np.float32)
    x.setflags(write=False)
    assert np.array_equal(outputs(Network(OWN, vector), x)[1], outputs(Network(OWN, vector.copy()), x.copy())[1])


def test_first_weights_follow_from_the_seed_however_many_threads_draw_at_once() -> None:
    spec = Spec("resnet8", (32, 32, 3), 10)
    start_vector.cache_clear()
    alone = start_vector(spec, 0)
    start_vector.cache_clear()
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: start_vector(spec, 0), range(2)))
    assert all(np.array_equal(alone, drawn) for drawn in both)


def test_a_model_with_dropout_is_refused() -> None:
    with pytest.raises(ValueError, match="has dropout, whose draws would not follow the seed; leave it out"):
        layout(Spec("test_vector:Forgetful", (3,), 2))


class Forgetful(torch.nn.Module):
    def __init__(self, input_shape: tuple[int, ...], n_classes: int) -> None:
        super().__init__()
        self.drop, self.head = torch.nn.Dropout(), torch.nn.Linear(*input_shape, n_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.drop(x))


@pytest.mark.parametrize("shape", [(8, 8), (8, 8, 3)])
def test_images_grey_or_coloured_reach_convolutions_with_their_channels_last(shape: tuple[int, ...]) -> None:
    """In which torch is up to half as fast again; a grey image has one channel, so only its strides can tell."""
    spec = Spec("resnet-small", shape, 4, 1.0)
    inputs = live(spec).as_tensor(np.ones((2, *shape), np.float32))
    convolution = nn.Conv2d(inputs.shape[1], 4, 3)
    assert convolution(inputs).is_contiguous(memory_format=torch.channels_last)
