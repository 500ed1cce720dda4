"""Halving and rectifying at once, against torch's layers one after the other."""

import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from laconic.networks.pooling import HalfReLU

SHAPES = [(3, 16, 8, 8), (2, 5, 7, 9), (1, 1, 2, 2)]


@pytest.mark.parametrize("slope", [0.0, 0.01])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last])
def test_halving_and_rectifying_at_once_changes_no_bit(
    shape: tuple[int, ...], slope: float, order: torch.memory_format
) -> None:
    # few values, so that there are ties and zeros
    x = torch.randint(-2, 3, shape, generator=torch.Generator().manual_seed(0)).float().to(memory_format=order)
    found, due = x.clone().requires_grad_(), x.clone().requires_grad_()
    halved, expected = HalfReLU(slope)(found), F.max_pool2d(F.leaky_relu(due, slope), 2)
    assert torch.equal(halved, expected)
    gradient = torch.randn(expected.shape, generator=torch.Generator().manual_seed(1))
    halved.backward(gradient)
    expected.backward(gradient)
    assert found.grad is not None
    assert due.grad is not None
    assert torch.equal(found.grad, due.grad)


def test_a_broken_number_stays_broken() -> None:
    for place in range(4):
        x = torch.ones(1, 1, 2, 2)
        x.view(-1)[place] = torch.nan
        assert HalfReLU()(x).isnan().all()


def test_what_cannot_be_halved_is_refused() -> None:
    with pytest.raises(RuntimeError, match="1×6 cannot be halved"):
        HalfReLU()(torch.zeros(1, 1, 1, 6))
