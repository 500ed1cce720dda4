from dataclasses import replace

import numpy as np
import pytest
from tiny_networks import CLIENTS, SPEC, TRAINING, descend, open_fleet, start

from laconic.algorithm import Site
from laconic.algorithms.networks.fed_bat import FedBAT
from laconic.networks import Network, start_vector
from laconic.networks.binary import LARGEST, SMALLEST, draw_signs, hold_sizes, mean_sizes, pass_back

LENGTHS = np.array([1, 2, 2])  # of the tiny network: a; w0, w1; b0, b1


def test_signs_times_sizes_are_the_change_on_average() -> None:
    change = np.array([0.03, -0.01, 0.0, 0.2], np.float32)
    size, rng = np.full(4, 0.04, np.float32), np.random.default_rng(0)
    drawn = np.mean([np.where(draw_signs(change, size, rng), size, -size) for _ in range(4000)], axis=0)
    assert drawn == pytest.approx([0.03, -0.01, 0, 0.04], abs=0.002)  # no sign is worth more than the size


def test_sizes_are_means_by_layer_within_bounds() -> None:
    change = np.array([1.0, -0.01, 0.03, 1e-6, 0], np.float32)
    assert hold_sizes(mean_sizes(change, LENGTHS)) == pytest.approx([LARGEST, 0.02, SMALLEST])


def test_gradients_pass_straight_through_inside_the_size_and_stop_outside() -> None:
    gradient = np.array([1, 2, 3, 4, 5], np.float32)
    change = np.array([0.01, 0.05, -0.01, 0.02, -0.06], np.float32)
    signs, sizes = np.array([True, True, False, False, False]), np.array([0.02, 0.02, 0.04], np.float32)
    for_change, for_sizes = pass_back(gradient, change, signs, sizes, LENGTHS)
    assert for_change.tolist() == [1, 0, 3, 4, 0]
    # inside: sign - change / size; outside: the change's sign
    assert for_sizes == pytest.approx([1 * 0.5, 2 * 1 + 3 * (-1 + 0.5), 4 * (-1 - 0.5) + 5 * -1])


def test_a_round_without_binary_steps_sends_the_drawn_signs_of_the_usual_change() -> None:
    method = FedBAT(warm=1.0, training=replace(TRAINING, rate=0.01, statistics="local"))
    with open_fleet(method) as fleet:
        server = method.start_server(fleet.home.task, fleet)
        method.run_round(server, fleet)
        means = [mean_sizes(descend(start(), mine, rate=0.01) - start(), LENGTHS) for mine in CLIENTS]
        sizes = [hold_sizes(mean) for mean in means]
        worth = [len(mine.y) / 4 * np.repeat(size, LENGTHS) for mine, size in zip(CLIENTS, sizes, strict=True)]
        possible = [signs @ np.array(worth) for signs in ([1, 1], [1, -1], [-1, 1], [-1, -1])]
        for entry, change in enumerate(server.shared.vector - start()):
            assert min(abs(change - one[entry]) for one in possible) < 1e-6
        assert fleet.ledger.total(direction="up").paper_bits == 2 * (5 + 3 * 32)


@pytest.mark.parametrize(("rate", "bound"), [(1e-4, SMALLEST), (30.0, LARGEST)])
def test_a_size_beyond_its_bound_stays_there(rate: float, bound: float) -> None:
    """As where a clamp passes no gradient."""
    method = FedBAT(training=replace(TRAINING, rate=rate, steps=9, statistics="local"))
    network = Network(SPEC, start_vector(SPEC, 0))
    _, sizes = method.learn_signs(network, Site(0, 1, CLIENTS[0], CLIENTS[0], np.random.default_rng(0)))
    assert sizes.tolist() == [np.float32(bound)] * 3


def test_binary_steps_learn() -> None:
    method = FedBAT(warm=0.5, training=replace(TRAINING, rate=0.1, steps=20, statistics="local"))
    with open_fleet(method) as fleet:
        server, losses = method.start_server(fleet.home.task, fleet), []
        for number in range(1, 16):
            fleet.begin(number)
            method.run_round(server, fleet)
            losses.append(np.mean([notes["train_loss"] for notes in fleet.client_notes.values()]))
        assert losses[-1] < losses[0]
