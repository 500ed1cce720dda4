"""A network as one flat vector, and a live module that is a view of it.

The vector holds the body's parameters, then the head's, then the statistics of batch normalisation. Convolutions lie
there channels last, the order in which they are fastest.
"""

from __future__ import annotations

import ctypes
import platform
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from laconic.device import CPU, chosen
from laconic.networks.device import run_on
from laconic.networks.models import choose_model, make_module

Vector = NDArray[np.float32]
MAX_ALIVE = 8  # modules a thread keeps
# of a field that came later: states leave it out at its default, and so are what they were before (see laconic.state)
LATER = {"later": True}
STATISTICS = ("running_mean", "running_var")
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # as malloc.h has them
MOST_ON_HEAP, MOST_IDLE = 1 << 25, 1 << 27  # bytes: an array that is not given back at once; what a heap may keep


@dataclass(frozen=True)
class Spec:
    """Which network: enough to build it anywhere."""

    model: str  # see models.make_module
    input_shape: tuple[int, ...]  # of one example: (features,), (height, width) or (height, width, channels)
    n_classes: int
    peak: float = 0.0  # the largest value of a pixel, which becomes 1; 0: inputs stay as they are
    head: str = "head"  # the last layer's name in the module
    n_features: int = 0  # that the head gets from any body; 0: as many as the body makes
    floor: float = field(default=-1.0, metadata=LATER)  # what a pixel of 0 becomes, where the peak is known
    start: str = field(default="torch", metadata=LATER)  # how convolutions begin, see Training.start


class Piece(NamedTuple):
    """A parameter or a statistic, and its place in the vector."""

    name: str
    shape: tuple[int, ...]  # torch's
    start: int
    stop: int
    is_head: bool
    is_norm: bool  # weight or bias of a batch normalisation
    is_statistic: bool


@dataclass(frozen=True)
class Part:
    """Some entries of the vector, whole pieces."""

    mask: NDArray[np.bool_]  # [entry of the vector]
    # in the part: where each output channel's or neuron's entries begin; a statistic's too
    row_starts: NDArray[np.int64]

    @cached_property
    def size(self) -> int:
        return int(np.count_nonzero(self.mask))

    @cached_property
    def stretch(self) -> slice | None:
        """Where it lies, if that is in one stretch: taken from there five times as fast as by a mask."""
        first = int(self.mask.argmax())
        where = slice(first, first + self.size)
        return where if self.mask[where].all() else None

    def take(self, values: Vector) -> Vector:
        """A copy of its entries. values: [entry of the vector], or without the statistics at its end."""
        if self.stretch is None:
            return values[self.mask[: values.size]]
        return values[self.stretch].copy()

    def put(self, values: Vector, into: Vector) -> Vector:
        """A copy of `into` with these as its entries."""
        vector = into.copy()
        vector[self.mask if self.stretch is None else self.stretch] = values
        return vector


