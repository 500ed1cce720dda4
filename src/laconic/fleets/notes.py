"""What clients note for the record, on its way from a real node: numbers whose names both ends know, so that no name
travels. A bit says of each number that may be there whether it is, then they follow, 8 bytes each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

MOST_NOTED = 1e12  # how far from 0 a number of the record may lie; further off is no loss, share or count


def list_names(declared: Sequence[str], n_classes: int) -> list[str]:
    """Of every number that may be noted: each name alone, and as a row of classes."""
    return [key for name in declared for key in (name, *(f"{name}[{k}]" for k in range(n_classes)))]


def check_notes(notes: Mapping[str, float], declared: Sequence[str], n_classes: int) -> None:
    """ValueError for what no sound client notes."""
    if strangers := notes.keys() - set(list_names(declared, n_classes)):
        raise ValueError(f"{min(strangers)!r:.60} is not among what its method declares")
    for name, number in notes.items():
        if not (math.isfinite(number) and abs(number) <= MOST_NOTED):
            raise ValueError(f"{name} is {number:g}, a number within ±{MOST_NOTED:g} was expected")


def write_notes(notes: Mapping[str, float], declared: Sequence[str], n_classes: int) -> bytes:
    if not notes:
        return b""
    names = list_names(declared, n_classes)
    numbers = np.array([notes[name] for name in names if name in notes], "<f8")
    return np.packbits([name in notes for name in names]).tobytes() + numbers.tobytes()


def read_notes(carried: Any, declared: Sequence[str], n_classes: int) -> dict[str, float]:
    """ValueError for what no sound node sends."""
    if not isinstance(carried, bytes):
        raise ValueError(f"they are a {type(carried).__name__}, bytes were expected")
    if not carried:
        return {}
    names = list_names(declared, n_classes)
    n_head = (len(names) + 7) // 8
    bits = np.unpackbits(np.frombuffer(carried[:n_head], np.uint8)).astype(bool)
    n_due = n_head + 8 * int(bits.sum())
    if len(carried) != n_due or bits[len(names) :].any():
        raise ValueError(f"{len(carried)} bytes came, {n_due} for at most {len(names)} numbers were expected")
    numbers = np.frombuffer(carried[n_head:], "<f8").tolist()
    notes = dict(zip([name for name, is_there in zip(names, bits, strict=False) if is_there], numbers, strict=True))
    check_notes(notes, declared, n_classes)
    return notes
