import math
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from tiny_networks import CLIENTS, TRAINING, descend, open_fleet, start

from laconic.algorithms.networks.weights import NO_NEWS
from laconic.algorithms.networks.zsign_fed import ZSignFed

LOCAL = replace(TRAINING, statistics="local")


def test_without_noise_to_speak_of_the_signs_are_those_of_the_change() -> None:
    method = ZSignFed(noise=1e-6, training=LOCAL)
    with open_fleet(method) as fleet:
        server = method.start_server(fleet.home.task, fleet)
        method.run_round(server, fleet)
        signs = [np.sign(descend(start(), mine) - start()) for mine in CLIENTS]
        mean = np.average(signs, axis=0, weights=[len(mine.y) for mine in CLIENTS])
        worth = 0.5 * 1e-6 * math.sqrt(math.pi / 2)
        assert server.shared.vector - start() == pytest.approx(worth * mean, abs=2e-7)
        assert fleet.ledger.total(direction="up").paper_bits == 2 * 5


@pytest.mark.parametrize("shape", ["normal", "uniform"])
def test_the_noise_makes_the_mean_of_many_signs_the_change_itself(shape: Literal["normal", "uniform"]) -> None:
    method = ZSignFed(noise=5.0, shape=shape, training=LOCAL)
    with open_fleet(method, [CLIENTS[0]] * 400) as fleet:
        server = method.start_server(fleet.home.task, fleet)
        changes = []
        for number in range(1, 11):
            fleet.begin(number)
            before = server.shared.vector
            replies = fleet.ask(method.train, dict.fromkeys(fleet.sampled, NO_NEWS))
            changes.append(np.mean([np.where(reply.signs, 1, -1) for reply in replies.values()], axis=0))
            assert server.shared.vector is before
        worth = 0.5 * 5.0 * (math.sqrt(math.pi / 2) if shape == "normal" else 1)
        due = descend(start(), CLIENTS[0]) - start()
        assert worth * np.mean(changes, axis=0) == pytest.approx(due, abs=4 * worth / math.sqrt(4000))