@dataclass(frozen=True)
class Layout:
    pieces: tuple[Piece, ...]

    @cached_property
    def size(self) -> int:
        return self.pieces[-1].stop

    @cached_property
    def n_trained(self) -> int:
        """Parameters; statistics come after."""
        return max(piece.stop for piece in self.pieces if not piece.is_statistic)

    @cached_property
    def n_body(self) -> int:
        return max((piece.stop for piece in self.pieces if not piece.is_head and not piece.is_statistic), default=0)

    @cached_property
    def linear_head(self) -> tuple[int, int]:
        """Classes and features of a head that is one linear layer: its weights [class, feature], then its biases."""
        shapes = [piece.shape for piece in self.pieces if piece.is_head]
        if [len(shape) for shape in shapes] != [2, 1]:
            raise ValueError(f"the head has parameters of shapes {shapes}; one linear layer with biases was expected")
        return shapes[0][0], shapes[0][1]

    def part(self, *, body: bool = True, head: bool = True, norms: bool = True, statistics: bool = True) -> Part:
        """norms: parameters of batch normalisations in the body."""

        def is_in(piece: Piece) -> bool:
            if piece.is_statistic:
                return statistics
            return head if piece.is_head else body and (norms or not piece.is_norm)

        mask, starts, end = np.zeros(self.size, np.bool_), list[int](), 0
        for piece in filter(is_in, self.pieces):
            mask[piece.start : piece.stop] = True
            n_rows = piece.shape[0] if len(piece.shape) > 1 else 1
            if piece.is_statistic:  # a scale each: beside a large variance a small one would become 0, or less
                n_rows = prod(piece.shape)
            starts += range(end, end + piece.stop - piece.start, (piece.stop - piece.start) // n_rows)
            end += piece.stop - piece.start
        return Part(mask, np.array(starts, np.int64))

    def locate(self, part: Part) -> list[tuple[Piece, slice]]:
        """The pieces that make up a part, and where each lies in it."""
        found, stop = [], 0
        for piece in self.pieces:
            if part.mask[piece.start]:
                start, stop = stop, stop + piece.stop - piece.start
                found.append((piece, slice(start, stop)))
        return found


class Live:
    """A module whose parameters, gradients and statistics are views of `flat` and `gradient`."""

    def __init__(self, spec: Spec) -> None:
        torch.set_num_threads(1)  # workers are many, and the order of sums must not depend on cores
        keep_memory()
        self.spec = spec
        name = choose_model(spec.input_shape) if spec.model == "auto" else spec.model
        self.module = make_module(name, spec.input_shape, spec.n_classes, spec.n_features)
        try:
            head = self.module.get_submodule(spec.head)
        except AttributeError:
            names = [name for name, _ in self.module.named_children()]
            raise ValueError(
                f'model "{spec.model}" has no layer "{spec.head}"; name its head: {", ".join(names)}'
            ) from None
        if any(isinstance(layer, nn.modules.dropout._DropoutNd) for layer in self.module.modules()):
            raise ValueError(f'model "{spec.model}" has dropout, whose draws would not follow the seed; leave it out')
        n_features = getattr(head, "in_features", spec.n_features)
        if spec.n_features and n_features != spec.n_features:
            raise ValueError(f'the head of "{spec.model}" takes {n_features} features, {spec.n_features} were expected')
        if spec.start == "kaiming":
            start_by_fan_out(self.module)
        self.layout = describe(self.module, head)
        self.flat = torch.empty(self.layout.size)
        self.gradient = torch.zeros(self.layout.n_trained)
        self._bind()
        self._features: Tensor | None = None
        head.register_forward_pre_hook(self._keep_features)

    @property
    def weights(self) -> Tensor:
        """All that is trained, flat."""
        return self.flat[: self.layout.n_trained]

    def pour(self, vector: Vector) -> None:
        self.flat.copy_(torch.from_numpy(readable(vector)))

    def vector(self) -> Vector:
        copied: Vector = self.flat.numpy().copy()
        return copied

    def run(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Features [example, feature] and logits [example, class]."""
        device = chosen()
        logits: Tensor = self.module(x) if device == CPU else run_on(device, self.module, x)
        assert self._features is not None
        features, self._features = self._features, None
        return features.to(CPU), logits.to(CPU)

    def as_tensor(self, x: NDArray[Any]) -> Tensor:
        return arrange(torch.from_numpy(readable(x)), self.spec)

    def only(self, part: str) -> slice:
        """Where "all", the "body" or the "head" lies among the weights; what is not in it is frozen from now on."""
        n_body, n_trained = self.layout.n_body, self.layout.n_trained
        where = {"all": slice(0, n_trained), "body": slice(0, n_body), "head": slice(n_body, n_trained)}[part]
        for piece, parameter in self._parameters():
            parameter.requires_grad_(where.start <= piece.start < where.stop)
        return where

    def _keep_features(self, _: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        self._features = inputs[0]

    def _parameters(self) -> Iterator[tuple[Piece, nn.Parameter]]:
        named = dict(self.module.named_parameters())
        yield from ((piece, named[piece.name]) for piece in self.layout.pieces if not piece.is_statistic)

    def _bind(self) -> None:
        parameters, buffers = dict(self.module.named_parameters()), dict(self.module.named_buffers())
        for piece in self.layout.pieces:
            mine = view(self.flat, piece)
            if piece.is_statistic:
                mine.copy_(buffers[piece.name])
                owner, _, name = piece.name.rpartition(".")
                self.module.get_submodule(owner)._buffers[name] = mine
            else:
                parameter = parameters[piece.name]
                mine.copy_(parameter.data)
                parameter.data, parameter.grad = mine, view(self.gradient, piece)


def arrange(x: Tensor, spec: Spec) -> Tensor:
    """Examples as a module takes them."""
    values = x.float()
    if spec.peak:
        values = values * ((1 - spec.floor) / spec.peak) + spec.floor
    if len(spec.input_shape) == 1:
        return values
    pixels = values.unsqueeze(3) if len(spec.input_shape) == 2 else values  # torch is fastest with channels last
    return pixels.permute(0, 3, 1, 2)


def start_by_fan_out(module: nn.Module) -> None:
    """As the authors of residual networks have it; what is no convolution stays as torch drew it."""
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")


def describe(module: nn.Module, head: nn.Module) -> Layout:
    of_head = {id(parameter) for parameter in head.parameters()}
    of_norms = {
        id(parameter)
        for layer in module.modules()
        if isinstance(layer, nn.modules.batchnorm._BatchNorm)
        for parameter in layer.parameters()
    }
    found = [
        (name, tuple(value.shape), id(value) in of_head, id(value) in of_norms, False)
        for name, value in module.named_parameters()
    ]
    found += [
        (name, tuple(value.shape), False, False, True)
        for name, value in module.named_buffers()
        if name.rpartition(".")[2] in STATISTICS
    ]
    pieces, start = [], 0
    for name, shape, is_head, is_norm, is_statistic in sorted(found, key=lambda one: (one[4], one[2])):
        pieces.append(Piece(name, shape, start, start + prod(shape), is_head, is_norm, is_statistic))
        start += prod(shape)
    return Layout(tuple(pieces))


def view(flat: Tensor, piece: Piece) -> Tensor:
    segment = flat[piece.start : piece.stop]
    if len(piece.shape) != 4:
        return segment.view(piece.shape)
    n_out, n_in, height, width = piece.shape
    return segment.view(n_out, height, width, n_in).permute(0, 3, 1, 2)


@cache
def keep_memory() -> None:
    """Memory that a step has freed stays for the next: asking the system for it again took up to a sixth of a step."""
    if platform.libc_ver()[0] == "glibc":  # others have no such thing to set
        allocator = ctypes.CDLL(None)
        allocator.mallopt(M_MMAP_THRESHOLD, MOST_ON_HEAP)
        allocator.mallopt(M_TRIM_THRESHOLD, MOST_IDLE)


def readable(array: NDArray[Any]) -> NDArray[Any]:
    """torch warns of arrays that may not be written to, as those that came in messages are; nothing here writes."""
    return array if array.flags.writeable else array.copy()


_alive = threading.local()
_drawing = threading.Lock()  # modules draw their first weights from torch's one generator, which all threads share


def make_live(spec: Spec, seed: int) -> Live:
    with _drawing, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Live(spec)


def live(spec: Spec, role: str = "") -> Live:
    """This thread's module for these networks, what was in it is left over; role: one beside it, for two at once."""
    modules: OrderedDict[tuple[Spec, str], Live] = _alive.__dict__.setdefault("modules", OrderedDict())
    key = (spec, role)
    if key not in modules:
        modules[key] = make_live(spec, 0)
        if len(modules) > MAX_ALIVE:
            modules.popitem(last=False)
    modules.move_to_end(key)
    return modules[key]


@lru_cache(64)
def layout(spec: Spec) -> Layout:
    return live(spec).layout


@lru_cache(64)
def find_part(spec: Spec, *, body: bool = True, head: bool = True, norms: bool = True, statistics: bool = True) -> Part:
    return layout(spec).part(body=body, head=head, norms=norms, statistics=statistics)


def count_head_inputs(spec: Spec) -> int:
    """Features that the head gets."""
    return next(piece.shape[1] for piece in layout(spec).pieces if piece.is_head and len(piece.shape) > 1)


@lru_cache(16)
def start_vector(spec: Spec, seed: int) -> Vector:
    """The same for everyone who knows the seed; may not be written to."""
    vector = make_live(spec, seed).vector()
    vector.setflags(write=False)
    return vector
