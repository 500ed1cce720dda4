"""FML: own networks and a common one that teach each other."""

from contextlib import AbstractContextManager

import numpy as np
import pytest
import torch

from laconic.algorithm import Examples, Site, Task
from laconic.algorithms.networks.fml import FML
from laconic.algorithms.networks.weights import NO_NEWS
from laconic.fleets.source import ClientData
from laconic.networks import Training
from laconic.networks.duet import Answers
from laconic.simulation import Federation, federate

TASK = Task((6,), 3, 3)
METHOD = FML(training=Training(model="mlp", batch=4, rate=0.1), aux_model="mlp")


def site(labels: list[int], client: int = 0) -> Site:
    rng = np.random.default_rng(client)
    examples = Examples(rng.random((len(labels), 6), np.float32), np.array(labels))
    return Site(client, 1, examples, examples, np.random.default_rng(0))


def gather(labels: list[list[int]]) -> AbstractContextManager[Federation]:
    source = ClientData.of([(site(mine, client).train,) * 3 for client, mine in enumerate(labels)])
    return federate(METHOD, Task((6,), 3, len(labels)), source, 0, workers=1)


def test_a_loss_is_half_the_labels_and_half_the_others_opinion_by_hand() -> None:
    """One example of class 0; own (1/2, 1/2), common (1/4, 3/4). Divergences are averaged over two classes."""
    own, aux = np.array([0.5, 0.5]), np.array([0.25, 0.75])
    logits, aux_logits = (torch.log(torch.tensor(each))[None] for each in (own, aux))
    none = torch.zeros(1, 1)
    answers = Answers(torch.tensor([0]), none, logits, none, aux_logits)
    to_own, to_aux = (aux * np.log(aux / own)).sum() / 2, (own * np.log(own / aux)).sum() / 2
    for share in (0.5, 0.2):
        method = FML(own_share=share, aux_share=0.5)
        mine = share * np.log(2) + (1 - share) * to_own
        theirs = 0.5 * np.log(4) + 0.5 * to_aux
        assert float(method.teach_each_other(answers, none)) == pytest.approx(mine + theirs)


def test_changes_count_alike_whatever_the_number_of_examples() -> None:
    with gather([[0] * 20 + [1, 2], [1, 2]]) as federation:
        federation.play(0, is_evaluated=False)
        updates = federation.fleet.ask(METHOD.train, dict.fromkeys([0, 1], NO_NEWS))
    server = federation.server
    before = server.shared.vector
    assert [update.n_examples for update in updates.values()] == [1, 1]
    METHOD.merge(server, updates, 1)
    mean = (updates[0].exact + updates[1].exact) / 2
    assert server.shared.vector == pytest.approx(before + mean, abs=1e-6)


def test_own_networks_stay_and_the_common_one_travels() -> None:
    with gather([[0, 1, 2, 0], [1, 2, 1, 2]]) as federation:
        for number in (0, 1):
            federation.play(number, is_evaluated=False)
        server, (first, second) = federation.server, federation.fleet.states()
    assert not np.array_equal(first.network.vector, second.network.vector)
    assert np.array_equal(first.common.shared, second.common.shared)
    assert not np.array_equal(server.shared.vector, first.common.shared)  # merged, and not yet sent
    total = federation.fleet.ledger.total(direction="up")
    assert total.paper_bits == 2 * 32 * server.shared.vector.size


def test_what_a_client_predicts_by_is_its_own_network() -> None:
    client = METHOD.start_client(TASK, site([0]))
    x = site([0, 1, 2]).train.x
    before = METHOD.predict(client, x)
    client.common.shared = np.full_like(client.common.shared, np.nan)
    assert np.array_equal(METHOD.predict(client, x), before)


def test_shares_beyond_one_are_refused() -> None:
    with pytest.raises(ValueError, match=r"method.aux_share = 1.5 must be from 0 to 1"):
        FML(aux_share=1.5)
