from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from tiny_networks import CLIENTS, TRAINING, gradient, open_fleet, start

from laconic.aggregate import majority
from laconic.algorithm import Task
from laconic.algorithms.networks.pfed_1bs import Consensus, PFed1BS, Sketched, pull_gradient
from laconic.algorithms.networks.settings import choose_spec
from laconic.networks.sketch import Sketch, as_numbers, signs

METHOD = PFed1BS(
    share=1.0, pull=0.5, shrink=0.25, sharpness=3.0, training=replace(TRAINING, steps=1, statistics="local")
)


def matrix(sketch: Sketch) -> np.ndarray:
    """Phi, float64 [row, weight]."""
    unit = np.eye(sketch.n_weights, dtype=np.float32)
    return np.stack([sketch.forward(column) for column in unit], axis=1).astype(np.float64)


def test_the_vote_minimises_the_servers_objective() -> None:
    """Sum over clients of p_k (|z_k| - <v, z_k>) / 2, over all v of six signs."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        votes, weights = rng.random((4, 6)) < 0.5, rng.integers(1, 9, 4)
        z = np.where(votes, 1, -1)

        def cost(v: np.ndarray, z: np.ndarray = z, weights: np.ndarray = weights) -> float:
            return float(weights @ (np.abs(z).sum(axis=1) - z @ v)) / 2

        chosen = np.where(majority(list(votes), weights.tolist()), 1, -1)
        assert cost(chosen) == min(cost(np.array(v)) for v in product((-1, 1), repeat=6))


def test_a_tied_vote_is_plus_one() -> None:
    assert majority([np.array([True, False]), np.array([False, False])], [2, 2]).tolist() == [True, False]


@pytest.mark.parametrize("sharpness", [0.5, 3.0])
def test_the_pull_is_the_gradient_of_the_smoothed_regulariser(sharpness: float) -> None:
    rng = np.random.default_rng(1)
    sketch = Sketch(11, 7, seed=2)
    phi, weights, wanted = matrix(sketch), rng.normal(size=11), rng.random(7) < 0.5

    def regulariser(w: np.ndarray) -> float:
        z = phi @ w
        return float(np.log(np.cosh(sharpness * z)).sum() / sharpness - np.where(wanted, 1, -1) @ z)

    step = 1e-5
    numerical = [(regulariser(weights + step * e) - regulariser(weights - step * e)) / (2 * step) for e in np.eye(11)]
    assert pull_gradient(sketch, weights.astype(np.float32), wanted, sharpness) == pytest.approx(numerical, abs=1e-4)


def test_a_sharp_pull_vanishes_where_all_signs_are_the_wanted_ones() -> None:
    sketch = Sketch(11, 7, seed=2)
    weights = np.random.default_rng(1).normal(size=11).astype(np.float32)
    assert pull_gradient(sketch, weights, signs(sketch.forward(weights)), 1e4) == pytest.approx(np.zeros(11), abs=1e-6)


def test_a_round_by_hand() -> None:
    with open_fleet(METHOD) as fleet:
        server = METHOD.start_server(fleet.home.task, fleet)
        METHOD.run_round(server, fleet)
        phi = matrix(METHOD.sketch(server.spec, 1))
        first = np.where(phi @ start() >= 0, 1, -1)
        votes = []
        for client, mine in zip(fleet.states(), CLIENTS, strict=True):
            pulled = phi.T @ (np.tanh(3 * phi @ start()) - first)
            own = start() - 0.5 * (gradient(start(), mine) + 0.5 * pulled + 0.25 * start())
            assert client.vector == pytest.approx(own, abs=1e-5)
            votes.append(len(mine.y) * np.where(phi @ own >= 0, 1, -1))
        assert server.consensus is not None
        assert as_numbers(server.consensus).tolist() == np.where(np.sum(votes, axis=0) >= 0, 1, -1).tolist()
        total = fleet.ledger.total
        assert (total(direction="down").paper_bits, total(direction="up").paper_bits) == (0, 2 * 5)
        fleet.begin(2)
        METHOD.run_round(server, fleet)
        assert (fleet.ledger.total(direction="down").paper_bits, server.consensus.size) == (2 * 5, 5)


def test_the_sketch_halves_and_clients_are_drawn_to_the_last_larger_one() -> None:
    method = replace(METHOD, halve_every=1)
    with open_fleet(method) as fleet:
        server, n_rows_before = method.start_server(fleet.home.task, fleet), 0
        for number, n_rows in ((1, 5), (2, 2), (3, 1), (4, 1)):
            fleet.begin(number)
            method.run_round(server, fleet)
            assert server.consensus is not None
            assert server.consensus.size == n_rows
            total = fleet.ledger.total  # to each of two clients the consensus of the round before
            assert total(direction="down").paper_bits == 2 * n_rows_before
            assert total(direction="up").paper_bits == 2 * n_rows
            n_rows_before = n_rows


def test_the_first_rounds_sketch_is_the_largest_so_the_bound_is_its() -> None:
    with open_fleet(METHOD) as fleet:
        consensus, sketched = replace(METHOD, halve_every=1).costliest_round(fleet.home.task)
        assert isinstance(consensus, Consensus)
        assert isinstance(sketched, Sketched)
        assert consensus.signs is not None
        assert (consensus.signs.size, sketched.signs.size) == (5, 5)


def test_rows_of_a_halved_sketch_are_among_those_it_had() -> None:
    spec = choose_spec(Task((1,), 2, 2), METHOD.training)
    method = replace(METHOD, halve_every=3)
    large, small = (matrix(method.sketch(spec, number)) for number in (3, 4))
    scaled = small / np.abs(small).max() * np.abs(large).max()  # rows of fewer are longer
    assert all(any(np.allclose(row, other) for other in large) for row in scaled)


def test_settings_that_make_no_sense_are_refused() -> None:
    for wrong, name in (({"share": 0.0}, "share"), ({"sharpness": 0.0}, "sharpness"), ({"pull": -1.0}, "pull")):
        with pytest.raises(ValueError, match=f"method.{name}"):
            PFed1BS(**wrong)
    with pytest.raises(ValueError, match="statistics"):
        PFed1BS(training=TRAINING)
