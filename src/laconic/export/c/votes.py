"""name_scores of models whose clauses vote: one machine, or several that vote together.

Python divides the sums of a composite by how far they spread; C does the same divisions and additions of doubles in the
same order, so that IEEE 754 rounds them alike and even ties fall alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from laconic import tsetlin as tm
from laconic.export.c.clauses import Codes, Store
from laconic.export.c.tables import fit_integer, write_table
from laconic.models.machines import Ballot, Composite
from laconic.tsetlin.balance import choose_bias

OWN_SUMS = """
static inline void name_MACHINE_sums(const uint32_t *bits, int32_t *sums)
{
    const name_code *clause = name_MACHINE_clauses;
    int label, k, n = 0;
    for (label = 0; label < NAME_CLASSES; label++) {
        int32_t sum = name_MACHINE_bias[label];
        for (k = 0; k < name_MACHINE_sizes[label]; k++, n++)
            sum += name_clause(bits, &clause) * (int32_t)name_MACHINE_votes[n];
        sums[label] = sum;
    }
}
"""

SHARED_SUMS = """
static inline void name_MACHINE_sums(const uint32_t *bits, int32_t *sums)
{
    const name_code *clause = name_MACHINE_clauses;
    int label, k;
    for (label = 0; label < NAME_CLASSES; label++)
        sums[label] = name_MACHINE_bias[label];
    for (k = 0; k < N_CLAUSES; k++) {
        const int strength = name_clause(bits, &clause);
        for (label = 0; label < NAME_CLASSES && strength; label++)
            sums[label] += strength * (int32_t)name_MACHINE_votes[k * NAME_CLASSES + label];
    }
}
"""

BALLOT = """
static inline void name_scores(const name_value *row, name_score *scores)
{
    uint32_t bits[NAME_WORDS];
    name_encode(row, bits);
    name_machine_sums(bits, scores);
ONLY}
"""

ONLY = """    {
        int label;
        for (label = 0; label < NAME_CLASSES; label++)
            if (!name_among[label])
                scores[label] = NAME_NEVER;
    }
"""

CLAMP = """
static inline void name_clamp(int32_t *sums, int32_t most)
{
    int label;
    for (label = 0; label < NAME_CLASSES; label++)
        sums[label] = sums[label] < -most ? -most : sums[label] > most ? most : sums[label];
}

static inline void name_add(name_score *scores, const int32_t *sums, double span)
{
    int label;
    for (label = 0; label < NAME_CLASSES; label++)
        scores[label] += (double)sums[label] / span;
}
"""

SPAN = """
/* From the lowest to the highest sum; 1 where all are equal. */
static inline double name_span(const int32_t *sums)
{
    int32_t low = sums[0], high = sums[0];
    int label;
    for (label = 1; label < NAME_CLASSES; label++) {
        low = sums[label] < low ? sums[label] : low;
        high = sums[label] > high ? sums[label] : high;
    }
    return low == high ? 1.0 : (double)high - (double)low;
}
"""

COMPOSITE = """
static inline void name_scores(const name_value *row, name_score *scores)
{
    uint32_t bits[NAME_WORDS];
    int32_t sums[NAME_CLASSES];
    int k;
    name_encode(row, bits);
    for (k = 0; k < NAME_CLASSES; k++)
        scores[k] = 0;
CALLSONLY}
"""


def write_ballot(model: Ballot, store: Store) -> str:
    among, only = write_among(model.among)
    return write_sums("machine", model.machine, store, store.clauses[0]) + among + BALLOT.replace("ONLY", only)


def write_composite(model: Composite, store: Store) -> str:
    text, calls = CLAMP.lstrip(), ""
    for k, (machine, clauses) in enumerate(zip(model.machines.values(), store.clauses, strict=True)):
        text += write_sums(f"machine{k}", machine, store, clauses)
        span = "name_span(sums)" if model.spans is None else repr(float(model.spans[k]))
        calls += f"    name_machine{k}_sums(bits, sums);\n    name_clamp(sums, {machine.threshold});\n"
        calls += f"    name_add(scores, sums, {span});\n"
    among, only = write_among(model.among)
    return (
        text + (SPAN if model.spans is None else "") + among + COMPOSITE.replace("CALLS", calls).replace("ONLY", only)
    )


def write_sums(name: str, machine: tm.Machine, store: Store, clauses: Sequence[Codes | None]) -> str:
    """A function from bits to the sums of a machine; clauses that never hold or say nothing stay away."""
    bias = np.zeros(machine.n_classes, int) if machine.rivalry is None else choose_bias(machine.rivalry)
    votes = machine.votes.T if machine.coalesced else machine.votes.reshape(-1, 1)
    kept = {k: clause for k, clause in enumerate(clauses) if clause is not None and votes[k].any()}
    votes = votes[[*kept]]
    each = "Votes of each clause for every class." if machine.coalesced else "The vote of each clause for its class."
    tables = [
        store.write_clauses(f"name_{name}_clauses", [*kept.values()]),
        write_table(fit_integer(votes.reshape(-1)), f"name_{name}_votes", votes, each),
        write_table(fit_integer(bias), f"name_{name}_bias", bias, "Where the sums of the classes begin."),
    ]
    if machine.coalesced:
        return "".join([*tables, SHARED_SUMS.replace("MACHINE", name).replace("N_CLAUSES", str(len(kept)))])
    sizes = np.bincount(np.array([*kept], int) // machine.n_clauses, minlength=machine.n_classes)
    tables.append(write_table(fit_integer(sizes), f"name_{name}_sizes", sizes, "How many clauses are each class's."))
    return "".join([*tables, OWN_SUMS.replace("MACHINE", name)])


def write_among(among: NDArray[np.bool_] | None) -> tuple[str, str]:
    """The table of classes that may be chosen, and the lines that look at it; nothing where all may."""
    if among is None or among.all():
        return "", ""
    return write_table("uint8_t", "name_among", among, "Classes that may be chosen."), ONLY
