"""Statistics of batch normalisation, taken anew from a client's own examples.

A round of a few batches moves them little (five batches at torch's momentum leave 59 % of the old), so that a network
is tested with those of weights that it no longer has; taking them anew costs forward passes and no bytes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from laconic.networks.sgd import EVALUATION_BATCH, Network, open_network, unless_diverged


def renew_statistics(network: Network, x: NDArray[Any]) -> Network:
    """The network with the statistics that these examples give; its weights stay."""
    module = open_network(network, is_training=True)
    norms = [layer for layer in module.module.modules() if isinstance(layer, nn.modules.batchnorm._BatchNorm)]
    if not norms or len(x) < 2:  # one example has no spread
        return network
    momenta = [layer.momentum for layer in norms]
    for layer in norms:
        layer.reset_running_stats()
        layer.momentum = None  # a plain mean over batches
    try:
        with torch.no_grad():
            for batch in np.array_split(x, -(-len(x) // EVALUATION_BATCH)):
                module.run(module.as_tensor(batch))
    finally:  # the module is this thread's for all networks of the kind
        for layer, momentum in zip(norms, momenta, strict=True):
            layer.momentum = momentum
    return replace(network, vector=unless_diverged(module.vector(), network.vector))
