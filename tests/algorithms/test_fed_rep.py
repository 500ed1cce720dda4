import pytest
from tiny_networks import BODY, CLIENTS, HEAD, TRAINING, descend, mean, open_fleet, start

from laconic.algorithms.networks.fed_rep import FedRep

METHOD = FedRep(TRAINING, head_epochs=2)


def test_the_head_is_trained_first_on_the_body_received_and_the_body_then_under_that_head() -> None:
    with open_fleet(METHOD) as fleet:
        server = METHOD.start_server(fleet.home.task, fleet)
        METHOD.run_round(server, fleet)
        with_head = [descend(descend(start(), mine, HEAD), mine, HEAD) for mine in CLIENTS]
        trained = [descend(vector, mine, BODY) for vector, mine in zip(with_head, CLIENTS, strict=True)]
        assert server.shared.vector == pytest.approx(mean(trained)[BODY], rel=1e-5)
        for client, vector in zip(fleet.states(), trained, strict=True):
            assert client.personal == pytest.approx(vector[HEAD], rel=1e-5)
        METHOD.deliver(server, fleet)
        assert all(client.shared == server.shared.vector for client in fleet.states())
        assert fleet.ledger.total(direction="up").paper_bits == 2 * 32  # the body


def test_no_epochs_of_the_head_are_refused() -> None:
    with pytest.raises(ValueError, match=r"method.head_epochs = 0 must be at least 1"):
        FedRep(head_epochs=0)
