import numpy as np
import pytest
from tiny_networks import BODY, CLIENTS, HEAD, TRAINING, descend, mean, open_fleet, start

from laconic.algorithms.networks.fed_babu import FedBABU

METHOD = FedBABU(TRAINING, tune_epochs=2)


def test_bodies_are_averaged_under_the_head_of_the_start() -> None:
    with open_fleet(METHOD) as fleet:
        server = METHOD.start_server(fleet.home.task, fleet)
        METHOD.run_round(server, fleet)
        trained = [descend(start(), mine, BODY) for mine in CLIENTS]
        assert server.shared.vector == pytest.approx(mean(trained)[BODY], rel=1e-5)
        for client in fleet.states():
            assert np.array_equal(client.common.personal, start()[HEAD].astype(np.float32))


def test_each_client_is_tested_with_a_tuned_copy_and_goes_on_with_what_it_received() -> None:
    with open_fleet(METHOD) as fleet:
        server = METHOD.start_server(fleet.home.task, fleet)
        METHOD.run_round(server, fleet)
        METHOD.deliver(server, fleet)
        received = start()
        received[BODY] = mean([descend(start(), mine, BODY) for mine in CLIENTS])[BODY]
        for client, mine in zip(fleet.states(), CLIENTS, strict=True):
            assert client.own.vector == pytest.approx(descend(descend(received, mine), mine), rel=1e-4)
            assert np.array_equal(client.common.shared, server.shared.vector)
            assert np.array_equal(client.common.personal, start()[HEAD].astype(np.float32))
        sent = fleet.ledger.total(direction="down")
        assert sent.paper_bits == 2 * 32
        METHOD.deliver(server, fleet)  # all hold it, and tune all the same
        assert fleet.ledger.total(direction="down").paper_bits == sent.paper_bits
