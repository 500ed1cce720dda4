"""Networks whose weights are signs: what is trained are latent weights from -1 to 1 behind them; and binary changes."""

from functools import lru_cache
from math import prod, sqrt
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from laconic.networks.sgd import (
    Network,
    Training,
    batches,
    cross_entropy,
    log_shares,
    open_network,
    push_back,
    unless_diverged,
)
from laconic.networks.sketch import as_numbers
from laconic.networks.vector import Layout, Part, Spec, Vector, find_part, layout

SMALLEST, LARGEST = 5e-4, 5e-2  # a size that a layer's change may have
FADE, FADE_SQUARES, TINY = 0.9, 0.999, 1e-8  # Adam's usual constants


def binary_part(spec: Spec) -> Part:
    """All but batch normalisations and their statistics."""
    return find_part(spec, norms=False, statistics=False)


@lru_cache(16)
def sign_worths(spec: Spec) -> Vector:
    """[entry] what a sign counts for by the number of a neuron's inputs, so that signals keep their size; 0: no sign"""
    worths, worth = np.zeros(layout(spec).size, np.float32), 1.0
    for piece in layout(spec).pieces:
        if not (piece.is_norm or piece.is_statistic):
            if len(piece.shape) > 1:  # a bias counts for as much as its weights
                worth = sqrt(2 / prod(piece.shape[1:]))
            worths[piece.start : piece.stop] = worth
    return worths


def binarize(latent: Network) -> Network:
    """The network that predicts."""
    worths = sign_worths(latent.spec)
    weights = np.where(worths > 0, np.where(latent.vector >= 0, worths, -worths), latent.vector)
    return Network(latent.spec, weights, latent.log_prior)


def fit_binary(
    latent: Network, examples: tuple[NDArray[Any], NDArray[np.int64]], rng: np.random.Generator, training: Training
) -> float:
    """Trains the latent weights in place, by Adam, with gradients taken where they are signs; the mean loss."""
    if training.prior:
        latent.log_prior = log_shares(examples[1], latent.spec.n_classes)
    module = open_network(latent, is_training=True)
    module.only("all")
    weights, gradient = module.weights, module.gradient
    worths = torch.from_numpy(sign_worths(latent.spec)[: len(weights)])
    hidden, mean, squares = weights.clone(), torch.zeros_like(weights), torch.zeros_like(weights)
    n_steps, total = 0, 0.0
    for places in batches(len(examples[1]), rng, training.batch, training.epochs, training.steps):
        signs = torch.where(hidden >= 0, worths, -worths)
        weights.copy_(torch.where(worths > 0, signs, hidden))
        total += push_back(module, latent, examples, places, cross_entropy)
        n_steps += 1
        mean.lerp_(gradient, 1 - FADE)
        squares.mul_(FADE_SQUARES).addcmul_(gradient, gradient, value=1 - FADE_SQUARES)
        spread = (squares / (1 - FADE_SQUARES**n_steps)).sqrt_().add_(TINY)
        hidden.addcdiv_(mean, spread, value=-training.rate / (1 - FADE**n_steps))
        hidden.copy_(torch.where(worths > 0, hidden.clamp(-1, 1), hidden))
    weights.copy_(hidden)
    latent.vector = unless_diverged(module.vector(), latent.vector)
    return total / max(n_steps, 1)


# ---------------------------------------------------------------- binary changes, a size for each layer
def layer_lengths(layout: Layout) -> NDArray[np.int64]:
    """[layer] how many weights; weights and biases are layers of their own."""
    return np.array([piece.stop - piece.start for piece in layout.pieces if not piece.is_statistic])


def mean_sizes(change: Vector, lengths: NDArray[np.int64]) -> Vector:
    sums = np.add.reduceat(np.abs(change), np.cumsum(lengths) - lengths)
    return (sums / lengths).astype(np.float32)


def hold_sizes(sizes: NDArray[np.floating[Any]]) -> Vector:
    held: Vector = np.clip(sizes, SMALLEST, LARGEST).astype(np.float32)
    return held


def draw_signs(change: Vector, sizes: Vector, rng: np.random.Generator) -> NDArray[np.bool_]:
    """At random, so that sign times size is the change on average, where the change is not larger than the size."""
    return rng.random(len(change)) < 0.5 * (1 + change / sizes)


def pass_back(
    gradient: Vector, change: Vector, signs: NDArray[np.bool_], sizes: Vector, lengths: NDArray[np.int64]
) -> tuple[Vector, NDArray[np.float64]]:
    """From the gradient on the binary change, that on the change [weight], and that on the sizes [layer]."""
    ratio = change / np.repeat(sizes, lengths)
    is_inside = np.abs(ratio) <= 1
    by_size = gradient * np.where(is_inside, as_numbers(signs) - ratio, np.sign(ratio))
    return gradient * is_inside, np.add.reduceat(by_size.astype(np.float64), np.cumsum(lengths) - lengths)
