from dataclasses import replace

import numpy as np
import pytest
from tiny_networks import CLIENTS, TRAINING, gradient, open_fleet, start

from laconic.algorithm import Site
from laconic.algorithms.networks.obda import MAX_MISSED, OBDA, draw_signs, recall

METHOD = OBDA(replace(TRAINING, steps=1, rate=0.125, statistics="local"))


def test_everyone_takes_the_same_step_against_the_majority_of_signs() -> None:
    with open_fleet(METHOD) as fleet:
        server = METHOD.start_server(fleet.home.task, fleet)
        METHOD.run_round(server, fleet)
        votes = [len(mine.y) * np.sign(gradient(start(), mine)) for mine in CLIENTS]
        assert server.weights == pytest.approx(start() - 0.125 * np.sign(np.sum(votes, axis=0)), abs=1e-6)
        METHOD.deliver(server, fleet)
        assert all(np.array_equal(client.network.vector, server.weights) for client in fleet.states())
        total = fleet.ledger.total
        assert (total(direction="down").paper_bits, total(direction="up").paper_bits) == (2 * 5, 2 * 5)


def test_a_client_catches_up_on_every_vote_once_and_gets_the_weights_if_it_missed_too_many() -> None:
    with open_fleet(METHOD) as fleet:
        server = METHOD.start_server(fleet.home.task, fleet)
        late = METHOD.start_client(fleet.home.task, None)  # type: ignore[arg-type]  # looks at nothing
        site = Site(0, 1, *(CLIENTS[0],) * 2, np.random.default_rng(0))
        for number in range(1, MAX_MISSED + 2):
            fleet.begin(number)
            METHOD.run_round(server, fleet)
            missed = recall(server, server.version)
            assert (missed.weights is not None) == (number > MAX_MISSED)
            if number in (3, MAX_MISSED, MAX_MISSED + 1):
                for _ in range(2):  # the server did not hear that it came
                    METHOD.catch_up(late, missed, site)
                    assert np.array_equal(late.network.vector, server.weights)


def test_gradients_of_zero_fall_either_way() -> None:
    drawn = draw_signs(None, 1000, np.random.default_rng(0))
    assert 400 < np.count_nonzero(drawn) < 600
