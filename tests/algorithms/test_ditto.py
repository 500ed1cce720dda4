import pytest
from tiny_networks import CLIENTS, TRAINING, descend, gradient, mean, open_fleet, start

from laconic.algorithms.networks.ditto import Ditto

METHOD = Ditto(TRAINING, pull=0.4)


def test_own_networks_are_pulled_to_the_network_received_which_is_fedavgs() -> None:
    with open_fleet(METHOD) as fleet:
        server = METHOD.start_server(fleet.home.task, fleet)
        common, own = start(), [start() for _ in CLIENTS]
        for number in (1, 2):
            fleet.begin(number)
            METHOD.run_round(server, fleet)
            own = [v - 0.5 * (gradient(v, mine) + 0.4 * (v - common)) for v, mine in zip(own, CLIENTS, strict=True)]
            common = mean([descend(common, mine) for mine in CLIENTS])
        assert server.shared.vector == pytest.approx(common, rel=1e-4)
        for client, vector in zip(fleet.states(), own, strict=True):
            assert client.own.vector == pytest.approx(vector, rel=1e-4)


def test_a_test_costs_nothing_for_clients_are_tested_with_their_own() -> None:
    with open_fleet(METHOD) as fleet:
        server = METHOD.start_server(fleet.home.task, fleet)
        METHOD.run_round(server, fleet)
        before = fleet.ledger.total().sent_bytes
        METHOD.deliver(server, fleet)
        assert fleet.ledger.total().sent_bytes == before
