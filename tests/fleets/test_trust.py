"""One of six clients lies, with numbers that no check of soundness can refuse: what becomes of the other five."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laconic.aggregate import EVERY_AVERAGING
from laconic.algorithms import METHODS, load_method
from laconic.records import ClientScore, read_lines
from laconic.runs.config import read_config
from laconic.runs.run import run
from laconic.runs.typed_toml import ConfigError

LIAR, N_CLIENTS, N_ROUNDS, RNG = 5, 6, 4, np.random.default_rng(0)
# the step, and what it sends in place of what it found out
LIES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "fedtm": (
        "train",
        lambda update: replace(update, weights=RNG.integers(-(10**5), 10**5, update.weights.shape, np.int32)),
    ),
    "fedavg": (
        "train",
        lambda update: replace(update, exact=RNG.normal(0, 1e3, update.exact.shape).astype(np.float32)),
    ),
    "clausepool": ("improve", lambda change: replace(change, exponents=np.full_like(change.exponents, 8))),
}
SETTINGS = {
    "fedtm": ["method.n_clauses=60", "method.threshold=60", "method.epochs=5"],
    "fedavg": ["method.training.model=mlp", "method.training.rate=0.1", "method.training.epochs=3"],
    "clausepool": ["method.n_clauses=20", "method.threshold=30", "method.epochs=3"],
}


def measure(method: str, how: str, out: Path) -> float:
    """Mean accuracy of those who do not lie."""
    settings = [f"method.name={method}", *SETTINGS[method], f"data.clients={N_CLIENTS}", "data.partition=iid"]
    config = read_config(
        None, [*settings, f"fleet.averaging={how}", f"evaluate_every={N_ROUNDS}", f"rounds={N_ROUNDS}"]
    )
    run(config, out)
    assert "refused" not in (out / "events.log").read_text()
    return float(np.mean([row.accuracy for row in read_lines(out, ClientScore) if row.client != LIAR]))


@pytest.mark.parametrize("method", LIES)
def test_a_mean_falls_for_one_liar_of_six_and_robust_ones_do_not(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_lies, kind = measure(method, "mean", tmp_path / "honest"), load_method(method)
    step, lie = LIES[method]
    honest = getattr(kind, step)

    @wraps(honest)
    def answer(self, client, message, site):
        found_out = honest(self, client, message, site)
        return lie(found_out) if site.id == LIAR else found_out

    monkeypatch.setattr(kind, step, answer)
    accuracies = {averaging: measure(method, averaging, tmp_path / averaging) for averaging in kind.averagings}
    print(f"{method}: {without_lies:.3f} without lies, {accuracies}")
    assert accuracies.pop("mean") < without_lies - 0.2
    assert min(accuracies.values()) > without_lies - 0.05


@pytest.mark.parametrize("method", METHODS)
def test_a_method_heeds_the_setting_or_refuses_it(method: str) -> None:
    for averaging in EVERY_AVERAGING:
        settings = [f"method.name={method}", f"fleet.averaging={averaging}"]
        if averaging in load_method(method).averagings:
            assert read_config(None, settings).fleet.averaging == averaging
        else:
            with pytest.raises(ConfigError, match=f'fleet.averaging = "{averaging}" is not for {method}'):
                read_config(None, settings)


def test_sums_that_hide_counts_are_refused_with_a_median_before_anything_runs() -> None:
    with pytest.raises(ConfigError, match=r"fleet.averaging.*ppa"):
        read_config(None, ["method.name=fedproto", "method.ppa=true", "fleet.averaging=median"])
