"""Small neural networks as plain vectors: models, local training, precision."""

from laconic.networks.models import MODELS
from laconic.networks.precision import Packed, pack, unpack
from laconic.networks.sgd import (
    Batch,
    Loss,
    Network,
    Trained,
    Training,
    batches,
    build,
    classify,
    cross_entropy,
    fit,
    log_shares,
    outputs,
    pull_to,
)
from laconic.networks.vector import Layout, Live, Part, Piece, Spec, Vector, layout, live, start_vector

__all__ = [
    "MODELS",
    "Batch",
    "Layout",
    "Live",
    "Loss",
    "Network",
    "Packed",
    "Part",
    "Piece",
    "Spec",
    "Trained",
    "Training",
    "Vector",
    "batches",
    "build",
    "classify",
    "cross_entropy",
    "fit",
    "layout",
    "live",
    "log_shares",
    "outputs",
    "pack",
    "pull_to",
    "start_vector",
    "unpack",
]
