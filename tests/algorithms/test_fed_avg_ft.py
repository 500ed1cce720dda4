import numpy as np
import pytest
from tiny_networks import CLIENTS, TRAINING, descend, mean, open_fleet, start

from laconic.algorithms.networks.fed_avg import FedAvg
from laconic.algorithms.networks.fed_avg_ft import FedAvgFT

METHOD = FedAvgFT(TRAINING)


def test_each_client_is_tested_with_what_one_more_training_makes_of_the_mean() -> None:
    with open_fleet(METHOD) as fleet:
        server = METHOD.start_server(fleet.home.task, fleet)
        METHOD.run_round(server, fleet)
        METHOD.deliver(server, fleet)
        common = mean([descend(start(), mine) for mine in CLIENTS])
        assert server.shared.vector == pytest.approx(common, rel=1e-5)
        for client, mine in zip(fleet.states(), CLIENTS, strict=True):
            assert client.own.vector == pytest.approx(descend(common, mine), rel=1e-4)
            assert np.array_equal(client.common.shared, server.shared.vector)


def test_tuning_leaves_the_common_network_as_fedavg_has_it() -> None:
    vectors = []
    for method in (METHOD, FedAvg(TRAINING)):
        with open_fleet(method) as fleet:
            server = method.start_server(fleet.home.task, fleet)
            for number in (1, 2, 3):
                fleet.begin(number)
                method.run_round(server, fleet)
                method.deliver(server, fleet)
            vectors.append(server.shared.vector)
    assert vectors[0] == pytest.approx(vectors[1])
