"""Small trained models of every kind of Tsetlin Machine, on digits: 8×8 images, of bytes from 0 to 16."""

from functools import cache

import numpy as np

from laconic import simulate
from laconic import tsetlin as tm
from laconic.algorithm import Task
from laconic.algorithms import load_method
from laconic.data import load
from laconic.models.base import PersonalModel
from laconic.models.machines import Ballot
from laconic.models.portable import About, PortableModel
from laconic.models.preprocessing import Preprocessing, Threshold, fit_bits

DIGITS = load("digits")
FEW = 400  # examples to train on
WHOLE, PATCH = (8, 8), (5, 4)


def carry(model: PersonalModel, preprocessing: Preprocessing, **about) -> PortableModel:
    said = {"classes": DIGITS.classes, "features": (), "input_shape": WHOLE, "method": "local-tm", "client": 7}
    said |= {"name": "", "data": "digits", "seed": 0, "rounds": 1, "laconic": "0", "git": None, "run": "0" * 64}
    return PortableModel(model, preprocessing, About(**said | about))


def train(
    preprocessing: Preprocessing, patch=None, *, coalesced=False, balanced=False, fuzzy=None, x=None, turns=0
) -> tm.Machine:
    raw = DIGITS.x_train[:FEW] if x is None else x
    bits = preprocessing.transform(raw)
    bits = np.ascontiguousarray(np.rot90(bits, turns, axes=(1, 2))) if turns else bits
    rng, size = np.random.default_rng(3), {"n_classes": 10, "n_clauses": 20}
    if bits.ndim == 2:
        shape = tm.Shape.flat(bits.shape[1])
    else:
        layers = bits.shape[3] if bits.ndim == 4 else 1
        shape = tm.Shape.image(*bits.shape[1:3], layers, patch=patch or bits.shape[1:3], levels=preprocessing.levels)
    told = {"threshold": 40, "specificity": 3.0, "balanced": balanced, "fuzzy": fuzzy}
    machine = tm.build_coalesced(shape, **size, rng=rng, **told) if coalesced else tm.build(shape, **size, **told)
    tm.fit(machine, bits, DIGITS.y_train[: len(bits)], rng, epochs=5)
    return machine


@cache
def federate(name: str, patch: int, **settings) -> PortableModel:
    """What a client of a method predicts by, who has some classes only."""
    preprocessing = fit_bits("thermometer:4:16", DIGITS.x_train)
    x, y = preprocessing.transform(DIGITS.x_train[:FEW]), DIGITS.y_train[:FEW]
    shares = [np.isin(y, classes) for classes in ((0, 1, 2, 3, 4), (3, 4, 5, 6), (6, 7, 8, 9, 0))]
    clients = [((x[own][20:], y[own][20:]), (x[own][:20], y[own][:20]), (x[own][:0], y[own][:0])) for own in shares]
    method = load_method(name)(patch=patch, **settings)
    done = simulate(method, clients, rounds=2, task=Task((8, 8, 4), 10, 3, levels=4), evaluate_every=9)
    return carry(method.personal_model(done.states[1]), preprocessing, method=name)


def build_flat() -> PortableModel:
    return carry(Ballot(train(Threshold(7))), Threshold(7))


def build_convolutional() -> PortableModel:
    return carry(Ballot(train(Threshold(7), PATCH)), Threshold(7))


def build_layered(patch: tuple[int, int] | None = PATCH) -> PortableModel:
    preprocessing = fit_bits("thermometer:4:16", DIGITS.x_train)
    return carry(Ballot(train(preprocessing, patch)), preprocessing)


def build_coalesced() -> PortableModel:
    preprocessing = fit_bits("quantile:3", DIGITS.x_train)
    return carry(Ballot(train(preprocessing, PATCH, coalesced=True)), preprocessing)


def build_balanced() -> PortableModel:
    return carry(Ballot(train(Threshold(7), PATCH, balanced=True)), Threshold(7))


def build_limited() -> PortableModel:
    return carry(Ballot(train(Threshold(7)), among=np.isin(np.arange(10), (2, 3, 8))), Threshold(7))


def build_two_machines() -> PortableModel:
    return federate("cs-pfedtm", 5, n_clauses=20, n_shared=8, threshold=40, gate=False, present_only=False)


def build_two_machines_by_example() -> PortableModel:
    return federate("cs-pfedtm", 0, n_clauses=20, n_shared=8, threshold=40, gate=False, normaliser="sample")


def build_pool() -> PortableModel:
    return federate("clausepool", 5, n_clauses=20, threshold=40, epochs=3)


def build_fuzzy() -> PortableModel:
    preprocessing = fit_bits("thermometer:4:16", DIGITS.x_train)
    return carry(Ballot(train(preprocessing, fuzzy=tm.Fuzzy(8, 20))), preprocessing)


def build_fuzzy_patches() -> PortableModel:
    return carry(Ballot(train(Threshold(7), PATCH, coalesced=True, fuzzy=tm.Fuzzy(5, 12))), Threshold(7))


def build_fuzzy_pool() -> PortableModel:
    return federate("clausepool", 5, n_clauses=20, threshold=40, epochs=3, fuzzy=(6, 15))


SHAPES = {
    "flat": build_flat,
    "convolutional": build_convolutional,
    "layered": build_layered,
    "coalesced": build_coalesced,
    "balanced": build_balanced,
    "limited": build_limited,
    "two-machines": build_two_machines,
    "two-machines-by-example": build_two_machines_by_example,
    "pool": build_pool,
    "fuzzy": build_fuzzy,
    "fuzzy-patches": build_fuzzy_patches,
    "fuzzy-pool": build_fuzzy_pool,
}
