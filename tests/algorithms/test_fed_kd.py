"""FedKD: as FML, through hidden features too, and with thin matrices on the wire."""

import numpy as np
import pytest
import torch

from laconic import networks as nn
from laconic.algorithm import Examples, Site, Task
from laconic.algorithms.networks.fed_kd import Common, FedKD, Sent
from laconic.fleets.source import ClientData
from laconic.networks import Training
from laconic.networks.duet import Answers
from laconic.networks.lowrank import Thin, fill_out, thin_out
from laconic.simulation import federate

TASK = Task((6,), 3, 2)


def method(**settings) -> FedKD:
    return FedKD(training=Training(model="mlp", batch=4, rate=0.1), aux_model="mlp", **settings)


def site(labels: list[int], client: int = 0) -> Site:
    rng = np.random.default_rng(client)
    examples = Examples(rng.random((len(labels), 6), np.float32), np.array(labels))
    return Site(client, 1, examples, examples, np.random.default_rng(0))


def test_what_one_learns_from_the_other_is_divided_by_both_losses_by_hand() -> None:
    """One example of class 0; own (1/2, 1/2), common (1/4, 3/4): losses ln 2 and ln 4. Features (1, 2) and 3."""
    own, aux = np.array([0.5, 0.5]), np.array([0.25, 0.75])
    logits, aux_logits = (torch.log(torch.tensor(each))[None] for each in (own, aux))
    bridge = torch.tensor([[1.0], [0.5]])  # of feature 3 makes (3, 1.5)
    answers = Answers(torch.tensor([0]), torch.tensor([[1.0, 2.0]]), logits, torch.tensor([[3.0]]), aux_logits)
    to_own, to_aux = (aux * np.log(aux / own)).sum() / 2, (own * np.log(own / aux)).sum() / 2
    hidden = ((1 - 3) ** 2 + (2 - 1.5) ** 2) / 2
    both = np.log(2) + np.log(4)
    mine, theirs = np.log(2) + (to_own + hidden) / both, np.log(4) + (to_aux + hidden) / both
    assert float(method().teach_each_other(answers, bridge)) == pytest.approx(mine + theirs)


def test_a_class_known_by_heart_breaks_nothing() -> None:
    sure = torch.tensor([[200.0, -200.0]], requires_grad=True)
    features = torch.ones(1, 1)
    answers = Answers(torch.tensor([0]), features, sure, features, sure * 1.0)
    loss = method().teach_each_other(answers, torch.ones(1, 1))
    loss.backward()
    assert loss.item() == 0
    assert torch.isfinite(sure.grad).all()


def test_energy_rises_evenly_and_then_stays() -> None:
    rising = method(first_energy=0.5, last_energy=0.9, rising_rounds=4)
    assert [rising.energy(number) for number in (0, 1, 2, 4, 9)] == pytest.approx([0.5, 0.6, 0.7, 0.9, 0.9])
    assert FedKD().energy(300) == pytest.approx(0.98)
    with pytest.raises(ValueError, match=r"first_energy = 0.9, method.last_energy = 0.5 must rise"):
        method(first_energy=0.9, last_energy=0.5)


def test_networks_count_by_their_examples() -> None:
    kd = method()
    spec = kd.common_spec(TASK)
    ranks, ones = np.zeros(len(nn.layout(spec).pieces), np.int64), np.ones(kd.part(spec).size, np.float32)
    merged = kd.merge(spec, [Sent(ranks, 1 * ones, 30), Sent(ranks, 5 * ones, 10)])
    assert merged == pytest.approx(2 * ones)  # (30 · 1 + 10 · 5) / 40


def test_the_common_network_comes_and_goes_thin() -> None:
    kd = method(first_energy=0.6, last_energy=0.6)
    server = kd.start_server(TASK, None)  # type: ignore[arg-type]
    layout, part = nn.layout(server.spec), kd.part(server.spec)
    thin = thin_out(server.vector, layout, part, 0.6)
    assert thin.values.size < server.vector.size
    client = kd.start_client(TASK, site([0]))
    own = client.network.vector
    reply = kd.train(client, Common(*thin), site([0, 1, 2, 0]))
    assert reply.n_examples == 4
    assert reply.values.size < server.vector.size
    assert not np.array_equal(client.network.vector, own)
    lost = client.common.vector[part.mask] - fill_out(Thin(reply.ranks, reply.values), layout, part)
    assert 0 < (lost**2).sum() < 0.4 * (client.common.vector**2).sum()


def test_less_energy_takes_fewer_bytes_and_the_paper_counts_what_is_sent() -> None:
    sent = {}
    for energy in (0.5, 1.0):
        kd = method(first_energy=energy, last_energy=energy)
        source = ClientData.of([(site([0, 1, 2, 1], client).train,) * 3 for client in range(2)])
        with federate(kd, TASK, source, 0, workers=1) as federation:
            for number in (0, 1):
                federation.play(number, is_evaluated=False)
            sent[energy] = federation.fleet.ledger.total()
    assert sent[1.0].paper_bits == 2 * 2 * 32 * federation.server.vector.size
    assert sent[0.5].paper_bits < 0.7 * sent[1.0].paper_bits
    assert sent[0.5].sent_bytes < 0.7 * sent[1.0].sent_bytes
