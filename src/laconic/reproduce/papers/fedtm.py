"""FedTM: 100 clients, all in every round, 100 rounds; accuracy of the one model after the last, mean of five splits."""

from __future__ import annotations

from laconic.reproduce.published import Figure
from laconic.reproduce.recipe import TINY_MACHINES, TINY_NETWORKS, Computed, Impossible, Recipe, Way

MACHINES = {"mnist": (100, 10, 100, "threshold:75"), "fashion_mnist": (200, 5, 100, "adaptive:11:2")}
CLAUSE_BYTES = {"mnist": 400, "fashion_mnist": 240}  # of a clause for all ten classes, as the paper counts
NO_FEMNIST = "FEMNIST's files name writers and 62 classes; none of laconic's data sets is that selection of EMNIST"


def find_way(figure: Figure) -> Way:
    method, data, *rest = figure.parts
    if rest[-1] in ("memory", "latency"):
        return Impossible("memory and seconds of the authors' program on the authors' computer")
    if data == "femnist":
        return Impossible(NO_FEMNIST)
    if rest[-1] == "storage":
        return find_storage(method, data)
    alpha = rest[0]
    shared = (
        f"data.name={data}",
        "data.partition=dirichlet-equal",
        "data.clients=100",
        f"data.alpha={alpha}",
        "data.validation=0.0",
        "rounds=100",
        "checkpoint_every=10",
    )
    if method == "fedtm":
        n_clauses, patch, epochs, rule = MACHINES[data]
        own: tuple[str, ...] = (
            f"method.n_clauses={n_clauses}",
            "method.threshold=1000",
            "method.specificity=5.0",
            f"method.patch={patch}",
            f"method.epochs={epochs}",
            "method.blend=0.1",
            f"data.booleanize={rule}",
        )
        tiny, hours = TINY_MACHINES, 4.0
    else:
        own = ("method.training.model=lenet", "method.training.epochs=5")
        tiny, hours = TINY_NETWORKS, 2.0
    settings = (f"method.name={method}", *own, *shared)
    run = f"fedtm/{method}-{data}-{alpha}"
    return Recipe(run, settings, ("rounds=20",), tiny, "pooled", hours, hours / 5)


def find_storage(method: str, data: str) -> Way:
    if method != "fedtm":
        return Impossible("the paper does not give the layers of its network of 82,242 weights")
    size = MACHINES[data][0] * CLAUSE_BYTES[data] / 1e6
    return Computed(size, f"{MACHINES[data][0]} clauses of {CLAUSE_BYTES[data]} bytes, by the paper's count")
