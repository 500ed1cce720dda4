"""Networks on a device beside the CPU.

Weights, losses and steps of SGD stay on the CPU, where methods have them: with each mini-batch weights go to the
device, and outputs, statistics and gradients come back. So no method knows of devices.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import functional_call

from laconic.device import CPU


def find_device(name: str) -> str:
    """As torch has it; auto: a graphics card if there is one. ValueError in words where it is not to be had."""
    has_mps = torch.backends.mps.is_available()
    n_cards = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "auto":
        return "cuda" if n_cards else "mps" if has_mps else CPU
    if name.startswith("cuda") and int(name.partition(":")[2] or 0) >= n_cards:
        cards = f"cuda:0 to cuda:{n_cards - 1}" if n_cards else "no card that CUDA can use"
        raise ValueError(
            f'fleet.device = "{name}": torch {torch.__version__} finds {cards} here; say "auto" to take what there is, '
            'or "cpu"'
        )
    if name == "mps" and not has_mps:
        raise ValueError(
            'fleet.device = "mps": torch finds no Metal here, which Macs with a chip of Apple\'s have; say "auto" to '
            'take what there is, or "cpu"'
        )
    return name


def run_on(device: str, module: nn.Module, x: Tensor) -> Tensor:
    """What the module makes of x, left on the device; gradients find their way to the module's own parameters."""
    there = {name: value.to(device) for name, value in (*module.named_parameters(), *module.named_buffers())}
    made: Tensor = functional_call(module, there, (x.to(device),))
    for name, buffer in module.named_buffers():
        buffer.copy_(there[name])  # batch normalisation has changed its statistics there
    return made
