"""One lying client of six: what becomes of the run, of the others, and of their accuracy under robust averages.

    python benchmarks/lies.py [METHOD ...]                every field of every reply, in every way of the list
    python benchmarks/lies.py --accuracy [METHOD ...]     methods that heed robust averages, digits, six alike clients

The first prints every lie that ended a run, left a state that is not finite or had honest clients refused, then counts.
The second prints the honest clients' accuracy without lies, and with a liar in each round that sends -100 times what it
found out, or noise as large; by the plain mean and by the last averaging that the method heeds.
"""

import json
import sys
from collections import Counter
from contextlib import ExitStack
from dataclasses import fields

import numpy as np

from laconic.algorithms import METHODS, load_method
from laconic.conformance.liars import LIAR, N_CLIENTS, Interview, encode_lie, list_fields, try_lies
from laconic.fleets.base import Conditions
from laconic.runs.config import read_config
from laconic.runs.prepare import prepare
from laconic.simulation import federate
from laconic.wire import Message, Sparse

ROUNDS = 6
QUICK = {"epochs": "3", "n_clauses": "60", "threshold": "60", "ppa": "false", "n_features": "50", "aux_model": "mlp"}
ARRAYS = ("floats", "ints", "sparse", "bits")


def count(names: list[str]) -> None:
    counts: Counter[str] = Counter()
    for name in names:
        for step, field in list_fields(load_method(name)):
            for found in try_lies(name, step, field):
                counts[found.outcome] += 1
                counts["left a state that is not finite"] += bool(found.not_finite)
                counts["had honest clients refused"] += bool(found.honest_refused)
                if found.outcome == "ended" or found.not_finite or found.honest_refused:
                    print(found, flush=True)
    print(json.dumps(dict(counts)))


def configure(name: str) -> list[str]:
    kind = load_method(name)
    own = {field.name for field in fields(kind)}
    settings = [f"method.{key}={value}" for key, value in QUICK.items() if key in own]
    if "training" in own:
        model = "resnet-small" if name == "fedbn" else "mlp"
        rate = [] if name.startswith("bifl") else ["rate=0.1"]  # Adam's steps are others
        settings += [f"method.training.{item}" for item in (f"model={model}", "epochs=3", "steps=0", *rate)]
    return [f"method.name={name}", f"data.clients={N_CLIENTS}", "data.partition=iid", *settings]


def find_target(name: str) -> tuple[str, str]:
    """The step and field that carry most: the first array of the last step that replies."""
    found = [(step, field) for step, field in list_fields(load_method(name)) if field.kind in ARRAYS]
    step = "train" if any(step == "train" for step, _ in found) else found[-1][0]
    numbers = [field for at, field in found if at == step and field.kind != "bits"]
    return step, (numbers or [field for at, field in found if at == step])[0].name


def exaggerate(message: Message, field: str) -> bytes | None:
    value = getattr(message, field)
    if value is None:
        return None
    array = value.values if isinstance(value, Sparse) else value
    lie = ~array if array.dtype == np.bool_ else (array.astype(np.float64) * -100).astype(array.dtype)
    return encode_lie(message, field, Sparse(value.mask, lie) if isinstance(value, Sparse) else lie)


def measure(name: str, averaging: str, *, with_liar: bool) -> tuple[float, int]:
    """Mean accuracy of the honest, and how many replies were refused."""
    config = read_config(None, [*configure(name), f"fleet.averaging={averaging}"])
    step, field = find_target(name)
    interview, prepared = Interview(config, step), prepare(config)
    n_refused = 0
    with ExitStack() as stack:
        opened = federate(
            interview.method, prepared.task, prepared.source, 0, workers=2, conditions=Conditions(averaging=averaging)
        )
        federation = stack.enter_context(opened)
        interview.meddle(federation.fleet)
        if with_liar:
            interview.lie = lambda message: exaggerate(message, field)
        for number in range(ROUNDS + 1):
            played = federation.play(number, is_evaluated=number == ROUNDS)
            n_refused += len(federation.fleet.refused)
    scores = [score.n_correct / score.n_test for score in played.scores or () if score.client != LIAR]
    return float(np.mean(scores)), n_refused


def compare(names: list[str]) -> list[dict[str, object]]:
    rows = []
    for name in names:
        robust = load_method(name).averagings[-1]
        honest, _ = measure(name, robust, with_liar=False)
        lied, n_refused = measure(name, robust, with_liar=True)
        mean, _ = measure(name, "mean", with_liar=True)
        row = {
            "method": name,
            "averaging": robust,
            "honest": honest,
            "liar": lied,
            "mean_liar": mean,
            "refused": n_refused,
        }
        rows.append(row)
        shown = f"{name:12} {robust:8} {honest:.3f} without lies, {lied:.3f} with a liar ({lied - honest:+.3f})"
        print(f"{shown}; by the plain mean {mean:.3f}; {n_refused} refused", file=sys.stderr, flush=True)
    return rows


def main(arguments: list[str]) -> None:
    names = [argument for argument in arguments if not argument.startswith("--")]
    if "--accuracy" not in arguments:
        count(names or list(METHODS))
        return
    heedful = [name for name in METHODS if len(load_method(name).averagings) > 1]
    print(json.dumps(compare(names or heedful)))


if __name__ == "__main__":
    main(sys.argv[1:])
