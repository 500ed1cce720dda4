import pytest
from tiny_networks import CLIENTS, TRAINING, gradient, mean, open_fleet, start

from laconic.algorithms.networks.pfedme import PFedMe

METHOD = PFedMe(TRAINING, pull=0.5, inner_steps=2, outer_rate=0.3, blend=0.8)


def test_copies_follow_the_clients_own_networks_and_the_common_one_follows_the_copies() -> None:
    with open_fleet(METHOD) as fleet:
        server = METHOD.start_server(fleet.home.task, fleet)
        METHOD.run_round(server, fleet)
        own, copies = [], []
        for mine in CLIENTS:
            theta = copy = start()
            for _ in range(2):
                theta = theta - 0.5 * (gradient(theta, mine) + 0.5 * (theta - copy))
            own.append(theta)
            copies.append(copy - 0.3 * 0.5 * (copy - theta))
        assert server.shared.vector == pytest.approx(0.2 * start() + 0.8 * mean(copies), rel=1e-4)
        for client, vector in zip(fleet.states(), own, strict=True):
            assert client.own.vector == pytest.approx(vector, rel=1e-4)


def test_every_round_starts_from_the_common_network() -> None:
    with open_fleet(METHOD, CLIENTS[1:]) as fleet:
        server = METHOD.start_server(fleet.home.task, fleet)
        METHOD.run_round(server, fleet)
        (client,) = fleet.states()
        client.own.vector[:] = 7  # of no consequence
        common = server.shared.vector.astype(float)
        fleet.begin(2)
        METHOD.run_round(server, fleet)
        first = common - 0.5 * gradient(common, CLIENTS[1])
        second = first - 0.5 * (gradient(first, CLIENTS[1]) + 0.5 * (first - common))
        assert client.own.vector == pytest.approx(second, rel=1e-4)
