from dataclasses import replace

import numpy as np
import pytest
from tiny_networks import CLIENTS, TRAINING, descend, open_fleet, start

from laconic.algorithms.networks.obcsaa import OBCSAA, make_out
from laconic.networks.selection import keep_largest
from laconic.networks.sketch import Sketch, as_numbers, signs

METHOD = OBCSAA(share=1.0, kept=0.4, training=replace(TRAINING, statistics="local"))


def test_a_sparse_direction_is_made_out_from_signs_better_with_more_iterations() -> None:
    rng, sketch, truth = np.random.default_rng(0), Sketch(2000, 1600, seed=3), np.zeros(2000, np.float32)
    truth[rng.choice(2000, 40, replace=False)] = rng.normal(size=40)
    measured = as_numbers(signs(sketch.forward(truth)))
    found = [make_out(sketch, measured, 40, iterations) for iterations in (1, 50)]
    cosines = [one @ truth / np.linalg.norm(truth) for one in found]
    assert cosines[0] < cosines[1]
    assert cosines[1] > 0.95
    assert np.count_nonzero(found[1]) == 40
    assert np.linalg.norm(found[1]) == pytest.approx(1)


def test_only_the_largest_entries_count() -> None:
    assert keep_largest(np.array([1, -5, 2, 3], np.float32), 2).tolist() == [0, -5, 0, 3]


def test_the_server_adds_the_direction_made_out_of_the_mean_signs_at_the_mean_length() -> None:
    with open_fleet(METHOD) as fleet:
        server = METHOD.start_server(fleet.home.task, fleet)
        METHOD.run_round(server, fleet)
        sketch, sizes = METHOD.sketch(5, 1), [len(mine.y) for mine in CLIENTS]
        largest = [keep_largest((descend(start(), mine) - start()).astype(np.float32), 2) for mine in CLIENTS]
        measured = np.average([as_numbers(signs(sketch.forward(one))) for one in largest], axis=0, weights=sizes)
        length = np.average([np.linalg.norm(one) for one in largest], weights=sizes)
        assert server.shared.vector == pytest.approx(start() + length * make_out(sketch, measured, 2, 20), abs=1e-5)
        METHOD.deliver(server, fleet)
        assert all(np.array_equal(client.shared, server.shared.vector) for client in fleet.states())
