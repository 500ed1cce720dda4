"""Training that is only tried out: little is done, and what the rest would take is told."""

import time

import numpy as np
import pytest

from laconic import trial, tsetlin


def work(n_turns: int, seconds: float) -> int:
    n_taken = 0
    for _ in trial.some(iter(range(n_turns)), n_turns, "nap"):
        time.sleep(seconds)
        n_taken += 1
    return n_taken


def test_without_a_trial_every_turn_is_taken() -> None:
    assert work(50, 0) == 50


def test_a_trial_ends_in_time_and_tells_what_all_turns_would_take() -> None:
    with trial.trying(seconds=0.05) as tried:
        n_taken = work(1000, 0.005)
        assert 3 <= n_taken < 1000
        left = tried.take_skipped()
    assert left == {"nap": 1000 - n_taken}
    assert tried.foretell(left) == pytest.approx((1000 - n_taken) * 0.005, rel=1)


def test_something_is_always_trained() -> None:
    with trial.trying(seconds=0):
        assert [work(10, 0) for _ in range(5)] == [3, 1, 1, 1, 1]


def test_a_tsetlin_machine_is_trained_on_a_few_samples_only() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 2, (2000, 30)).astype(np.uint8), rng.integers(0, 2, 2000)
    machine = tsetlin.build(tsetlin.Shape.flat(30), 2, 10, threshold=10, specificity=3)
    before = machine.states.copy()
    with trial.trying(seconds=0) as tried:
        tsetlin.fit(machine, x, y, rng, epochs=100)
        assert (machine.states != before).any()
        assert tried.take_skipped().total() > 3000
