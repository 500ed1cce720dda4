"""FedDistill: mean logits of each class."""

import numpy as np
import pytest
import torch

from laconic import networks as nn
from laconic.algorithm import Examples, Site, Task
from laconic.algorithms.networks.class_targets import Means, Targets, average_targets
from laconic.algorithms.networks.fed_distill import FedDistill
from laconic.networks import Batch, Training

TASK = Task((4,), 2, 2)
METHOD = FedDistill(training=Training(model="mlp", batch=4, rate=0.1))


def site(labels: list[int]) -> Site:
    examples = Examples(np.random.default_rng(0).random((len(labels), 4), np.float32), np.array(labels))
    return Site(0, 1, examples, examples, np.random.default_rng(0))


def test_opinions_are_the_plain_mean_over_clients_that_have_the_class() -> None:
    both = Means(np.array([True, True]), np.array([1, 0, 2, 4], np.float32), None, None, None)
    one = Means(np.array([False, True]), np.array([4, 0], np.float32), None, None, None)
    opinions, has_any = average_targets({0: both, 1: one}, np.ones((2, 2), np.bool_))
    assert opinions.tolist() == [[1, 0], [3, 2]]
    assert has_any.all()


def test_the_loss_is_cross_entropy_with_the_labels_and_with_the_softmax_of_the_classs_mean_logits() -> None:
    """Class 0 has the opinion (ln 3, 0), so (3/4, 1/4); class 1 has none yet, and costs nothing more."""
    client = METHOD.start_client(TASK, site([0]))
    client.receive(Targets(np.array([True, False]), np.array([np.log(3), 0], np.float32), None, None, None))
    logits = torch.tensor([[1.0, 0.0], [0.0, 0.0]])
    batch = Batch(np.arange(2), torch.tensor([0, 1]), torch.zeros(2, 1), logits)
    shares = np.array([np.e, 1]) / (np.e + 1)
    apart = -(0.75 * np.log(shares[0]) + 0.25 * np.log(shares[1]))
    for pull in (1.0, 0.1):
        loss = FedDistill(pull=pull).hold(client, site([0]))
        assert loss(batch).item() == pytest.approx(nn.cross_entropy(batch).item() + pull * apart / 2)


def test_a_client_tells_the_mean_logits_of_the_classes_it_has() -> None:
    client = METHOD.start_client(TASK, site([0]))
    nothing = Targets(np.zeros(2, np.bool_), np.zeros(0, np.float32), None, None, None)
    here = site([1, 1, 1])
    reply = METHOD.train(client, nothing, here)
    assert reply.held.tolist() == [False, True]
    assert reply.exact == pytest.approx(nn.outputs(client.network, here.train.x)[1].mean(axis=0), abs=1e-5)
    assert reply.n_examples is None


def test_the_paper_counts_k_numbers_for_each_class_held_and_each_class() -> None:
    down, up = METHOD.costliest_round(Task((4,), 10, 2))
    assert up.exact.size == down.exact.size == 10 * 10
