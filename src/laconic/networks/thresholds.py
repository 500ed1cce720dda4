"""A threshold for each row of a network, a filter or a neuron; rows with smaller weights on average are cut out."""

import math

import numpy as np

from laconic.networks.selection import Mask
from laconic.networks.sgd import Network
from laconic.networks.vector import Spec, Vector, layout

FEWEST = 0.01  # a layer of which no more than this share is left gets all its filters back


def list_layers(spec: Spec) -> list[tuple[slice, slice, tuple[int, ...]]]:
    """Of each tensor with more than one axis: its place in the vector, that of its rows among all rows, its shape."""
    layers, stop = [], 0
    for piece in layout(spec).pieces:
        if len(piece.shape) > 1 and not piece.is_statistic:
            start, stop = stop, stop + piece.shape[0]
            layers.append((slice(piece.start, piece.stop), slice(start, stop), piece.shape))
    return layers


def count_rows(spec: Spec) -> int:
    return sum(shape[0] for _, _, shape in list_layers(spec))


def find_kept(spec: Spec, weights: Vector, thresholds: Vector) -> Mask:
    """[row] whether its weights are larger on average than its threshold."""
    kept = np.ones(thresholds.size, np.bool_)
    for place, rows, shape in list_layers(spec):
        sizes = np.abs(weights[place].reshape(shape[0], -1)).mean(axis=1)
        is_above = sizes > thresholds[rows]
        kept[rows] = is_above if is_above.mean() > FEWEST else sizes > 0
    return kept


def cut_out(spec: Spec, vector: Vector, kept: Mask) -> Vector:
    """The vector, 0 in rows that are not kept."""
    cut = vector.copy()
    for place, rows, shape in list_layers(spec):
        cut[place].reshape(shape[0], -1)[~kept[rows]] = 0
    return cut


def pull_thresholds(spec: Spec, weights: Vector, thresholds: Vector, gradient: Vector) -> Vector:
    """[row] the loss's gradient; the step at the threshold counts as a slope of 1 within 1 of it."""
    pull = np.zeros(thresholds.size, np.float32)
    for place, rows, shape in list_layers(spec):
        own, slopes = (vector[place].reshape(shape[0], -1) for vector in (weights, gradient))
        is_near = np.abs(np.abs(own).mean(axis=1) - thresholds[rows]) <= 1
        pull[rows] = -(own * slopes).sum(axis=1) * is_near
    return pull


def shift_weights(network: Network, moved: Vector) -> Vector:
    """A threshold that rose makes its row's weights smaller, by as much, shared out over a kernel or the inputs."""
    vector = network.vector.copy()
    for place, rows, shape in list_layers(network.spec):
        own = vector[place].reshape(shape[0], -1)
        share = math.prod(shape[2:]) if len(shape) > 2 else shape[1]
        own -= (np.sign(own.sum(axis=1)) * moved[rows] / share)[:, None]
    return vector
