"""pFed1BS: 20 clients with two labels each (CIFAR-100: 20), 100 rounds of ten steps; accuracy after the last."""

from __future__ import annotations

from laconic.reproduce.published import Figure
from laconic.reproduce.recipe import TINY_NETWORKS, Recipe, Way

N_WEIGHTS = 203_530  # of the MLP
RATES = {"obda": 0.001}  # of 0.03 and 0.1, or 0.001 and 0.01, the better on validation examples of MNIST
LABELS = {"cifar100": 20}
# Before the next mean comes, as the authors' code tests its own method: no mean over clients of two labels each comes
# near what is printed (see docs/results/pfed1bs.md). obda's clients have no training of their own
TESTED_AS_TRAINED = ("fedavg", "eden", "fedbat", "obcsaa", "zsignfed")


def find_way(figure: Figure) -> Way:
    method, data, kind = figure.parts
    settings = [
        f"method.name={method}",
        f"method.training.model={'mlp' if data == 'mnist' else 'vgg8'}",
        "method.training.steps=10",
        "method.training.batch=64",
        f"method.training.rate={RATES.get(method, 0.03)}",
        f"data.name={data}@label",
        "data.partition=windows",
        "data.clients=20",
        f"data.labels={LABELS.get(data, 2)}",
        "data.validation=0.1",
        "rounds=100",
        "evaluate_every=10",
        "checkpoint_every=20",
    ]
    if method in TESTED_AS_TRAINED:
        settings.append("method.tested=trained")
    if method == "pfed1bs":
        settings += ["method.share=0.1", "method.pull=0.0005", "method.shrink=0.00001", "method.sharpness=10000.0"]
    measure = {"labels": "last", "less": f"less:{N_WEIGHTS}", "mebibytes": "mebibytes"}[kind]
    tiny = (*TINY_NETWORKS, "method.training.steps=2", "data.name=digits@label", "data.clients=5", "data.labels=2")
    hours = 0.03 if data == "mnist" else 0.15
    run = f"pfed1bs/{method}-{data}"
    return Recipe(run, tuple(settings), ("rounds=20",), tiny, measure, hours, hours / 5)
