from dataclasses import replace

import numpy as np
import pytest
from tiny_networks import TRAINING, examples, open_fleet

from laconic.algorithms.networks.fed_avg import FedAvg
from laconic.algorithms.networks.fed_bn import FedBN
from laconic.networks import start_vector

METHOD = FedBN(replace(TRAINING, model="tiny_networks:TinyNorm"))
CLIENTS = (examples((1, 0), (2, 1), (-1, 0)), examples((3, 1), (7, 0)))
NORMS, STATISTICS = slice(1, 3), slice(7, 9)  # scale and shift; running mean and variance


def test_batch_normalisations_and_their_statistics_never_leave_the_client() -> None:
    with open_fleet(METHOD, CLIENTS) as fleet:
        server = METHOD.start_server(fleet.home.task, fleet)
        METHOD.run_round(server, fleet)
        METHOD.deliver(server, fleet)
        assert server.shared.vector.size == 5  # a, w0, w1, b0, b1
        first, second = fleet.states()
        assert np.array_equal(first.shared, second.shared)
        assert (first.personal != second.personal).all()
        a = start_vector(first.spec, 0)[0]
        # momentum 0.1: a tenth of the batch's mean beside nine tenths of 0
        assert [client.personal[2] for client in (first, second)] == pytest.approx([0.1 * a * 2 / 3, 0.1 * a * 5])
        assert fleet.ledger.total(direction="up").paper_bits == 2 * 5 * 32


def test_what_is_averaged_is_what_fedavg_makes_of_it_in_the_first_round() -> None:
    plain = FedAvg(METHOD.training)
    vectors = []
    for method in (METHOD, plain):
        with open_fleet(method, CLIENTS) as fleet:
            server = method.start_server(fleet.home.task, fleet)
            method.run_round(server, fleet)
            vectors.append(server.shared.vector)
    rest = np.setdiff1d(np.arange(9), np.r_[NORMS, STATISTICS])
    assert np.array_equal(vectors[0], vectors[1][rest])


def test_a_model_without_batch_normalisation_is_refused() -> None:
    with pytest.raises(ValueError, match="so fedbn would be fedavg; choose"), open_fleet(FedBN(TRAINING)):
        pass
