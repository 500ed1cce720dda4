"""Networks for phones."""

import numpy as np
import pytest
import torch

from laconic import networks as nn
from laconic.catalogue import list_models
from laconic.networks.mobile import Conv

IMAGES = (32, 32, 3)
PUBLISHED = {  # parameters of the papers' networks for 1000 classes, and features before their last layer
    "mobilenetv2": (3_504_872, 1280),
    "efficientnet": (5_288_548, 1280),
    "shufflenetv2": (2_278_604, 1024),
}
SMALL = ("mobile-small", "shuffle-small", "mobilenetv2-slim", "efficientnet-slim", "shufflenetv2-slim")


@pytest.mark.parametrize("model", PUBLISHED)
def test_a_network_has_as_many_parameters_as_its_paper_says(model: str) -> None:
    n_parameters, n_features = PUBLISHED[model]
    spec = nn.Spec(model, IMAGES, 10)
    assert nn.count_head_inputs(spec) == n_features
    assert nn.layout(spec).n_body == n_parameters - 1000 * (n_features + 1)


@pytest.mark.parametrize("model", [*PUBLISHED, *SMALL])
@pytest.mark.parametrize("n_features", [0, 500])
def test_every_body_ends_in_as_many_features_as_are_asked_for(model: str, n_features: int) -> None:
    network = nn.build(nn.Spec(model, IMAGES, 7, 255.0, n_features=n_features), 0)
    features, logits = nn.outputs(network, np.zeros((2, *IMAGES), np.uint8))
    assert features.shape == (2, n_features or nn.count_head_inputs(network.spec))
    assert logits.shape == (2, 7)
    assert np.isfinite(logits).all()


@pytest.mark.parametrize("model", SMALL)
@pytest.mark.parametrize("shape", [(8, 8), (28, 28), (33, 20, 3)])
def test_small_ones_learn_from_images_of_any_shape_and_from_a_batch_of_one(model: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    examples = rng.random((5, *shape), np.float32), np.array([0, 1, 2, 0, 1])
    network = nn.build(nn.Spec(model, shape, 3), 0)
    before = network.vector
    nn.fit(network, examples, rng, nn.Training(model=model, batch=4))  # 4 examples, then one alone
    assert np.isfinite(network.vector).all()
    assert not np.array_equal(network.vector, before)


@pytest.mark.parametrize("image", [(1, 1), (2, 2), (1, 3), (7, 4)])
@pytest.mark.parametrize(
    ("n_in", "n_out", "side", "stride", "groups", "bias"),
    [
        (6, 4, 1, 1, 1, True),
        (6, 6, 5, 1, 6, False),
        (6, 6, 5, 1, 6, True),
        (6, 6, 3, 2, 6, False),
        (6, 4, 3, 2, 1, False),
        (1, 4, 5, 1, 1, False),
    ],
)
def test_shorter_ways_of_a_convolution_end_where_torchs_does(image, n_in, n_out, side, stride, groups, bias) -> None:
    ours = Conv(n_in, n_out, side, stride, padding=side // 2, groups=groups, bias=bias)
    theirs = torch.nn.Conv2d(n_in, n_out, side, stride, padding=side // 2, groups=groups, bias=bias)
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(3, n_in, *image, generator=torch.Generator().manual_seed(0))
    found = [conv(x) for conv in (ours, theirs)]
    torch.testing.assert_close(*found)
    for outputs in found:
        (outputs**2).sum().backward()
    torch.testing.assert_close(ours.weight.grad, theirs.weight.grad)


def test_they_are_listed() -> None:
    assert {*PUBLISHED, *SMALL} <= set(nn.MODELS)
    listed = str(list_models())
    assert all(model in listed for model in (*PUBLISHED, *SMALL))
