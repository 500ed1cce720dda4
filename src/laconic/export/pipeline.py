"""A network's model as one torch module, from raw rows to labels and scores, of layers that any exporter knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from laconic.models.networks import Logits, NearestTarget
from laconic.models.portable import PortableModel
from laconic.models.preprocessing import Centred, Pixels, Preprocessing
from laconic.networks import LARGEST
from laconic.networks.pooling import HalfReLU
from laconic.networks.vector import arrange, make_live


class Pipeline(nn.Module):
    def __init__(self, portable: PortableModel) -> None:
        super().__init__()
        model = portable.model
        assert isinstance(model, Logits | NearestTarget)
        self.live = make_live(model.network.spec, 0)  # one of its own, for its layers are exchanged
        self.live.pour(model.network.vector)
        self.module = self.live.module
        use_plain_layers(self.module)
        self.read = find_reader(portable.preprocessing)
        self.turns = portable.about.turns
        self.judge = LogitScores(model) if isinstance(model, Logits) else TargetScores(model)
        self.eval()

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """[row] labels, [row, class] scores."""
        values = self.read(rows)
        if self.turns:
            values = torch.rot90(values, self.turns, dims=(1, 2))
        scores = self.judge(*self.live.run(arrange(values, self.live.spec)))
        return scores.argmax(dim=1), scores


def use_plain_layers(module: nn.Module) -> None:
    """In place of those whose numbers a tracer cannot follow."""
    for name, layer in module.named_children():
        if isinstance(layer, HalfReLU):
            setattr(module, name, layer.as_plain_layers())
        else:
            use_plain_layers(layer)


# ---------------------------------------------------------------- raw rows
class Centring(nn.Module):
    mean: Tensor
    spread: Tensor

    def __init__(self, centred: Centred) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(centred.mean))
        self.register_buffer("spread", torch.tensor(centred.spread))

    def forward(self, rows: Tensor) -> Tensor:
        return ((rows - self.mean) / self.spread).float()


def find_reader(preprocessing: Preprocessing) -> nn.Module:
    if isinstance(preprocessing, Centred):
        return Centring(preprocessing)
    if isinstance(preprocessing, Pixels):
        return nn.Identity()  # Spec.peak says what a byte is worth
    raise ValueError(
        f"its rows are read by {preprocessing.kind!r}, which networks of laconic's own methods never are; "
        f"{Pixels.kind!r} or {Centred.kind!r} was expected"
    )


def find_row_type(preprocessing: Preprocessing) -> type[np.number[Any]]:
    """Doubles where rows are centred, for that is where a column far from 0 would lose its digits."""
    return np.uint8 if isinstance(preprocessing, Pixels) else np.float64


def draw_rows(portable: PortableModel, n_rows: int) -> NDArray[Any]:
    """Raw rows at random, as far apart as those that the model was trained on; always the same."""
    rng, how, shape = np.random.default_rng(0), portable.preprocessing, (n_rows, *portable.about.input_shape)
    if isinstance(how, Centred):
        return how.mean + how.spread * rng.standard_normal(shape)
    return rng.integers(0, int(how.peak), shape, np.uint8, endpoint=True)


# ---------------------------------------------------------------- scores
class LogitScores(nn.Module):
    log_prior: Tensor | None

    def __init__(self, model: Logits) -> None:
        super().__init__()
        prior = model.network.log_prior
        self.register_buffer("log_prior", None if prior is None else torch.tensor(prior))

    def forward(self, _: Tensor, logits: Tensor) -> Tensor:
        scores = hold_in(logits)
        return scores if self.log_prior is None else scores + self.log_prior


class TargetScores(nn.Module):
    """Squared distances less the features' own squares, which is a linear layer; -inf without a target."""

    weight: Tensor
    bias: Tensor

    def __init__(self, model: NearestTarget) -> None:
        super().__init__()
        has_target = model.has_target
        targets = np.where(has_target[:, None], model.targets, 0).astype(np.float64)
        squares = np.where(has_target, (targets**2).sum(axis=1), np.inf)
        self.register_buffer("weight", torch.tensor(2 * targets, dtype=torch.float32))
        self.register_buffer("bias", torch.tensor(-squares, dtype=torch.float32))

    def forward(self, features: Tensor, _: Tensor) -> Tensor:
        return nn.functional.linear(hold_in(features), self.weight, self.bias)


def hold_in(values: Tensor) -> Tensor:
    """As networks.sgd has it."""
    return values.masked_fill(values.isnan(), 0).clamp(-LARGEST, LARGEST)
