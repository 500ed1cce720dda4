"""name_scores: which machines a model has, how their clauses are kept, and what is made of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from laconic import tsetlin as tm
from laconic.export.c.clauses import check_known, choose_store, read_clauses
from laconic.export.c.heads import write_heads
from laconic.export.c.votes import write_ballot, write_composite
from laconic.models.base import PersonalModel
from laconic.models.machines import Ballot, ClauseHeads, Composite


def list_machines(model: PersonalModel) -> list[tm.Machine]:
    """They all look at the same bits."""
    if isinstance(model, Ballot):
        machines = [model.machine]
    elif isinstance(model, Composite):
        machines = list(model.machines.values())
    elif isinstance(model, ClauseHeads):
        machines = [head.clauses for head in (model.own, model.pooled) if head is not None]
    else:
        raise ValueError(f"a {model.kind} model has no Tsetlin Machine, which is all that C export writes; use ONNX")
    for machine in machines:
        check_known(machine)
        if machine.shape != machines[0].shape:
            raise ValueError(f"machines look at {machines[0].shape} and {machine.shape}; C export needs one shape")
    return machines


def write_scores(model: PersonalModel, nesting: NDArray[np.int64]) -> str:
    """Clauses, the function that evaluates one, and name_scores; nesting: [layer] see encode.find_nesting."""
    machines = list_machines(model)
    read = [read_clauses(machine, nesting) for machine in machines]
    sound = [clause for clauses in read for clause in clauses if clause is not None]
    store = choose_store(machines[0].shape, sound, counts=isinstance(model, ClauseHeads))
    if isinstance(model, ClauseHeads):
        scores = write_heads(model, store, read)
    elif isinstance(model, Composite):
        scores = write_composite(model, store, read)
    else:
        assert isinstance(model, Ballot)
        scores = write_ballot(model, store, read[0])
    return store.write_type() + store.write_function() + "\n" + scores
