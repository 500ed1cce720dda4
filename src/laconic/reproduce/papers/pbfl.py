"""Sparse prototypes (CPS, PPA, CPKD): 20 clients with four kinds of networks, 300 rounds; best mean of three seeds."""

from __future__ import annotations

import json

from laconic.reproduce.published import Figure
from laconic.reproduce.recipe import TINY_NETWORKS, Impossible, Recipe, Way

KINDS = ("resnet8", "efficientnet", "shufflenetv2", "mobilenetv2")
N_FEATURES = 500
PULL = 0.1  # of the squared distance as the paper writes it; method.pull is of its mean over dimensions


def find_way(figure: Figure) -> Way:
    if figure.table == "text":
        return Impossible("a norm between two heat maps, of which the paper does not give the numbers")
    method, data, alpha, *more = figure.parts
    options = dict(part.partition("=")[::2] for part in (more[0].split("+") if more else []))
    n_features = int(options.get("dims", N_FEATURES))
    settings = [
        f"method.name={method}",
        f"method.models={json.dumps(KINDS)}",
        f"method.n_features={n_features}",
        "method.training.rate=0.01",
        "method.training.batch=32",
        "method.training.epochs=1",
        f"data.name={data}",
        "data.partition=dirichlet",
        "data.clients=20",
        f"data.alpha={alpha}",
        "data.validation=0.0",
        "rounds=300",
        "evaluate_every=5",
        "checkpoint_every=5",
    ]
    slim = json.dumps([f"{kind}-slim" for kind in KINDS])
    # five times the rate, for a twentieth of the steps: after 20 rounds 32 % of validation examples instead of 24
    small = ["rounds=60", "data.examples=10000", f"method.models={slim}", "method.training.rate=0.05"]
    tiny = [*TINY_NETWORKS, 'method.models=["shuffle-small","resnet-small"]', "method.n_features=20"]
    if method in ("fml", "fedkd"):
        settings.append("method.aux_model=resnet8")
        small.append("method.aux_model=resnet8-slim")
        tiny.append("method.aux_model=resnet-small")
    if method in ("fedproto", "fedtgp"):
        settings += [
            f"method.pull={PULL * n_features}",
            f"method.cps_dims={options.get('cps', n_features)}",
            f"method.ppa={str('ppa' in options).lower()}",
            f"method.cpkd={str('cpkd' in options).lower()}",
        ]
        tiny += [f"method.cps_dims={10 if 'cps' in options else 20}", "method.pull=2.0"]
    run = f"pbfl/{method}-{data}-{alpha}{'-' + more[0].replace('=', '') if more else ''}"
    return Recipe(run, tuple(settings), tuple(small), tuple(tiny), "best", 10.0, 0.1)
