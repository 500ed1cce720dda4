import numpy as np
import pytest
from tiny_networks import BODY, CLIENTS, HEAD, TRAINING, descend, gradient, mean, open_fleet, start

from laconic.algorithms.networks.fed_pac import FedPAC, Report
from laconic.networks.gaussians import find_spread
from laconic.networks.means import least_on_simplex

METHOD = FedPAC(TRAINING, head_rate=0.2, align=0.7)


def report(head: float, counts: list[int], signature: list[float], spread: float) -> Report:
    rows = np.array(signature, np.float32)[:, None]
    return Report(None, None, None, sum(counts), np.full(4, head, np.float32), np.array(counts), rows, rows, spread)


def test_the_head_is_trained_first_then_the_body_which_prototypes_pull_from_the_second_round_on() -> None:
    with open_fleet(METHOD) as fleet:
        server = METHOD.start_server(fleet.home.task, fleet)
        METHOD.run_round(server, fleet)
        trained = [descend(descend(start(), mine, HEAD, 0.2), mine, BODY) for mine in CLIENTS]
        assert server.shared.vector == pytest.approx(mean(trained)[BODY], rel=1e-5)
        # client 0 has inputs 1 and -1 of class 0 and 2 of class 1, client 1 an input 3 of class 1; features are a·x
        a0, a1 = (vector[0] for vector in trained)
        prototypes = np.array([0, (2 * a0 + 3 * a1) / 2])
        assert server.has_prototype.all()
        assert server.prototypes[:, 0] == pytest.approx(prototypes, rel=1e-4, abs=1e-6)
        heads = [client.personal.astype(float) for client in fleet.states()]
        common = float(server.shared.vector[0])
        fleet.begin(2)
        METHOD.run_round(server, fleet)
        bodies = []
        for head, mine in zip(heads, CLIENTS, strict=True):
            vector = descend(np.array([common, *head]), mine, HEAD, 0.2)
            x = mine.x[:, 0]
            pull = np.mean(2 * (vector[0] * x - prototypes[mine.y]) * x)
            bodies.append(vector[0] - 0.5 * (gradient(vector, mine)[0] + 0.7 * pull))
        assert server.shared.vector[0] == pytest.approx(np.average(bodies, weights=[3, 1]), rel=1e-4)


def test_heads_are_weighed_by_likeness_and_by_how_surely_features_are_known() -> None:
    alike = METHOD.mix_heads({3: report(1, [1, 1], [1, 1], 0.1), 5: report(5, [1, 1], [1, 1], 0.3)})
    assert [alike[client].head[0] for client in (3, 5)] == pytest.approx([2, 2])  # 3/4 · 1 + 1/4 · 5
    # unlike by 1² + 1² = 2: one's own head costs v, the other's v + 2
    unlike = METHOD.mix_heads({3: report(1, [1, 1], [1, 1], 0.5), 5: report(5, [1, 1], [0, 0], 0.5)})
    assert unlike[3].head[0] == pytest.approx((2.5 * 1 + 0.5 * 5) / 3)
    assert unlike[5].head[0] == pytest.approx((0.5 * 1 + 2.5 * 5) / 3)
    alone = METHOD.mix_heads({3: report(1, [1, 0], [1], 0.0)})
    assert alone[3].head.tolist() == [1] * 4


def test_weights_on_the_simplex_are_where_no_weight_can_be_moved_for_less() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 30):
        factor = rng.normal(size=(n, 3)) + 1
        cost = np.diag(rng.random(n) * 0.1) + factor @ factor.T
        weights = least_on_simplex(cost)
        slopes = cost @ weights
        assert weights.sum() == pytest.approx(1)
        assert (weights >= 0).all()
        assert slopes[weights > 0] == pytest.approx(slopes.min(), rel=1e-4)
    assert least_on_simplex(np.zeros((2, 2))).tolist() == [0.5, 0.5]


def test_prototypes_are_averaged_by_examples_and_stay_where_nobody_has_the_class() -> None:
    with open_fleet(METHOD) as fleet:
        server = METHOD.start_server(fleet.home.task, fleet)
    server.prototypes[1], server.has_prototype[1] = 9, True
    METHOD.merge_prototypes(server, [report(0, [3, 0], [2], 0), report(0, [1, 0], [6], 0)])
    assert server.prototypes[:, 0].tolist() == [3, 9]
    assert server.has_prototype.all()


def test_spread_is_that_of_the_features_over_their_number() -> None:
    assert find_spread(np.array([[1.0], [3.0]]), np.array([[2.0]]), np.array([1.0])) == (5 - 4) / 2
