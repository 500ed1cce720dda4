import numpy as np
import pytest
from tiny_networks import BODY, CLIENTS, HEAD, TRAINING, descend, mean, open_fleet, start

from laconic.algorithms.networks.fed_per import FedPer

METHOD = FedPer(TRAINING)


def test_bodies_are_averaged_by_examples_and_heads_stay_where_they_were_trained() -> None:
    with open_fleet(METHOD) as fleet:
        server = METHOD.start_server(fleet.home.task, fleet)
        METHOD.run_round(server, fleet)
        trained = [descend(start(), mine) for mine in CLIENTS]
        assert server.shared.vector == pytest.approx(mean(trained)[BODY], rel=1e-5)
        for client, vector in zip(fleet.states(), trained, strict=True):
            assert client.personal == pytest.approx(vector[HEAD], rel=1e-5)
            assert client.shared == pytest.approx(start()[BODY])  # until it is tested
        METHOD.deliver(server, fleet)
        assert all(np.array_equal(client.shared, server.shared.vector) for client in fleet.states())


def test_only_the_body_travels() -> None:
    with open_fleet(METHOD) as fleet:
        server = METHOD.start_server(fleet.home.task, fleet)
        METHOD.run_round(server, fleet)
        assert fleet.ledger.total(direction="down").paper_bits == 0  # everyone starts with the same
        assert fleet.ledger.total(direction="up").paper_bits == 2 * 32
        METHOD.deliver(server, fleet)
        assert fleet.ledger.total(direction="down").paper_bits == 2 * 32
