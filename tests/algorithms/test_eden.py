from dataclasses import replace

import numpy as np
import pytest
from tiny_networks import CLIENTS, TRAINING, descend, mean, open_fleet, start

from laconic.algorithms.networks.eden import Eden
from laconic.networks.precision import find_levels, read_normal, round_normal
from laconic.networks.sketch import rotate, unrotate


def through(change: np.ndarray, bits: int, seed: int) -> np.ndarray:
    planes, scale = round_normal(rotate(change, seed), bits)
    return unrotate(read_normal(planes, scale), len(change), seed)


def test_levels_are_lloyd_and_maxs_for_normal_numbers() -> None:
    assert find_levels(1) == pytest.approx([-0.7979, 0.7979], abs=1e-4)
    assert find_levels(2) == pytest.approx([-1.5104, -0.4528, 0.4528, 1.5104], abs=1e-4)
    assert find_levels(3)[4:] == pytest.approx([0.2451, 0.7560, 1.3439, 2.1519], abs=1e-4)


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_changes_are_true_on_average_and_truer_with_more_bits(bits: int) -> None:
    change = np.random.default_rng(0).normal(size=256).astype(np.float32) ** 3
    seen = np.array([through(change, bits, seed) for seed in range(400)])
    errors = ((seen - change) ** 2).sum(axis=1) / (change**2).sum()
    assert errors.mean() == pytest.approx({1: 0.571, 2: 0.133, 4: 0.0096}[bits], rel=0.1)  # 1/(1 - d) - 1, as known
    bias = np.linalg.norm(seen.mean(axis=0) - change) / np.linalg.norm(change)
    assert bias < 1.5 * np.sqrt(errors.mean() / 400)


def test_no_change_stays_none() -> None:
    assert through(np.zeros(5, np.float32), 2, 0).tolist() == [0] * 5


@pytest.mark.parametrize(("bits", "paper_bits"), [(1, 8 + 32), (3, 24 + 32)])
def test_the_server_adds_the_mean_of_what_it_turned_back(bits: int, paper_bits: int) -> None:
    method = Eden(bits=bits, training=replace(TRAINING, statistics="local"))
    with open_fleet(method) as fleet:
        server = method.start_server(fleet.home.task, fleet)
        method.run_round(server, fleet)
        assert fleet.ledger.total(direction="up").paper_bits == 2 * paper_bits  # five weights, padded to eight
        changes = [(descend(start(), mine) - start()).astype(np.float32) for mine in CLIENTS]
        seen = [through(change, bits, 1 << 32 | client) for client, change in enumerate(changes)]
        assert server.shared.vector == pytest.approx(start() + mean(seen), abs=1e-5)
