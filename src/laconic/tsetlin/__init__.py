"""Tsetlin Machines: flat, convolutional and coalesced."""

from laconic.tsetlin.clauses import choose_clauses, fire_clauses, pick_clauses
from laconic.tsetlin.composite import clamped_sums, combine, measure_span
from laconic.tsetlin.geometry import Shape
from laconic.tsetlin.machine import (
    Machine,
    build,
    build_coalesced,
    class_sums,
    clause_activity,
    clause_outputs,
    fit,
    include_bits,
    literal_states,
    load_include_bits,
)
from laconic.tsetlin.packing import Packed, pack
from laconic.tsetlin.storage import load, save

__all__ = [
    "Machine",
    "Packed",
    "Shape",
    "build",
    "build_coalesced",
    "choose_clauses",
    "clamped_sums",
    "class_sums",
    "clause_activity",
    "clause_outputs",
    "combine",
    "fire_clauses",
    "fit",
    "include_bits",
    "literal_states",
    "load",
    "load_include_bits",
    "measure_span",
    "pack",
    "pick_clauses",
    "save",
]
