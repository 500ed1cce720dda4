"""Class prototypes: means of features, which dimensions of them are kept, and targets trained at the server."""

from functools import lru_cache
from itertools import combinations, islice
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  # the name everyone gives it

from laconic.networks.precision import Packed, pack, unpack
from laconic.networks.vector import Layout, Vector, readable

Masks = NDArray[np.bool_]  # [class, dimension]
N_TRIED = 400  # words tried for each class; more make distances no larger for the sizes in use


# ---------------------------------------------------------------- which dimensions a class keeps
@lru_cache(16)
def choose_masks(n_classes: int, dim: int, kept: int) -> Masks:
    """[class, dimension]: so many kept for each, as different between classes as a search finds; the same everywhere.

    Words of equal weight over blocks of dimensions. Blocks are as long as they can be and still be as many as classes.
    """
    if not 0 < kept <= dim:
        raise ValueError(f"{kept} of {dim} dimensions cannot be kept; 1 to {dim} can")
    sizes = [size for size in range(1, kept + 1) if dim % size == 0 == kept % size and dim // size >= n_classes]
    block = max(sizes, default=1)
    masks = np.repeat(choose_words(n_classes, dim // block, kept // block), block, axis=1)
    masks.setflags(write=False)
    return masks


def choose_words(n_words: int, length: int, weight: int) -> NDArray[np.bool_]:
    """[word, place]: each as far from those before it, in its nearest and then on average, as any that was tried."""
    words = np.zeros((n_words, length), np.bool_)
    if n_words * weight <= length:  # room for all to have nothing in common
        for k in range(n_words):
            words[k, k * weight : (k + 1) * weight] = True
        return words
    rng = np.random.default_rng(0)
    for k in range(n_words):
        tried = propose(length, weight, rng)
        if k:
            distances = np.count_nonzero(tried[:, None] != words[:k], axis=2)
            best = max(range(len(tried)), key=lambda one: (distances[one].min(), distances[one].mean()))
        words[k] = tried[best if k else 0]
    return words


def propose(length: int, weight: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """[word, place] all words of the weight if they are few, else some of them."""
    places = list(islice(combinations(range(length), weight), N_TRIED + 1))
    if len(places) > N_TRIED:
        places = [tuple(rng.permutation(length)[:weight]) for _ in range(N_TRIED)]
    words = np.zeros((len(places), length), np.bool_)
    np.put_along_axis(words, np.array(places, np.int64), True, axis=1)
    return words


# ---------------------------------------------------------------- rows, the kept dimensions alone
def write_rows(rows: Vector, masks: Masks, kept: str) -> Packed:
    return pack(rows[masks], find_starts(masks), kept)


def read_rows(packed: Packed, masks: Masks) -> Vector:
    """[row, dimension]"""
    rows = np.zeros(masks.shape, np.float32)
    rows[masks] = unpack(packed, find_starts(masks))
    return rows


def find_starts(masks: Masks) -> NDArray[np.int64]:
    """Where each row begins when the kept dimensions of all stand in line."""
    return np.arange(len(masks), dtype=np.int64) * np.count_nonzero(masks[:1])


def find_error(rows: Vector, masks: Masks, kept: str) -> float:
    """Length of what rounding takes, as a share of the rows' own."""
    exact = rows[masks].astype(np.float64)
    lost = unpack(write_rows(rows, masks, kept), find_starts(masks)) - exact
    return float(np.linalg.norm(lost)) / max(float(np.linalg.norm(exact)), 1e-30)


# ---------------------------------------------------------------- sums and distances
def sum_features(features: Vector, labels: NDArray[np.int64], n_classes: int) -> tuple[Vector, NDArray[np.int64]]:
    """[class, dimension] sums, [class] counts."""
    sums = np.zeros((n_classes, features.shape[1]))
    np.add.at(sums, labels, features)
    return sums.astype(np.float32), np.bincount(labels, minlength=n_classes)


def nearest(
    features: Vector, targets: Vector, has_target: NDArray[np.bool_], masks: Masks | None = None
) -> NDArray[np.int64]:
    """[example] the class whose target is nearest, among those that have one; masks: in these dimensions of each."""
    classes = np.flatnonzero(has_target)
    distances = find_distances(features, targets[classes])
    if masks is not None:  # without, the example's own norm is the same for all classes
        distances += features.astype(np.float64) ** 2 @ masks[classes].T
    winners: NDArray[np.int64] = classes[distances.argmin(axis=1)]
    return winners


def find_distances(features: Vector, targets: Vector) -> NDArray[np.float64]:
    """[example, target] squared, less the square of the example's own features."""
    points, chosen = features.astype(np.float64), targets.astype(np.float64)
    distances: NDArray[np.float64] = (chosen**2).sum(axis=1) - 2 * points @ chosen.T
    return distances


def cosines(rows: Vector) -> NDArray[np.float64]:
    """[i, j] of every two rows; 0 with one that is zero."""
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    units = rows / np.where(lengths > 0, lengths, 1)
    alike: NDArray[np.float64] = units @ units.T
    return alike


def head_norms(vector: Vector, layout: Layout) -> Vector:
    """[class] lengths of the head's weights, which grow with the examples of a class."""
    *_, piece = (piece for piece in layout.pieces if piece.is_head and len(piece.shape) > 1)
    lengths: Vector = np.linalg.norm(vector[piece.start : piece.stop].reshape(piece.shape[0], -1), axis=1)
    return lengths


# ---------------------------------------------------------------- FedTGP's targets
class TargetMaker(NamedTuple):
    """A small network from a vector of each class to its target."""

    seeds: Vector  # [class, dimension]
    inner: Vector  # [dimension, dimension]
    inner_bias: Vector
    outer: Vector
    outer_bias: Vector

    def make(self) -> Vector:
        """[class, dimension]"""
        torch.set_num_threads(1)  # as for modules: the order of sums must not depend on cores
        with torch.no_grad():
            return make_targets(*(torch.from_numpy(readable(part)) for part in self)).numpy()


def start_maker(n_classes: int, dim: int, rng: np.random.Generator) -> TargetMaker:
    def uniform(*shape: int) -> Vector:
        limit = 1 / np.sqrt(dim)
        return rng.uniform(-limit, limit, shape).astype(np.float32)

    seeds = rng.standard_normal((n_classes, dim)).astype(np.float32)
    return TargetMaker(seeds, uniform(dim, dim), uniform(dim), uniform(dim, dim), uniform(dim))


def make_targets(seeds: Tensor, inner: Tensor, inner_bias: Tensor, outer: Tensor, outer_bias: Tensor) -> Tensor:
    return F.linear(torch.relu(F.linear(seeds, inner, inner_bias)), outer, outer_bias)


def choose_margin(points: Vector, labels: NDArray[np.int64], largest: float) -> float:
    """The widest gap from a class to its nearest neighbour, by the means of what came; never above `largest`."""
    means = np.stack([points[labels == label].mean(axis=0) for label in np.unique(labels)])
    if len(means) < 2:
        return largest
    gaps = np.linalg.norm(means[:, None] - means[None], axis=2) + np.where(np.eye(len(means)), np.inf, 0)
    return float(min(largest, gaps.min(axis=1).max()))


def train_maker(
    maker: TargetMaker,
    points: Vector,
    labels: NDArray[np.int64],
    masks: Masks,
    rng: np.random.Generator,
    *,
    margin: float,
    epochs: int,
    batch: int,
    rate: float,
) -> TargetMaker:
    """Draws each target to the points of its class and, by the margin, away from all others."""
    torch.set_num_threads(1)
    parts = [torch.from_numpy(readable(part)).clone().requires_grad_() for part in maker]
    kept, x, y = torch.from_numpy(readable(masks)), torch.from_numpy(readable(points)), torch.from_numpy(labels)
    optimiser = torch.optim.SGD(parts, lr=rate)
    for _ in range(epochs):
        for places in torch.split(torch.from_numpy(rng.permutation(len(y))), batch):
            gaps = x[places, None] - make_targets(*parts) * kept
            distances = (gaps**2).sum(dim=2).clamp_min(1e-12).sqrt()  # the root has no slope at 0
            distances = distances + margin * F.one_hot(y[places], len(kept))
            optimiser.zero_grad()
            F.cross_entropy(-distances, y[places]).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    return TargetMaker(*(part.detach().numpy() for part in parts))
