"""FedPURIN: 20 clients of 500 images, 200 rounds of five epochs; best accuracy before averaging, three splits."""

from __future__ import annotations

from laconic.reproduce.published import Figure
from laconic.reproduce.recipe import TINY_NETWORKS, Recipe, Way

TESTED = {"fedavg": "trained", "fedper": "trained", "fedbn": "trained"}  # the others have no mean to be tested with
ALONE_AFTER = {"cifar100": (300, 170)}  # rounds, beta; else 200 and 100
MEASURES = ("up-before", "up-after", "down-before", "down-after")


def find_way(figure: Figure) -> Way:
    method, data, alpha, *more = figure.parts
    rounds, alone_after = ALONE_AFTER.get(data, (200, 100))
    settings = [
        f"method.name={method}",
        f"method.training.model={'resnet10' if data == 'cifar100' else 'resnet8'}",
        "method.training.epochs=5",
        "method.training.batch=100",
        "method.training.rate=0.1",
        "method.training.momentum=0.9",
        "method.training.statistics=local",
        "method.training.inputs=unit",  # as the authors' code has them
        "method.training.start=kaiming",
        f"data.name={data}",
        "data.partition=dirichlet-sampled",
        "data.clients=20",
        f"data.alpha={alpha}",
        "data.train_samples=500",
        "data.test_samples=100",
        "data.validation=0.0",
        f"rounds={rounds}",
        "checkpoint_every=5",
    ]
    small = ["rounds=60", "checkpoint_every=5"]
    tiny = [*TINY_NETWORKS, "method.training.model=resnet-small", "data.train_samples=40", "data.test_samples=20"]
    if method in TESTED:
        settings.append(f"method.tested={TESTED[method]}")
    if method in ("fedpurin", "fedcac"):
        settings.append(f"method.alone_after={alone_after}")
        small.append("method.alone_after=30")  # in proportion
        tiny.append("method.alone_after=1")
    run, measure = f"fedpurin/{method}-{data}-{alpha}", "best"
    if figure.table == "2":
        pull, _, curvature = more[0].partition("-")
        if more[0] != "gradient":  # else it is Table 1's own
            settings += [f"method.pull={pull}", f"method.curvature={str(bool(curvature)).lower()}"]
            run += f"-{more[0]}"
    elif figure.table == "3":
        measure = more[0]
    hours = rounds * 20 * 5 * 500 / 1e6 * (0.6 if data == "cifar100" else 0.2)  # of a million images trained on
    return Recipe(run, tuple(settings), tuple(small), tuple(tiny), measure, hours, hours * 60 / rounds)
