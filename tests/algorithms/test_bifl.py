import math
from dataclasses import replace

import numpy as np
import pytest
from tiny_networks import CLIENTS, SPEC, TRAINING, mean, open_fleet, start

from laconic.algorithms.networks.bifl_full import BiFLFull
from laconic.algorithms.networks.bifl_ml import BiFLML, Votes, estimate
from laconic.algorithms.networks.bifl_up_down import BiFLUpDown
from laconic.algorithms.networks.binary_votes import drop_rate
from laconic.networks import Network, start_vector
from laconic.networks.binary import binarize, fit_binary
from laconic.wire import Hop, Ledger, encode_detailed

LOCAL = replace(TRAINING, rate=0.01, statistics="local")


def trained() -> list[np.ndarray]:
    """The clients' latent weights after a round; Adam's first step is the rate, whatever the gradient."""
    found = []
    for mine in CLIENTS:
        latent = Network(SPEC, start_vector(SPEC, 0))
        fit_binary(latent, mine, np.random.default_rng(0), LOCAL)
        found.append(latent.vector)
    return found


def test_weights_are_signs_sized_by_the_number_of_inputs() -> None:
    latent = Network(SPEC, np.array([-0.3, 0.1, 0.0, -1, 1], np.float32))
    two = math.sqrt(2)  # one input each
    assert binarize(latent).vector == pytest.approx([-two, two, two, -two, two])


def test_latent_weights_take_adams_steps_and_stay_within_one() -> None:
    for vector in trained():
        assert np.abs(vector - start()) == pytest.approx(np.full(5, 0.01), abs=1e-3)
    latent = Network(SPEC, start_vector(SPEC, 0))
    fit_binary(latent, CLIENTS[0], np.random.default_rng(0), replace(LOCAL, rate=0.9, epochs=9))
    assert np.abs(latent.vector).max() <= 1


def test_full_averages_latent_weights_by_examples() -> None:
    method = BiFLFull(training=LOCAL)
    with open_fleet(method) as fleet:
        server = method.start_server(fleet.home.task, fleet)
        method.run_round(server, fleet)
        assert server.shared.vector == pytest.approx(mean(trained()), abs=1e-6)


def test_up_down_mixes_the_majoritys_signs_into_latent_weights_once() -> None:
    method = BiFLUpDown(mix=0.25, training=LOCAL)
    with open_fleet(method) as fleet:
        server = method.start_server(fleet.home.task, fleet)
        method.run_round(server, fleet)
        own = trained()
        majority = np.where(np.sum([np.where(one >= 0, 1, -1) for one in own], axis=0) >= 0, 1, -1)
        for _ in range(2):
            method.deliver(server, fleet)
            for client, mine in zip(fleet.states(), own, strict=True):
                assert client.latent.vector == pytest.approx(0.75 * mine + 0.25 * majority, abs=1e-6)
            server.held_by.clear()  # as if their replies had been lost
        total = fleet.ledger.total
        assert total(direction="up").paper_bits == 2 * 5


def test_ml_strengthens_weights_that_most_agree_with_and_turns_those_that_nearly_all_oppose() -> None:
    mine, mean_sign = np.array([0.4, 0.4, -0.4, 0.4], np.float32), np.array([1, -0.98, -1, 0], np.float32)
    a, b, c = 1.3758, 0.9899, -0.0261
    due = [1.75 * w * (a * math.log(b + v * np.sign(w)) + c) for w, v in zip(mine, mean_sign, strict=True)]
    assert estimate(mine, mean_sign, 100, 1.75) == pytest.approx(np.clip(due, -1, 1), abs=1e-4)
    assert due[0] > 0.4  # stronger
    assert due[1] < -1  # turned
    assert abs(due[3]) < 0.1  # undecided


def test_ml_clients_make_out_weights_from_the_votes_once() -> None:
    method = BiFLML(training=LOCAL)
    with open_fleet(method) as fleet:
        server = method.start_server(fleet.home.task, fleet)
        method.run_round(server, fleet)
        own = trained()
        votes = np.mean([np.where(one >= 0, 1, -1) for one in own], axis=0)
        for _ in range(2):
            method.deliver(server, fleet)
            for client, mine in zip(fleet.states(), own, strict=True):
                assert client.latent.vector == pytest.approx(estimate(mine, votes, 2, 1.75), abs=1e-5)
            server.held_by.clear()


def test_papers_count_of_the_votes_gives_fedtms_table_for_mnist() -> None:
    """82,242 weights, 100 clients: 6.8 MB down."""
    n_plus = np.zeros(82_242, np.uint16)
    n_plus[0] = 100
    ledger, votes = Ledger(), Votes(1, 100, n_plus)
    ledger.record(Hop(1, "train", "down", 0), votes, encode_detailed(votes))
    assert f"{100 * ledger.total().paper_bits / 8 / 1e6:.1f}" == "6.8"


def test_the_rate_falls_twice() -> None:
    rates = [drop_rate(LOCAL, 30, number).rate for number in (1, 30, 31, 60, 61, 500)]
    assert rates == pytest.approx([0.01, 0.01, 0.004, 0.004, 0.002, 0.002])
    assert drop_rate(LOCAL, 0, 500).rate == 0.01
