import numpy as np
import pytest
from tiny_networks import BODY, HEAD, TRAINING, descend, examples, open_fleet, start

from laconic.algorithms.networks.pfedfda import PFedFDA
from laconic.networks import Training
from laconic.networks.gaussians import read_triangle, write_triangle

METHOD = PFedFDA(TRAINING, ridge=0.1)
CLIENTS = (examples((1, 0), (1.5, 0), (2, 1), (2.5, 1), (-1, 0), (-3, 0)), examples((3, 1), (4, 1)))


def classifier(means: np.ndarray, variance: float, shares: list[float]) -> np.ndarray:
    """As it lies in the vector, for one feature."""
    known = (np.array(shares) + 1e-4) / (1 + 2e-4)
    return np.concatenate([means / variance, np.log(known) - means**2 / variance / 2])


def test_bodies_are_trained_under_the_head_of_the_common_gaussians() -> None:
    with open_fleet(METHOD, CLIENTS) as fleet:
        server = METHOD.start_server(fleet.home.task, fleet)
        means = server.means[:, 0].astype(float)
        METHOD.run_round(server, fleet)
        bodies = []
        for mine, shares in zip(CLIENTS, ([4 / 6, 2 / 6], [0, 1]), strict=True):
            vector = start()
            vector[HEAD] = classifier(means, 1.0, shares)
            bodies.append(descend(vector, mine, BODY)[0])
        assert server.shared.vector[0] == pytest.approx(np.average(bodies, weights=[6, 2]), rel=1e-4)


def test_mixtures_are_averaged_by_examples_and_classes_that_a_client_lacks_do_not_travel() -> None:
    with open_fleet(METHOD, CLIENTS) as fleet:
        server = METHOD.start_server(fleet.home.task, fleet)
        common, body = server.means[:, 0].astype(float), float(server.shared.vector[0])
        METHOD.run_round(server, fleet)
        sent = {row["client"]: row for row in map(dict, rows(fleet, "means"))}
        assert [sent[client]["paper_bits"] for client in (0, 1)] == [2 * 32, 32]
        trust = [fleet.client_notes[client] for client in (0, 1)]
        expected, variance = np.zeros(2), 0.0
        for n, mine, note, shares in zip((6, 2), CLIENTS, trust, ([4 / 6, 2 / 6], [0, 1]), strict=True):
            vector = start()
            vector[HEAD] = classifier(common, 1.0, shares)
            features = descend(vector, mine, BODY)[0] * mine.x[:, 0]
            own = np.array([features[mine.y == k].mean() if (mine.y == k).any() else common[k] for k in (0, 1)])
            spread = ((features - own[mine.y]) ** 2).sum() / (n - 1) + 0.1
            expected += n / 8 * (note["trust_means"] * own + (1 - note["trust_means"]) * common)
            variance += n / 8 * (note["trust_covariance"] * spread + (1 - note["trust_covariance"]))
        assert body == start()[0]
        assert server.means[:, 0] == pytest.approx(expected, rel=1e-4)
        assert server.covariance[0, 0] == pytest.approx(variance, rel=1e-4)


def rows(fleet: object, field: str) -> list[dict]:
    columns = fleet.ledger.columns  # type: ignore[attr-defined]
    table = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return [row for row in table if row["field"] == field and row["direction"] == "up"]


def test_before_a_test_every_client_gets_body_and_gaussians_and_makes_its_own_head() -> None:
    with open_fleet(METHOD, CLIENTS) as fleet:
        server = METHOD.start_server(fleet.home.task, fleet)
        METHOD.run_round(server, fleet)
        METHOD.deliver(server, fleet)
        heads = [client.common.personal for client in fleet.states()]
        assert not np.allclose(*heads)
        for client in fleet.states():
            assert np.array_equal(client.means, server.means)
            assert np.array_equal(client.common.shared, server.shared.vector)
        assert METHOD.predict(fleet.states()[1], CLIENTS[1].x).tolist() == [1, 1]


def test_a_covariance_travels_as_a_triangle() -> None:
    factor = np.random.default_rng(0).normal(size=(7, 7))
    covariance = (factor @ factor.T).astype(np.float32)
    assert write_triangle(covariance).size == 28
    assert np.array_equal(read_triangle(write_triangle(covariance)), np.triu(covariance) + np.triu(covariance, 1).T)


def test_priors_are_refused_for_the_heads_have_them() -> None:
    with pytest.raises(ValueError, match=r"method.training.prior = true has no place here"):
        PFedFDA(Training(prior=True))
