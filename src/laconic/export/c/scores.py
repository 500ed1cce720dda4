"""name_scores: which machines a model has, how their clauses are kept, and what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from laconic import tsetlin as tm
from laconic.export.c.clauses import FlatLists, FlatMasks, PatchLists, Store
from laconic.export.c.fuzzy import FuzzyLists, FuzzyPatches
from laconic.export.c.heads import write_heads
from laconic.export.c.votes import write_ballot, write_composite
from laconic.models.base import PersonalModel
from laconic.models.file import NETWORKS
from laconic.models.machines import Ballot, ClauseHeads, Composite

KNOWN_FIELDS = {"shape", "threshold", "specificity", "boost", "coalesced", "states", "weights", "rivalry", "fuzzy"}


def list_machines(model: PersonalModel) -> list[tm.Machine]:
    """They all look at the same bits."""
    if isinstance(model, Ballot):
        machines = [model.machine]
    elif isinstance(model, Composite):
        machines = list(model.machines.values())
    elif isinstance(model, ClauseHeads):
        machines = [head.clauses for head in (model.own, model.pooled) if head is not None]
    else:
        other = "an ONNX graph" if model.kind in NETWORKS else "a model file"
        raise ValueError(
            f"a {model.kind} model is not made of Tsetlin Machines alone, as C needs it; keep it as {other}"
        )
    for machine in machines:
        if machine.shape != machines[0].shape:
            raise ValueError(f"machines look at {machines[0].shape} and {machine.shape}; C export needs one shape")
    return machines


def write_scores(model: PersonalModel, nesting: NDArray[np.int64]) -> str:
    """Clauses, the function that evaluates one, and name_scores; nesting: [layer] see encode.find_nesting."""
    store = choose_store(list_machines(model), nesting, counts=isinstance(model, ClauseHeads))
    if isinstance(model, ClauseHeads):
        scores = write_heads(model, store)
    elif isinstance(model, Composite):
        scores = write_composite(model, store)
    else:
        assert isinstance(model, Ballot)
        scores = write_ballot(model, store)
    return store.write_type() + store.write_function() + "\n" + scores


def choose_store(machines: Sequence[tm.Machine], nesting: NDArray[np.int64], *, counts: bool) -> Store:
    """The smallest that knows such clauses; one that does not would be compared in vain."""
    for machine in machines:
        if strange := [each.name for each in fields(machine) if each.name not in KNOWN_FIELDS]:
            raise ValueError(f"a machine has {strange[0]}, which C export does not know; save the model as a file")
    is_flat, is_fuzzy = machines[0].shape.is_flat, any(machine.fuzzy for machine in machines)
    kinds: tuple[type[Store], ...] = (FlatLists, FlatMasks) if is_flat else (PatchLists,)
    if is_fuzzy:
        kinds = (FuzzyLists,) if is_flat else (FuzzyPatches,)
    return min((kind(machines, nesting, counts=counts) for kind in kinds), key=attrgetter("n_bytes"))
