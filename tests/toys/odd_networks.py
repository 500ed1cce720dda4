"""Networks of one's own: one that ONNX can hold, and some that it must not."""

import numpy as np
import torch
from torch import Tensor, nn

from laconic.networks.pooling import Halve


class TwoPaths(nn.Module):
    """Its head is called otherwise, and two ways lead to it."""

    def __init__(self, input_shape: tuple[int, ...], n_classes: int) -> None:
        super().__init__()
        self.near = nn.Conv2d(1, 3, 3, padding=1)
        self.wide = nn.Conv2d(1, 3, 5, padding=2)
        self.last = nn.Linear(6, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        both = torch.cat([torch.tanh(self.near(x)), self.wide(x).sigmoid()], dim=1)
        logits: Tensor = self.last(both.amax(dim=(2, 3)))
        return logits


class Flat(nn.Module):
    def __init__(self, input_shape: tuple[int, ...], n_classes: int) -> None:
        super().__init__()
        self.body = nn.Flatten()
        self.head = nn.Linear(int(np.prod(input_shape)), n_classes)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.body(x))
        return logits


class CountsRows(Flat):
    """Looks at how many rows there are, and at nothing else."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(torch.ones_like(x))


class SaysTheSame(Flat):
    """Does not look at all."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(torch.ones(1, *x.shape[1:]))


class LeavesTorch(Flat):
    """Takes a way that exporters cannot follow, and an older one made a constant of."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(Halve.apply(x, 0.0).repeat_interleave(2, 2).repeat_interleave(2, 3))


class LooksFirst(Flat):
    """Does one thing or another, as the numbers are."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x if x.sum() > 0 else 2 * x)


class TellsManyFromFew(Flat):
    """Does one thing or another, as many rows as there are."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x if len(x) > 100 else 2 * x)
