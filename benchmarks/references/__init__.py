"""Reference implementations that parity.py can step: each is told by its files, imported from where the user has it."""

from __future__ import annotations

import sys
import types
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from laconic.networks import Layout, Spec, layout, sgd, start_vector
from laconic.networks.models import choose_model, make_module
from laconic.networks.vector import view

Batch = tuple[Tensor, Tensor]
Vector = NDArray[np.float32]


class Theirs(ABC):
    """One method of a reference, as it is being stepped."""

    def adapt_ours(self) -> AbstractContextManager[None]:
        """While ours play: notes or sets what ours draw at random besides batches, which theirs then follow."""
        return nullcontext()

    @abstractmethod
    def play(self, round: int, batches: dict[int, list[Batch]], starts: dict[int, Vector]) -> float:
        """How far what clients begin from was from what ours began from, if that then took its place; else 0."""

    @abstractmethod
    def vectors(self) -> list[Vector]:
        """In the order that parity.read_vectors has ours in."""

    @abstractmethod
    def accuracy(self) -> float: ...

    def mask_difference(self, server: Any, states: Sequence[Any]) -> float | None:
        """The share of entries that differ; None: the method has no masks."""
        return None


class Reference(ABC):
    name: str
    mark: str  # a file by which a checkout is told
    model: str  # of ours, which both train
    methods: tuple[str, ...]

    @abstractmethod
    def __init__(self, path: Path) -> None: ...

    @abstractmethod
    def start(self, method: str, ours: Any, task: Any, parts: Sequence[Any]) -> Theirs: ...

    def settings(self, method: str) -> list[str]:
        return []

    def is_tested(self, method: str) -> bool:
        return True


def find_reference(path: Path) -> Reference:
    from references.bifl import BiFL
    from references.dispfl import DisPFL
    from references.eden import EDEN
    from references.fedbat import FedBAT
    from references.fedpac import FedPAC
    from references.fedpurin import FedPURIN
    from references.fedselect import FedSelect
    from references.htfllib import HtFLlib
    from references.pfed1bs import PFed1BS
    from references.pfedfda import PFedFDA
    from references.pfedsd import PFedSD
    from references.pfllib import PFLlib
    from references.spafl import SpaFL

    kinds: tuple[type[Reference], ...] = (
        *(PFLlib, HtFLlib, FedPURIN, PFed1BS, FedPAC, PFedSD, FedSelect),
        *(PFedFDA, SpaFL, DisPFL, FedBAT, EDEN, BiFL),
    )
    for kind in kinds:
        if (path / kind.mark).exists():
            return kind(path)
    marks = ", ".join(f"{kind.name} ({kind.mark})" for kind in kinds)
    raise SystemExit(f"{path} is no checkout of a reference that can be stepped: {marks}")


class Epochs:
    """Stands in for a DataLoader: each pass over it gives the batches of the next epoch."""

    def __init__(self, batches: Iterable[Any], n_each: int) -> None:
        self.batches, self.n_each = list(batches), n_each

    def __iter__(self):  # type: ignore[no-untyped-def]
        mine, self.batches = self.batches[: self.n_each], self.batches[self.n_each :]
        assert mine, "they train longer than we did"
        return iter(mine)

    def __len__(self) -> int:
        return self.n_each


@contextmanager
def late_push_back(module: types.ModuleType) -> Iterator[None]:
    """A module of ours that has `push_back` by name looks it up when called, so that parity.py can note batches."""
    before = module.__dict__["push_back"]

    def push_back(*given: Any) -> float:
        return sgd.push_back(*given)

    module.__dict__["push_back"] = push_back
    try:
        yield
    finally:
        module.__dict__["push_back"] = before


def bare_package(name: str, folder: Path) -> types.ModuleType:
    """A package whose modules can be imported without what its own __init__ would."""
    package = types.ModuleType(name)
    package.__path__ = [str(folder)]
    sys.modules[name] = package
    return package


# ---------------------------------------------------------------- weights, ours and theirs
def make_plain(spec: Spec, seed: int) -> nn.Module:
    """A module as torch has it, with the weights that ours start from."""
    name = choose_model(spec.input_shape) if spec.model == "auto" else spec.model
    module = make_module(name, spec.input_shape, spec.n_classes, spec.n_features)
    pour(start_vector(spec, seed), module, layout(spec))
    return module.to(memory_format=torch.channels_last)  # as ours are, so that both round alike


def pour(vector: Vector, module: nn.Module, plan: Layout) -> None:
    """Weights and statistics."""
    flat, named = torch.from_numpy(vector.copy()), module.state_dict()
    for piece in plan.pieces:
        named[piece.name].copy_(view(flat, piece))


def flatten(module: nn.Module, plan: Layout) -> Vector:
    """All that is trained, in our order: convolutions channels last."""
    named = dict(module.named_parameters())
    parts = []
    for piece in plan.pieces:
        if not piece.is_statistic:
            value = named[piece.name].detach()
            parts.append((value.permute(0, 2, 3, 1) if value.ndim == 4 else value).reshape(-1))
    return torch.cat(parts).numpy()


class Split(nn.Module):
    """Body and head under the names that PFLlib and HtFLlib look for."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.base, self.head = module.body, module.head

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.base(x))


def flatten_split(model: Split, plan: Layout) -> Vector:
    renamed = nn.Module()
    renamed.body, renamed.head = model.base, model.head
    return flatten(renamed, plan)


def count_right(module: nn.Module, x: Tensor, y: NDArray[np.int64]) -> float:
    module.eval()
    with torch.no_grad():
        return float(np.mean(module(x).argmax(dim=1).numpy() == y))
