import pytest
from tiny_networks import CLIENTS, TRAINING, descend, gradient, logits, mean, open_fleet, push_back, shares, start

from laconic.algorithms.networks.pfedsd import PFedSD

METHOD = PFedSD(TRAINING, distil=0.5, temperature=3.0)


def test_from_its_second_training_on_a_client_also_learns_from_its_previous_network() -> None:
    with open_fleet(METHOD) as fleet:
        server = METHOD.start_server(fleet.home.task, fleet)
        METHOD.run_round(server, fleet)
        teachers = [descend(start(), mine) for mine in CLIENTS]
        common = mean(teachers)
        assert server.shared.vector == pytest.approx(common, rel=1e-5)
        fleet.begin(2)
        METHOD.run_round(server, fleet)
        own = []
        for teacher, mine in zip(teachers, CLIENTS, strict=True):
            # by the logits, 3² · KL(teacher ‖ student) at temperature 3 has the gradient 3 · (student - teacher)
            apart = shares(logits(common, mine.x) / 3) - shares(logits(teacher, mine.x) / 3)
            own.append(common - 0.5 * (gradient(common, mine) + 0.5 * push_back(common, mine, 3 * apart)))
        assert server.shared.vector == pytest.approx(mean(own), rel=1e-4)
        for client, vector in zip(fleet.states(), own, strict=True):
            assert client.own.vector == pytest.approx(vector, rel=1e-4)


def test_temperature_must_be_above_0() -> None:
    with pytest.raises(ValueError, match=r"method.temperature = 0 must be above 0"):
        PFedSD(temperature=0)
