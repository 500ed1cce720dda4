"""What no honest client sends, whatever the method: looked for before a reply reaches the server's half of a method."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from laconic.wire import Message, Sparse, bound

MOST_EXAMPLES = 10**7  # that any one client is believed to have; who claims more would outweigh all others


class Limits(NamedTuple):
    """How large messages of one class may be."""

    n_bytes: int
    shapes: dict[str, list[tuple[int, ...]]]  # of its arrays, at their largest; a Sparse has two


def find_limits(costliest: Sequence[Message]) -> dict[type[Message], Limits]:
    limits: dict[type[Message], Limits] = {}
    for message in costliest:
        known = limits.get(type(message), Limits(0, {}))
        if bound(message) > known.n_bytes:
            shapes = {field.name: _shapes(getattr(message, field.name)) for field in message.schema}
            limits[type(message)] = Limits(bound(message), shapes)
    return limits


def check_sound(reply: Message, limits: Limits | None) -> None:
    """ValueError in words; names tell what a number means (n_... and per_class count, accuracy is a share)."""
    for name, kind, _ in reply.schema:
        value = getattr(reply, name)
        if value is None:
            continue
        numbers = value.values if isinstance(value, Sparse) else value
        if kind in ("float", "floats", "sparse") and not np.isfinite(numbers).all():
            raise ValueError(f"{name} is not finite")
        if name == "accuracy" and not 0 <= value <= 1:
            raise ValueError(f"accuracy is {value:g}, a share from 0 to 1 was expected")
        if (name.startswith("n_") or name == "per_class") and kind in ("int", "ints"):
            low, high = int(np.min(value, initial=0)), int(np.max(value, initial=0))
            if low < 0 or high > MOST_EXAMPLES:
                raise ValueError(f"{name} has {low if low < 0 else high}, 0 to {MOST_EXAMPLES} were expected")
        due = limits.shapes.get(name, []) if limits else []
        for shape, largest in zip(_shapes(value), due, strict=False):
            is_within = all(length <= most for length, most in zip(shape, largest, strict=False))
            if len(shape) != len(largest) or not is_within:
                raise ValueError(f"{name} has shape {shape}, at most {largest} was expected")


def _shapes(value: object) -> list[tuple[int, ...]]:
    arrays = value if isinstance(value, Sparse) else (value,)
    return [array.shape for array in arrays if isinstance(array, np.ndarray)]
