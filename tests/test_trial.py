"""Training that is only tried out: little is done, and what the rest would take is told."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np

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
    assert 0.5 < tried.foretell(left) / ((1000 - n_taken) * 0.005) < 4  # a nap may take longer


def test_the_first_turn_of_each_thread_is_warming_up() -> None:
    with trial.trying(seconds=60) as tried, ThreadPoolExecutor(3) as pool:
        barrier = Barrier(3)

        def train() -> None:
            barrier.wait()  # so that no thread does another's work
            for turn in trial.some(iter(range(4)), 4, "nap"):
                time.sleep(0.002 if turn else 0.5)
            barrier.wait()

        for future in [pool.submit(train) for _ in range(3)]:
            future.result()
    assert tried.foretell({"nap": 100}) < 25  # 50 with a warm-up in every four


def test_turns_made_of_turns_count_all_of_them() -> None:
    with trial.trying(seconds=0) as tried:
        n_outer = 0
        for _ in trial.first_of(range(10)):
            n_outer += 1
            assert work(8, 0) == 3
    assert n_outer == 1
    assert tried.take_skipped() == {"nap": 5 + 9 * 8}


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
