import numpy as np
import pytest
import torch
from tiny_networks import BODY, CLIENTS, HEAD, TRAINING, descend, mean, open_fleet, start

from laconic.algorithms.networks.lg_fedavg import LGFedAvg
from laconic.networks import Training

METHOD = LGFedAvg(TRAINING)


def test_heads_are_averaged_by_examples_and_bodies_stay_where_they_were_trained() -> None:
    with open_fleet(METHOD) as fleet:
        server = METHOD.start_server(fleet.home.task, fleet)
        METHOD.run_round(server, fleet)
        trained = [descend(start(), mine) for mine in CLIENTS]
        assert server.shared.vector == pytest.approx(mean(trained)[HEAD], rel=1e-5)
        for client, vector in zip(fleet.states(), trained, strict=True):
            assert client.personal == pytest.approx(vector[BODY], rel=1e-5)
        METHOD.deliver(server, fleet)
        assert all(np.array_equal(client.shared, server.shared.vector) for client in fleet.states())
        assert fleet.ledger.total(direction="up").paper_bits == 2 * 4 * 32


def test_bodies_of_several_kinds_share_one_head_which_all_receive_first() -> None:
    method = LGFedAvg(Training(batch=4), models=("mlp", "test_lg_fedavg:Narrow"), n_features=6)
    with open_fleet(method) as fleet:
        server = method.start_server(fleet.home.task, fleet)
        method.run_round(server, fleet)
        method.deliver(server, fleet)
        states = fleet.states()
        assert len({state.spec.model for state in states}) == 2
        assert len({state.personal.size for state in states}) == 2
        assert all(np.array_equal(state.shared, server.shared.vector) for state in states)
        assert fleet.ledger.total(step="train", direction="down").sent_bytes > 100  # the head, not an empty message


def test_bodies_of_several_kinds_need_a_number_of_features() -> None:
    with pytest.raises(ValueError, match=r"n_features = 0: bodies of several kinds .* say how many"):
        LGFedAvg(models=("mlp", "resnet8"))


class Narrow(torch.nn.Module):
    """Its head gets 6 features."""

    def __init__(self, input_shape: tuple[int, ...], n_classes: int) -> None:
        super().__init__()
        self.body, self.head = torch.nn.Linear(*input_shape, 6), torch.nn.Linear(6, n_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.body(x)))
