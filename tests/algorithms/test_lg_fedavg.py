from contextlib import closing

import numpy as np
import pytest
from tiny_networks import BODY, CLIENTS, HEAD, TRAINING, descend, mean, open_fleet, start

from laconic.algorithms.networks.lg_fedavg import LGFedAvg

METHOD = LGFedAvg(TRAINING)


def test_heads_are_averaged_by_examples_and_bodies_stay_where_they_were_trained() -> None:
    with closing(open_fleet(METHOD)) as fleet:
        server = METHOD.start_server(fleet.home.task, fleet)
        METHOD.run_round(server, fleet)
        trained = [descend(start(), mine) for mine in CLIENTS]
        assert server.shared.vector == pytest.approx(mean(trained)[HEAD], rel=1e-5)
        for client, vector in zip(fleet.states(), trained, strict=True):
            assert client.personal == pytest.approx(vector[BODY], rel=1e-5)
        METHOD.deliver(server, fleet)
        assert all(np.array_equal(client.shared, server.shared.vector) for client in fleet.states())
        assert fleet.ledger.total(direction="up").paper_bits == 2 * 4 * 32
