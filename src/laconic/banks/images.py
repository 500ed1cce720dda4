"""A bank for images: what hundreds of whitened patches find in each part, and how that usually varies together.

Filters slide over the image. A response counts by how far it lies beyond half a standard deviation, either way, and is
added up in each part of the image: two numbers a filter and part. The bank's features are those mixtures of all of them
that vary most on pieces of the public photographs, each made to vary as much as any other and independent of it.

What a mirrored bank counts is counted in the mirror image as well: an image and its mirror image have the same
features, so that as few of them say about twice as much of what is in it.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from laconic.banks.filters import GAIN, N_FILTERS, make_filters
from laconic.banks.kernels import BLOCK, divide, factorise, measure_contrast, multiply, rectify, slide
from laconic.banks.photographs import cut_pieces, draw

LARGE = 20  # pixels; filters of smaller images are half as wide as these, and go pixel by pixel
SIDE = 6
LEVELS = 64  # of a response, for each standard deviation
DEAD = LEVELS // 2  # levels either way that count for nothing
ONE = 32  # features are whole 32nds from -1 to 1
SWEEPS = 2  # in which mixtures turn to those that vary most
FINE = 2.0**20
LEAST_PIECES = 1000
BATCH = 128  # images at a time
SEED = 7


class View(NamedTuple):
    """How filters see an image of usual size; all have 4000 numbers."""

    n_filters: int
    n_cells: int  # each way
    stride: int
    is_mirrored: bool

    @property
    def n_numbers(self) -> int:
        return 2 * self.n_filters * self.n_cells**2


# by what a method's setting calls them
VIEWS = {"": View(N_FILTERS, 2, 2, is_mirrored=False), "mirrored": View(N_FILTERS // 4, 4, 1, is_mirrored=True)}


@dataclass(frozen=True, eq=False)
class Scale:
    """Whole numbers to features: the middle becomes 0, two standard deviations become 1."""

    middle: NDArray[np.float64]
    factor: NDArray[np.float64]

    @classmethod
    def measure(cls, numbers: NDArray[np.float64]) -> "Scale":
        """Of whole numbers [example, feature]."""
        n, total, squares = len(numbers), numbers.sum(axis=0), (numbers**2).sum(axis=0)
        return cls(np.rint(total / n), ONE * n / (2 * np.sqrt(np.maximum(n * squares - total**2, n))))

    def apply(self, numbers: NDArray[np.number[Any]]) -> NDArray[np.int8]:
        features: NDArray[np.int8] = np.rint((numbers - self.middle) * self.factor).clip(-ONE, ONE).astype(np.int8)
        return features


@dataclass(frozen=True, eq=False)
class WideBank:
    """All numbers of all filters."""

    view: View
    side: int
    stride: int
    n_layers: int
    filters: NDArray[np.float32]  # [block, pixel and layer, filter]
    scale: Scale

    @property
    def n_features(self) -> int:
        return self.view.n_numbers

    def read(self, images: NDArray[np.uint8]) -> NDArray[np.int8]:
        """[image, feature]; images: [image, row, column, layer]"""
        batches = [images[k : k + BATCH] for k in range(0, len(images), BATCH)]
        features = [self.scale.apply(self.count(batch)) for batch in batches]
        return np.concatenate([np.zeros((0, self.n_features), np.int8), *features])

    def count(self, images: NDArray[np.uint8]) -> NDArray[np.int32]:
        """[image, number] levels added up."""
        counts = np.zeros((len(images), self.view.n_filters, self.view.n_cells**2, 2), np.int32)
        self.add_counts(images, counts)
        if self.view.is_mirrored:
            self.add_counts(images[:, :, ::-1], counts)
        return counts.reshape(len(images), self.n_features)

    def add_counts(self, images: NDArray[np.uint8], counts: NDArray[np.int32]) -> None:
        """counts: [image, filter, cell, sign]"""
        flat = images.reshape(*images.shape[:2], -1).astype(np.float32)
        places = [(size - self.side) // self.stride + 1 for size in images.shape[1:3]]
        sums, contrast = np.empty((*places, len(self.filters) * BLOCK), np.float32), np.empty(places, np.float32)
        for image, found in zip(flat, counts, strict=True):
            slide(image, self.filters, self.side, self.stride, self.n_layers, sums)
            # a filter's sums spread by GAIN for a patch of standard deviation 1
            n_pixels = self.side**2 * self.n_layers
            measure_contrast(image, self.side, self.stride, self.n_layers, n_pixels * LEVELS / GAIN, contrast)
            rectify(sums, contrast, DEAD, self.view.n_cells, found)


@dataclass(frozen=True, eq=False)
class Mixtures:
    """Of a wide bank's features."""

    mixtures: NDArray[np.float32]  # [number, feature] whole numbers below 128
    scale: Scale

    @property
    def n_features(self) -> int:
        return int(self.mixtures.shape[1])

    def mix(self, wide: NDArray[np.int8]) -> NDArray[np.int8]:
        # 4000 numbers up to 32 times whole numbers below 128 stay below 2^24: exact in float32
        return self.scale.apply(wide.astype(np.float32) @ self.mixtures)


