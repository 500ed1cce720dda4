"""What a server does with replies that no honest client sends: refused by name, counted, and the round goes on."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from laconic import wire
from laconic.algorithm import Examples, Task, step_of
from laconic.algorithms import load_method
from laconic.conformance.liars import encode_lie
from laconic.fleets.base import BaseFleet
from laconic.fleets.source import ClientData
from laconic.runs.record import describe_round
from laconic.simulation import Federation, federate
from laconic.wire import Encoded, Message

LIAR, N_CLIENTS, N_CLASSES = 1, 4, 3
SMALL = {"n_clauses": 8, "epochs": 1, "threshold": 20, "min_examples": 2, "n_shared": 4, "n_donors": 4}

Lie = Callable[[Any], Message | bytes]


def gather(name: str) -> AbstractContextManager[Federation]:
    rng, kind = np.random.default_rng(0), load_method(name)
    known = {field.name for field in fields(kind)}
    method = kind(**{key: value for key, value in SMALL.items() if key in known})
    parts = []
    for _ in range(N_CLIENTS):
        x = rng.integers(0, 2, (30, 12)).astype(np.uint8)
        y = (2 * x[:, 0] + x[:, 1]).astype(np.int64) % N_CLASSES
        parts.append((Examples(x, y), Examples(x[:6], y[:6]), Examples(x[:6], y[:6])))
    return federate(method, Task((12,), N_CLASSES, N_CLIENTS), ClientData.of(parts), 0, workers=1)


def corrupt(fleet: BaseFleet, step: str, lie: Lie, monkeypatch: pytest.MonkeyPatch) -> None:
    """The liar's first reply to the step is another, well coded: without a base, as a client may."""
    honest, reply_kind = fleet._perform, step_of(type(fleet.home.algorithm), step).reply

    def perform(requests):
        for reply in honest(requests):
            if reply.client != LIAR or requests[0].step != step:
                yield reply
                continue
            told = lie(wire.decode(reply_kind, reply.encoded.data))
            yield reply._replace(encoded=Encoded(told if isinstance(told, bytes) else wire.encode(told), {}))

    monkeypatch.setattr(fleet, "_perform", perform)


def false(name: str, lie: Callable[[Any], Any]) -> Lie:
    """What the kind of a field does not take, in sound bytes."""
    return lambda reply: encode_lie(reply, name, lie(getattr(reply, name)))


def fewer(name: str) -> Lie:
    """One row too few in that array."""
    return lambda reply: replace(reply, **{name: getattr(reply, name)[:-1]})


LIES: list[tuple[str, str, Lie, str]] = [
    ("fedtm", "train", lambda reply: b"", "0 bytes are too few"),
    ("fedtm", "train", lambda reply: bytes(10**6), r"1000000 bytes came, at most \d+ were expected"),
    ("fedtm", "train", false("per_class", lambda told: told + 10**9), r"per_class.*0 to 10000000 was expected"),
    ("fedtm", "train", false("per_class", lambda told: told - 10**9), r"per_class.*-"),
    ("fedtm", "train", lambda reply: replace(reply, per_class=np.ones(50, np.int64)), r"per_class has shape \(50,\)"),
    ("fedtm", "train", fewer("per_class"), r"per_class has shape \(2,\), \(3,\) was expected"),
    ("fedtm", "train", fewer("weights"), r"weights has shape \(2, 8\), \(3, 8\) was expected"),
    ("fedtm", "train", lambda reply: replace(reply, weights=reply.weights[0]), r"weights has shape \(8,\)"),
    ("fedtm", "tell_holdings", fewer("per_class"), r"per_class has shape \(2,\), \(3,\) was expected"),
    ("cs-pfedtm", "train", false("n_examples", lambda told: 10**9), r"n_examples.*10000000"),
    ("cs-pfedtm", "train", false("accuracy", lambda told: 7.0), r"accuracy.*7"),
    ("cs-pfedtm", "train", false("accuracy", lambda told: float("nan")), "accuracy is not finite"),
    ("cs-pfedtm", "train", fewer("weights"), r"weights has shape \(2, 4\), \(3, 4\) was expected"),
    ("cs-pfedtm", "give_states", fewer("states"), r"states has shape \(2, "),
    ("clausepool", "offer", lambda reply: replace(reply, clauses=reply.clauses[:, :-1]), "clauses has shape"),
    ("clausepool", "offer", fewer("holds"), r"holds has shape \(2,\), \(3,\) was expected"),
    ("clausepool", "improve", lambda reply: replace(reply, exponents=reply.exponents + 99), r"exponents reach .*±48"),
    ("clausepool", "improve", fewer("n_right"), "n_right has shape"),
    ("tpfl", "train", lambda reply: replace(reply, label=3), "label is 3, one from 0 to 2 was expected"),
    ("tpfl", "train", fewer("weights"), r"weights has shape \(7,\), \(8,\) was expected"),
]


@pytest.mark.parametrize(("method", "step", "lie", "words"), LIES)
def test_a_lie_is_refused_by_name_and_the_round_goes_on(
    method: str, step: str, lie: Lie, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with gather(method) as federation:
        fleet, told, n_refused = federation.fleet, [], 0
        corrupt(fleet, step, lie, monkeypatch)
        for number in range(2):
            assert federation.play(number, is_evaluated=True).trouble is None
            told += fleet.refused
            n_refused += describe_round(fleet, None, is_void=False).n_refused or 0
        (line,) = told
        assert n_refused == 1
        monkeypatch.undo()
        assert f"round 1, client {LIAR}: reply to {step} refused" in line
        assert re.search(words, line), line
        federation.play(2, is_evaluated=True)  # and from then on it is heard again
        assert not fleet.refused
        assert fleet.replied == set(range(N_CLIENTS))
