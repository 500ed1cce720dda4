"""`laconic.simulate`: any method on examples at hand, without files."""

import numpy as np
import pytest
from mean_label import MeanLabel

import laconic
from laconic.algorithm import Examples
from laconic.fleets.base import Conditions


def make_clients(n_clients: int = 4) -> list[list[tuple[np.ndarray, np.ndarray]]]:
    rng = np.random.default_rng(0)
    return [[(rng.integers(0, 2, (9, 5)), np.arange(9) % 3)] * 2 for _ in range(n_clients)]


def test_a_method_is_played_on_examples_at_hand() -> None:
    heard: list[int] = []
    done = laconic.simulate(MeanLabel(), make_clients(), rounds=3, seed=1, on_round=lambda row: heard.append(row.round))
    assert heard == [1, 2, 3]
    assert [row.round for row in done.rounds] == [0, 1, 2, 3]
    assert done.rounds[-1].accuracy == pytest.approx(1 / 3)
    assert all(row.upload_bytes > 0 for row in done.rounds[1:])
    assert [state.mean for state in done.states] == [done.server.mean] * 4


def test_a_round_with_too_few_replies_is_void_and_the_next_goes_on() -> None:
    done = laconic.simulate(MeanLabel(), make_clients(), rounds=40, conditions=Conditions(lost_replies=0.8))
    assert 0 < sum(row.is_void for row in done.rounds) < 40


@pytest.mark.parametrize(
    ("clients", "words"),
    [
        ([], "0 clients, 10 rounds"),
        ([[]], "client 0 has 0 sets of examples"),
        ([[(np.zeros((3, 2)), np.zeros(4, int))]], r"client 0 has x \(3, 2\) and y \(4,\) of int64"),
        ([[(np.zeros((3, 2)), np.full(3, 0.5))]], "of float64; one class from 0 up"),
        ([[(np.zeros((3, 2)), np.arange(3))], [(np.zeros((3, 4)), np.arange(3))]], r"shapes \[\(2,\), \(4,\)\]"),
    ],
)
def test_examples_that_do_not_fit_are_refused_in_words(clients: list[list[Examples]], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        laconic.simulate(MeanLabel(), clients)


def test_labels_may_be_of_any_whole_numbers_for_a_network() -> None:
    pytest.importorskip("torch")
    from laconic.algorithms.networks.fed_avg import FedAvg
    from laconic.networks import Training

    clients = [[(x.astype(np.float32), y.astype(np.uint8)) for x, y in mine] for mine in make_clients()]
    assert laconic.simulate(FedAvg(Training(model="mlp")), clients, rounds=1).rounds[-1].accuracy is not None


def test_averaging_that_a_method_does_not_heed_is_refused() -> None:
    with pytest.raises(ValueError, match=r'fleet.averaging = "median" is not for MeanLabel: it does not heed it'):
        laconic.simulate(MeanLabel(), make_clients(), conditions=Conditions(averaging="median"))
