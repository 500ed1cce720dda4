"""Small neural networks as plain vectors: models, local training, precision."""

from laconic.networks.models import MODELS
from laconic.networks.precision import Packed, pack, unpack
from laconic.networks.sgd import (
    Batch,
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
)
from laconic.networks.vector import (
    Layout,
    Live,
    Part,
    Piece,
    Spec,
    Vector,
    count_head_inputs,
    layout,
    live,
    start_vector,
)

__all__ = [
    "MODELS",
    "Batch",
    "Layout",
    "Live",
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
    "count_head_inputs",
    "cross_entropy",
    "fit",
    "layout",
    "live",
    "log_shares",
    "outputs",
    "pack",
    "start_vector",
    "unpack",
]
