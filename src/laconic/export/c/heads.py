"""name_scores of linear heads on clauses, as ClausePool has them.

What a clause says is a whole number of 1/32, and a head's row whole numbers of a power of two, so sums over clauses are
integers and exact, as they are in Python. Logs of shares lie on no grid: the last additions, three for each class, are
of doubles in Python's order, and IEEE 754 rounds them alike, so that even ties fall alike; a fixed point of our own
could not promise that. No product is rounded (units and blends are powers of two), so compilers may fuse it with a sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import frexp

import numpy as np
from numpy.typing import NDArray

from laconic.export.c.clauses import Codes, Store
from laconic.export.c.tables import define, fit_integer, write_table
from laconic.models.machines import ClauseHead, ClauseHeads
from laconic.tsetlin.clauses import MAX_SPREAD, as_levels

PARTS = 1 << MAX_SPREAD  # of a feature
EXACT = 1 << 53  # below it a double holds every whole number

SAID = """
/* How far above its middle a clause speaks that holds on so many patches, in parts of 32. */
static inline int name_said(int count, const int8_t *scale)
{
    const int said = (name_levels[count] - scale[0]) * (1 << scale[1]);
    return said < -32 ? -32 : said > 32 ? 32 : said;
}
"""

HEAD_SUMS = """
static inline void name_HEAD_sums(const uint32_t *bits, SUM *sums)
{
    const name_code *clause = name_HEAD_clauses;
    int k, n;
    for (n = 0; n < NAME_HELD; n++)
        sums[n] = name_HEAD_bias[n];
    for (k = 0; k < N_CLAUSES; k++) {
        const int said = name_said(name_clause(bits, &clause), name_HEAD_scales + 2 * k);
        for (n = 0; n < NAME_HELD; n++)
            sums[n] += (PRODUCT)name_HEAD_weights[k * NAME_HELD + n] * said;
    }
}
"""

SCORES = """
static inline void name_scores(const name_value *row, name_score *scores)
{
    uint32_t bits[NAME_WORDS];
SUMS    int k;
    name_encode(row, bits);
    for (k = 0; k < NAME_CLASSES; k++)
        scores[k] = NAME_NEVER;
CALLS    for (k = 0; k < NAME_HELD; k++) {
        const double alone = (double)own[k] * name_own_units[k] + name_shares[k];
        scores[name_held[k]] = LOGIT;
    }
}
"""
TOGETHER = "((double)pool[k] * name_pool_units[k] + name_shares[k]) + NAME_BLEND * alone"


def write_heads(model: ClauseHeads, store: Store) -> str:
    if model.blend and frexp(model.blend)[0] != 0.5:
        raise ValueError(f"blend is {model.blend}; C export takes powers of two, whose products are not rounded")
    shape, held = model.own.clauses.shape, np.flatnonzero(model.holds)
    levels = as_levels(np.arange(1 + shape.n_rows * shape.n_columns, dtype=np.int32))
    heads = {"own": model.own} | ({} if model.pooled is None else {"pool": model.pooled})
    text = [
        define(held=len(held), blend=repr(float(model.blend))),
        write_table("int8_t", "name_levels", levels, "What a clause says that holds on so many patches."),
        write_table(fit_integer(held), "name_held", held, "The classes that the heads know."),
        write_table("double", "name_shares", model.log_shares, "Logs of their shares."),
        SAID,
    ]
    sums = calls = ""
    for (name, head), clauses in zip(heads.items(), store.clauses, strict=True):
        function, ctype = write_head(name, head, store, clauses)
        text.append(function)
        sums += f"    {ctype} {name}[NAME_HELD];\n"
        calls += f"    name_{name}_sums(bits, {name});\n"
    body = SCORES.replace("SUMS", sums).replace("CALLS", calls)
    return "".join([*text, body.replace("LOGIT", "alone" if model.pooled is None else TOGETHER)])


def write_head(name: str, head: ClauseHead, store: Store, clauses: Sequence[Codes | None]) -> tuple[str, str]:
    """A function from bits to sums, and their type; what clauses say that never hold is part of the bias."""
    weights, units = find_grid(head.head)
    middles, spreads = head.scales.reshape(-1, 2).astype(np.int64).T
    if np.any((spreads < 0) | (spreads > MAX_SPREAD)):
        raise ValueError(f"spreads reach from {spreads.min()} to {spreads.max()}, 0 to {MAX_SPREAD} were expected")
    clauses = clauses[: len(head.scales)]
    kept = {k: clause for k, clause in enumerate(clauses) if clause is not None}
    silent = [k for k in range(len(clauses)) if k not in kept]
    said = np.clip(-middles << (MAX_SPREAD - spreads), -PARTS, PARTS)
    bias = PARTS * weights[:, 0] + weights[:, 1:][:, silent] @ said[silent]
    votes, scales = weights[:, 1:].T[[*kept]], np.stack([middles, MAX_SPREAD - spreads], axis=1)[[*kept]]
    ctype = fit_sum(PARTS * np.abs(weights).sum(axis=1))
    function = HEAD_SUMS.replace("PRODUCT", fit_sum(PARTS * np.abs(votes).reshape(-1))).replace("SUM", ctype)
    text = [
        store.write_clauses(f"name_{name}_clauses", [*kept.values()]),
        write_table("int8_t", f"name_{name}_scales", scales, "The middle of each clause; how much a level counts."),
        write_table(fit_integer(votes.reshape(-1)), f"name_{name}_weights", votes, "Of each clause, by held class."),
        write_table(ctype, f"name_{name}_bias", bias, "Where sums begin."),
        write_table("double", f"name_{name}_units", units / PARTS, "What a 1 of these sums is worth."),
        function.replace("HEAD", name).replace("N_CLAUSES", str(len(kept))),
    ]
    return "".join(text), ctype


def fit_sum(most: NDArray[np.int64]) -> str:
    return "int32_t" if most.max(initial=0) < 1 << 31 else "int64_t"


def find_grid(head: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Rows as whole numbers of a unit, the largest power of two that will do."""
    mantissas, exponents = np.frexp(head)
    whole = np.ldexp(mantissas, 53).astype(np.int64)
    last = exponents - 53 + np.log2(np.maximum(whole & -whole, 1)).astype(np.int64)  # bit that is set
    units = np.ldexp(1.0, np.where(whole != 0, last, 1 << 10).min(axis=1, initial=0))
    weights = head / units[:, None]
    if np.any(np.abs(weights) >= 1 << 31) or np.any(PARTS * np.abs(weights).sum(axis=1) >= EXACT):
        raise ValueError("the weights of a head do not lie on a grid of 2^-24, as those that Laconic trains do")
    return weights.astype(np.int64), units
