"""Steps our methods and a checkout of reference code side by side, from the same weights on the same batches.

    git clone https://github.com/TsingZ0/PFLlib
    python benchmarks/parity.py --against PFLlib                       # or another of references/; told by its files
    python benchmarks/parity.py --against PFLlib --methods fedrep,ditto --rounds 5 --json

Prints the largest differences: of weights, relative to their norm, of masks, as a share of entries, and accuracies of
both in percent. Residual networks make a difference of 1e-7 one of 1e-2 within a round or two, so with these each round
begins from our weights: theirs must agree with them as they come out of merging, and again as trained.

None of their code is here: it is imported from the path, client by client, and fed what ours trained on, which is
written down batch by batch as our rounds are played.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import starmap
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from references import Batch, Reference, find_reference

from laconic.data import load
from laconic.networks import Network, sgd
from laconic.runs.config import read_config
from laconic.runs.prepare import prepare
from laconic.simulation import Federation, average_accuracy, federate

CLIENTS, EXAMPLES, TESTS, BATCH, EPOCHS = 6, 100, 50, 20, 2
# what a server has made, and where clients have a network of their own, if not as "network"
MADE_BY_MOST = ("shared.vector", "exchange.targets", "thresholds")
MADE = {
    "fedpac": ("shared.vector", "prototypes"),
    "pfedfda": ("shared.vector", "means", "covariance"),
    "fedkd": ("vector",),
}
OWN = {
    **dict.fromkeys(("ditto", "pfedsd"), "own"),
    **dict.fromkeys(("bifl-full", "bifl-ml", "bifl-updown"), "latent"),
    "fedpac": "personal",  # the head that was mixed for it
}


@contextmanager
def noted_batches(owners: dict[int, int]) -> Iterator[tuple[dict[int, list[Batch]], dict[int, NDArray[np.float32]]]]:
    """Client -> batches as its module took them, in order, and what the first found in it.

    owners: id of a client's labels -> client.
    """
    found: dict[int, list[Batch]] = defaultdict(list)
    starts: dict[int, NDArray[np.float32]] = {}
    push_back = sgd.push_back

    def noting(module, network, examples, places, loss):  # type: ignore[no-untyped-def]
        x = module.as_tensor(examples[0][places]).clone()
        client = owners[id(examples[1])]
        if client not in found:
            starts[client] = module.vector()
        found[client].append((x, torch.from_numpy(examples[1][places])))
        return push_back(module, network, examples, places, loss)

    sgd.push_back = noting
    try:
        yield found, starts
    finally:
        sgd.push_back = push_back


def compare(reference: Reference, method: str, rounds: int, data: str) -> dict[str, object]:
    """The largest differences of a few rounds of one method."""
    settings = [
        f"method.name={method}",
        f"method.training.model={reference.model}",
        f"method.training.epochs={EPOCHS}",
        f"method.training.batch={BATCH}",
        "method.training.statistics=local",
        f"data.name={data}",
        "data.partition=dirichlet-sampled",
        f"data.clients={CLIENTS}",
        "data.alpha=0.5",
        f"data.train_samples={EXAMPLES}",
        f"data.test_samples={TESTS}",
        "data.validation=0.0",
        *reference.settings(method),
    ]
    config = read_config(None, settings)
    prepared = prepare(config)
    parts = [prepared.source.at(client, 0) for client in range(CLIENTS)]
    owners = {id(train.y): client for client, (train, _, _) in enumerate(parts)}
    theirs = reference.start(method, config.method, prepared.task, parts)
    weights, masks, accuracies = 0.0, [], []
    with (
        theirs.adapt_ours(),
        noted_batches(owners) as (batches, starts),
        federate(config.method, prepared.task, prepared.source, 0, workers=1) as ours,
    ):
        ours.play(0, is_evaluated=False)
        for number in range(1, rounds + 1):
            batches.clear()
            played = ours.play(number, is_evaluated=reference.is_tested(method))
            weights = max(weights, theirs.play(number, batches, starts))
            weights = max(weights, *starmap(relative, zip(theirs.vectors(), read_vectors(ours, method), strict=True)))
            masks.append(theirs.mask_difference(ours.server, states_of(ours)))
            if played.scores:
                accuracies.append((100 * theirs.accuracy(), 100 * (average_accuracy(played.scores) or 0)))
    gap = max(accuracies, key=lambda pair: abs(pair[0] - pair[1]), default=None)
    return {
        "reference": reference.name,
        "method": method,
        "rounds": rounds,
        "weights": weights,
        "masks": max((share for share in masks if share is not None), default=None),
        "accuracy_theirs": None if gap is None else gap[0],
        "accuracy_ours": None if gap is None else gap[1],
    }


def states_of(ours: Federation) -> list[object]:
    return ours.fleet.states()  # type: ignore[attr-defined]  # a local fleet has them


def read_vectors(ours: Federation, method: str) -> list[NDArray[np.float32]]:
    """What the server has made, and each client's own network where that is beside it."""
    vectors = [
        found.ravel() for path in MADE.get(method, MADE_BY_MOST) if (found := follow(ours.server, path)) is not None
    ]
    for state in states_of(ours):
        own = state if isinstance(state, Network) else follow(state, OWN.get(method, "network"))
        vectors += [] if own is None else [own.vector[: own.layout.n_trained] if isinstance(own, Network) else own]
    return vectors


def follow(thing: Any, path: str) -> Any:
    """None where it leads nowhere."""
    for name in path.split("."):
        thing = getattr(thing, name, None)
    return thing


def relative(theirs: NDArray[np.float32], ours: NDArray[np.float32]) -> float:
    assert theirs.shape == ours.shape, (theirs.shape, ours.shape)
    return float(np.linalg.norm(theirs - ours) / np.linalg.norm(ours))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, required=True, help="a checkout of the reference code")
    parser.add_argument("--methods", default="", help="which, by comma; else all that both have")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", default="fashion_mnist")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    load(given.data)  # says what is missing before anything else does
    reference = find_reference(given.against)
    torch.manual_seed(0)
    for method in given.methods.split(",") if given.methods else reference.methods:
        row = compare(reference, method, given.rounds, given.data)
        print(json.dumps(row) if given.json else tell(row), flush=True)


def tell(row: dict[str, object]) -> str:
    accuracy = "" if row["accuracy_ours"] is None else "  accuracy {accuracy_theirs:.1f} / {accuracy_ours:.1f}"
    masks = "" if row["masks"] is None else "  masks {masks:.2%}"
    return ("{reference} {method}, {rounds} rounds: weights {weights:.1e}" + masks + accuracy).format(**row)


if __name__ == "__main__":
    main()
