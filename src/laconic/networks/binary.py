"""Networks whose weights are signs: what is trained are latent weights from -1 to 1 behind them."""

from functools import lru_cache
from math import prod, sqrt
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from laconic.networks.sgd import Network, Training, batches, cross_entropy, log_shares, open_network, push_back
from laconic.networks.vector import Part, Spec, Vector, find_part, layout

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
    latent.vector = module.vector()
    return total / max(n_steps, 1)
