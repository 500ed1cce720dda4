"""Halving an image and rectifying what is left: one sweep there and one back, where torch takes two each way.

Rectifying first gives the same numbers and the same gradients, since it changes no order, but on four times as many.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  # the name everyone gives it

from laconic.device import CPU

compiled: Callable[[Callable[..., Any]], Callable[..., Any]] = njit(
    nogil=True, cache=True, boundscheck=False, error_model="numpy"
)
Images = NDArray[np.float32]  # [example, row, column, channel]
Codes = NDArray[np.uint8]  # [example, row, column, channel] which of four pixels was the highest; 4 more: not above 0
FLAT = np.uint8(4)


class HalfReLU(nn.Module):
    """ReLU and MaxPool2d(2) at once; slope: below 0, as LeakyReLU has it."""

    def __init__(self, slope: float = 0.0) -> None:
        super().__init__()
        self.slope = slope

    def forward(self, x: Tensor) -> Tensor:
        if x.device.type != CPU:  # our kernels are for no other
            return F.max_pool2d(F.leaky_relu(x, self.slope), 2)
        halved: Tensor = Halve.apply(x, self.slope)  # type: ignore[no-untyped-call]
        return halved

    def as_plain_layers(self) -> nn.Module:
        """The same numbers from torch's own layers."""
        return nn.Sequential(nn.LeakyReLU(self.slope) if self.slope else nn.ReLU(), nn.MaxPool2d(2))


class Halve(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, slope: float) -> Tensor:
        images = as_images(x)
        n_examples, height, width, n_channels = images.shape
        if min(height, width) < 2:
            raise RuntimeError(f"an image of {height}×{width} cannot be halved")  # as torch's own would
        halved = torch.empty(n_examples, height // 2, width // 2, n_channels)  # torch's memory suits convolutions
        ctx.codes, ctx.slope, ctx.shape = np.empty(halved.shape, np.uint8), slope, images.shape
        choose(images, np.float32(slope), halved.numpy(), ctx.codes)
        return halved.permute(0, 3, 1, 2)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        is_odd = ctx.shape[1] % 2 or ctx.shape[2] % 2  # the last row or column is in no square
        spread = (torch.zeros if is_odd else torch.empty)(ctx.shape)
        give_back(as_images(gradient), np.float32(ctx.slope), ctx.codes, spread.numpy())
        return spread.permute(0, 3, 1, 2), None


def as_images(x: Tensor) -> Images:
    images: Images = x.detach().permute(0, 2, 3, 1).contiguous().numpy()
    return images


@compiled
def choose(images: Images, slope: np.float32, halved: Images, codes: Codes) -> None:
    """The highest of each square, and a NaN before all; of equal ones the first."""
    for n in range(halved.shape[0]):
        for i in range(halved.shape[1]):
            for j in range(halved.shape[2]):
                upper, lower = images[n, 2 * i], images[n, 2 * i + 1]
                a, b, c, d = upper[2 * j], upper[2 * j + 1], lower[2 * j], lower[2 * j + 1]
                best, code = halved[n, i, j], codes[n, i, j]
                for k in range(halved.shape[3]):
                    highest, place = a[k], np.uint8(0)
                    if b[k] > highest or b[k] != b[k]:
                        highest, place = b[k], np.uint8(1)
                    if c[k] > highest or c[k] != c[k]:
                        highest, place = c[k], np.uint8(2)
                    if d[k] > highest or d[k] != d[k]:
                        highest, place = d[k], np.uint8(3)
                    if highest <= 0:
                        highest, place = slope * highest, place + FLAT
                    best[k], code[k] = highest, place


@compiled
def give_back(gradient: Images, slope: np.float32, codes: Codes, spread: Images) -> None:
    """Each number to the pixel it came from; written one pixel after the other, so that LLVM makes vectors of it."""
    for n in range(gradient.shape[0]):
        for i in range(gradient.shape[1]):
            for side in range(2):
                for j in range(2 * gradient.shape[2]):
                    place = np.uint8(2 * side + j % 2)
                    given, code, pixel = gradient[n, i, j // 2], codes[n, i, j // 2], spread[n, 2 * i + side, j]
                    for k in range(gradient.shape[3]):
                        if code[k] == place:
                            pixel[k] = given[k]
                        elif code[k] == place + FLAT:
                            pixel[k] = slope * given[k]
                        else:
                            pixel[k] = 0