@cache
def build_wide(height: int, width: int, n_layers: int, view: View) -> WideBank:
    smallest = min(height, width)
    side, stride = (SIDE, view.stride) if smallest >= LARGE else (max(1, smallest // 2), 1)
    filters = make_filters(side, n_layers)[: view.n_filters].T  # [pixel and layer, filter]
    n_blocks = -(-view.n_filters // BLOCK)
    padded = np.pad(filters, ((0, 0), (0, n_blocks * BLOCK - view.n_filters))).astype(np.float32)
    blocks = np.ascontiguousarray(padded.reshape(len(filters), n_blocks, BLOCK).transpose(1, 0, 2))
    no_scale = Scale(np.zeros(view.n_numbers), np.ones(view.n_numbers))
    bank = WideBank(view, side, stride, n_layers, blocks, no_scale)
    pieces = cut_pieces(np.random.PCG64(SEED), LEAST_PIECES, height, width, n_layers)
    return replace(bank, scale=Scale.measure(bank.count(pieces).astype(np.float64)))


@cache
def build_mixtures(height: int, width: int, n_layers: int, view: View, n_features: int) -> Mixtures:
    wide, stream = build_wide(height, width, n_layers, view), np.random.PCG64(SEED + 1)
    pieces = cut_pieces(stream, max(LEAST_PIECES, 2 * n_features), height, width, n_layers)
    known = wide.read(pieces)
    mixtures = find_mixtures(known.astype(np.float64), n_features, stream)
    largest = np.abs(mixtures).max(axis=0)
    whole = np.rint(mixtures * (127 / largest)).astype(np.float32)
    return Mixtures(whole, Scale.measure((known.astype(np.float32) @ whole).astype(np.float64)))


def find_mixtures(known: NDArray[np.float64], n_features: int, stream: np.random.PCG64) -> NDArray[np.float64]:
    """[number, feature] that vary most on what is known, [example, number] in whole numbers, independent of each other.

    Products with whole numbers are exact sums; the others are taken in one order (see kernels). A factorisation from a
    library would differ from CPU to CPU.
    """
    known = known - np.rint(known.mean(axis=0))
    signs = 2.0 * draw(stream, known.shape[1] * n_features, 2).reshape(-1, n_features) - 1
    seen = known @ signs
    for _ in range(SWEEPS):
        basis = np.rint(make_independent(seen)[0] * FINE)
        mixtures = known.T @ basis
        seen = known @ mixtures
    divide(mixtures, make_independent(seen)[1])
    return mixtures


def make_independent(seen: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """[example, feature] with products that are those of a unit matrix, and what they were divided by."""
    seen, products = seen.copy(), np.empty((seen.shape[1], seen.shape[1]))
    multiply(np.ascontiguousarray(seen.T), seen, products)
    products += 1e-9 * products.diagonal().max() * np.eye(len(products))  # for images too small to vary in so many ways
    factorise(products)
    divide(seen, products)
    return seen, products
