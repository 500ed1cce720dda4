"""The subsampled randomised Hadamard transform of pFed1BS, and the whole one, a rotation, of EDEN.

A vector is padded with zeros to a power of 2, each number gets a random sign, the Hadamard transform mixes them all:
then any few of the results tell about all of the vector. Signs and rows follow from a seed, so none of them travels.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.networks.hadamard import hadamard

Vector = NDArray[np.float32]
_SIGNS, _ROWS = 0x51675, 0x20435  # keep these draws apart from all others made from the same seed


@dataclass(frozen=True)
class Sketch:
    """Phi: a linear map from n_weights numbers to n_rows, which keeps squared lengths on average over seeds."""

    n_weights: int  # n
    n_rows: int  # m
    seed: int

    def __post_init__(self) -> None:
        if self.n_weights < 1:
            raise ValueError(f"n_weights = {self.n_weights} must be >= 1")
        n_padded = padded(self.n_weights)
        if not 1 <= self.n_rows <= n_padded:
            raise ValueError(f"n_rows = {self.n_rows} must be from 1 to {n_padded}, n_weights padded to a power of 2")
        if self.seed < 0:
            raise ValueError(f"seed = {self.seed} must be >= 0")

    def forward(self, weights: NDArray[np.floating[Any]]) -> Vector:
        """[row]"""
        mixed = _mix(_sized(weights, self.n_weights), self.seed)
        return mixed[_rows(padded(self.n_weights), self.n_rows, self.seed)] * np.float32(self.n_rows**-0.5)

    def adjoint(self, sketch: NDArray[np.floating[Any]]) -> Vector:
        """[weight] of Phi transposed: the gradient on the weights from one on the sketch."""
        scattered = np.zeros(padded(self.n_weights), np.float32)
        rows = _rows(len(scattered), self.n_rows, self.seed)
        scattered[rows] = _sized(sketch, self.n_rows) * np.float32(self.n_rows**-0.5)
        return _unmix(scattered, self.n_weights, self.seed)


def signs(values: NDArray[np.floating[Any]]) -> NDArray[np.bool_]:
    """True for +1; zero counts as positive, so that a sign is one bit."""
    return values >= 0


def as_numbers(signs: NDArray[np.bool_]) -> Vector:
    return np.where(signs, np.float32(1), np.float32(-1))


def rotate(vector: NDArray[np.floating[Any]], seed: int) -> Vector:
    """[padded(len(vector))] of the same length and nearly normal; unrotate takes it back."""
    mixed = _mix(_sized(vector, np.size(vector)), seed)
    mixed *= np.float32(len(mixed) ** -0.5)
    return mixed


def unrotate(rotated: NDArray[np.floating[Any]], n: int, seed: int) -> Vector:
    """The first n numbers before the rotation; the others were padding."""
    n_padded = padded(n)
    return _unmix(np.multiply(_sized(rotated, n_padded), n_padded**-0.5, dtype=np.float32), n, seed)


def padded(n: int) -> int:
    """The least power of 2 that is not below n."""
    return 1 << (n - 1).bit_length()


def _mix(vector: NDArray[np.floating[Any]], seed: int) -> Vector:
    """H D x, padded."""
    mixed = np.empty(padded(len(vector)), np.float32)
    np.multiply(vector, _signs(len(vector), seed), out=mixed[: len(vector)])
    mixed[len(vector) :] = 0
    hadamard(mixed)
    return mixed


def _unmix(mixed: Vector, n: int, seed: int) -> Vector:
    """The first n numbers of D H y; y is used up."""
    hadamard(mixed)
    return mixed[:n] * _signs(n, seed)


def _sized(vector: NDArray[np.floating[Any]], n: int) -> NDArray[np.floating[Any]]:
    if np.shape(vector) != (n,):
        raise ValueError(f"a vector of {n} numbers was expected, not an array of shape {np.shape(vector)}; flatten it")
    return vector


# Of NumPy's generators only the raw bits stay the same from version to version, and both ends must draw alike.
@lru_cache(maxsize=4)  # a run has one sketch, or a new one every round
def _signs(n: int, seed: int) -> Vector:
    """[n] of +1 and -1, the diagonal of D."""
    words = _draw(_SIGNS, -(-n // 64), seed)
    drawn = np.float32(1) - 2 * np.unpackbits(words.astype("<u8").view(np.uint8), count=n).astype(np.float32)
    drawn.flags.writeable = False
    return drawn


@lru_cache(maxsize=4)
def _rows(n_padded: int, n_rows: int, seed: int) -> NDArray[np.int64]:
    """[n_rows] different rows in rising order, so that memory is read in order."""
    # The first rows of a random permutation, in which rows are sorted by random numbers; in the low bits their own.
    mask = np.uint64(n_padded - 1)
    keys = _draw(_ROWS, n_padded, seed) & ~mask | np.arange(n_padded, dtype=np.uint64)
    drawn = np.sort(np.partition(keys, n_rows - 1)[:n_rows] & mask).astype(np.int64)
    drawn.flags.writeable = False
    return drawn


def _draw(stream: int, n_words: int, seed: int) -> NDArray[np.uint64]:
    bits = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(stream,)))
    return bits.random_raw(n_words)
