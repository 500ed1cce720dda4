"""Tsetlin Machines: flat, convolutional and coalesced."""

from laconic.tsetlin.clauses import (
    Clauses,
    choose_clauses,
    hold_clauses,
    measure_machine,
    pick_clauses,
    read_clauses,
    read_machine,
)
from laconic.tsetlin.composite import clamped_sums, combine, elect, measure_span
from laconic.tsetlin.fuzzy import Fuzzy
from laconic.tsetlin.geometry import Shape
from laconic.tsetlin.machine import (
    Machine,
    build,
    build_coalesced,
    class_sums,
    clause_activity,
    clause_counts,
    clause_outputs,
    clause_votes,
    include_bits,
    literal_states,
    load_include_bits,
)
from laconic.tsetlin.packing import Packed, pack
from laconic.tsetlin.storage import load, save
from laconic.tsetlin.training import fit

__all__ = [
    "Clauses",
    "Fuzzy",
    "Machine",
    "Packed",
    "Shape",
    "build",
    "build_coalesced",
    "choose_clauses",
    "clamped_sums",
    "class_sums",
    "clause_activity",
    "clause_counts",
    "clause_outputs",
    "clause_votes",
    "combine",
    "elect",
    "fit",
    "hold_clauses",
    "include_bits",
    "literal_states",
    "load",
    "load_include_bits",
    "measure_machine",
    "measure_span",
    "pack",
    "pick_clauses",
    "read_clauses",
    "read_machine",
    "save",
]
