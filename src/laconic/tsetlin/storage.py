"""A machine in one safetensors file, its states in literal order: no file depends on how the kernels lay them out."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from laconic.files import write_atomically
from laconic.tsetlin.fuzzy import Fuzzy
from laconic.tsetlin.geometry import Shape
from laconic.tsetlin.machine import Machine, build, literal_states

FORMAT = "laconic-tsetlin-1"


def save(machine: Machine, path: str | Path) -> None:
    settings = {
        "shape": asdict(machine.shape),
        "threshold": machine.threshold,
        "specificity": machine.specificity,
        "boost": machine.boost,
        "coalesced": machine.coalesced,
    }
    if machine.fuzzy is not None:
        settings["fuzzy"] = asdict(machine.fuzzy)
    arrays: dict[str, NDArray[Any]] = {
        "states": np.ascontiguousarray(literal_states(machine)),
        "weights": machine.weights,
    }
    if machine.rivalry is not None:
        arrays["rivalry"] = machine.rivalry
    metadata = {"format": FORMAT, "settings": json.dumps(settings)}
    write_atomically(Path(path), to_bytes(arrays, metadata=metadata))


def load(path: str | Path) -> Machine:
    if not Path(path).exists():
        raise FileNotFoundError(f"{path} does not exist; give the path of a machine written by laconic.tsetlin.save")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != FORMAT:
                raise ValueError(f"its format is {metadata.get('format')!r}, {FORMAT!r} was expected")
            settings = json.loads(metadata["settings"])
            states, weights = file.get_tensor("states"), file.get_tensor("weights")
            rivalry = file.get_tensor("rivalry") if "rivalry" in file.keys() else None  # noqa: SIM118  # no mapping
        shape = Shape(**settings.pop("shape"))
        machine = _assemble(shape, states, weights, **settings)
        if rivalry is not None and (rivalry.shape != (machine.n_classes,) * 2 or rivalry.dtype != np.float64):
            raise ValueError(f"its rivalry is {rivalry.dtype} {list(rivalry.shape)}")
        machine.rivalry = rivalry
        return machine
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no sound machine file ({error}); save it again or restore a copy") from error


def _assemble(
    shape: Shape,
    states: NDArray[Any],
    weights: NDArray[Any],
    *,
    threshold: int,
    specificity: float,
    boost: bool,
    coalesced: bool,
    fuzzy: dict[str, int] | None = None,
) -> Machine:
    if weights.ndim != 2 or weights.dtype != np.int32 or states.dtype != np.uint8:
        raise ValueError(f"weights are {weights.dtype} {weights.shape}, states {states.dtype} {states.shape}")
    kind = None if fuzzy is None else Fuzzy(**fuzzy)
    machine = build(shape, *weights.shape, threshold=threshold, specificity=specificity, boost=boost, fuzzy=kind)
    if coalesced:
        machine.coalesced, machine.states = True, machine.states[:1].copy()
    expected = (*machine.states.shape[:2], shape.n_literals)
    if states.shape != expected:
        raise ValueError(f"its states have shape {list(states.shape)}, {list(expected)} was expected")
    machine.states[:, :, shape.literal_slots] = states
    machine.weights[...] = weights
    return machine
