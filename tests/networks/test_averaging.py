"""What methods that average weights share (algorithms/networks/averaging.py)."""

from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tiny_networks import CLIENTS, SPEC, TRAINING, descend, mean, open_fleet, start

from laconic import networks as nn
from laconic.algorithm import bound_bytes
from laconic.algorithms import load_method
from laconic.algorithms.networks import averaging
from laconic.algorithms.networks.averaging import Shared, Update, Weights, find_part
from laconic.algorithms.networks.fed_avg import FedAvg
from laconic.networks import Spec, Training, start_vector

PART = find_part(SPEC)
METHOD = FedAvg(TRAINING)


def update(change: list[float], n_examples: int) -> Update:
    return Update(np.array(change, np.float32), None, None, n_examples)


def test_the_mean_change_is_by_examples() -> None:
    shared = Shared(np.array([1, 2], np.float32))
    averaging.merge(shared, {4: update([1, 0], 3), 7: update([5, 4], 1)}, PART)
    assert shared.vector.tolist() == [3, 3]
    assert (shared.version, shared.held_by) == (1, {4: 0, 7: 0})  # they have what was before


def test_clients_without_examples_change_nothing() -> None:
    shared = Shared(np.array([1, 2], np.float32))
    averaging.merge(shared, {4: update([1, 1], 0)}, PART)
    assert shared.vector.tolist() == [1, 2]


def test_nothing_is_sent_to_those_who_hold_the_latest() -> None:
    shared = Shared(start_vector(SPEC, 0), version=2, held_by={0: 2, 1: 1})
    offered = averaging.offer(shared, [0, 1, 2], PART, TRAINING)
    assert {client: weights.is_news for client, weights in offered.items()} == {0: False, 1: True, 2: True}
    assert offered[1] is offered[2]  # encoded once
    assert [*averaging.offer(shared, [0, 1, 2], PART, TRAINING, to_holders=False)] == [1, 2]
    averaging.mark_held(shared, [1, 2])
    assert averaging.offer(shared, [0, 1, 2], PART, TRAINING, to_holders=False) == {}


def test_first_weights_cost_nothing_for_they_follow_from_a_seed() -> None:
    shared = averaging.start_shared(SPEC, PART, TRAINING)
    assert not averaging.offer(shared, [0], PART, TRAINING)[0].is_news
    assert np.array_equal(averaging.start_client(SPEC, PART, TRAINING).shared, shared.vector)


def test_extended_messages_are_as_many_as_those_offered() -> None:
    shared = Shared(start_vector(SPEC, 0), version=1, held_by={0: 1})
    offered = averaging.offer(shared, [0, 1, 2], PART, TRAINING)
    made: list[Weights] = []

    def make(weights: Weights) -> Weights:
        made.append(weights)
        return Weights(weights.exact, weights.levels, weights.scales)

    extended = averaging.extend(offered, make)
    assert len(made) == 2
    assert extended[1] is extended[2]
    assert not extended[0].is_news


def test_a_round_of_fedavg_is_the_mean_of_what_clients_make_of_the_network() -> None:
    with closing(open_fleet(METHOD)) as fleet:
        server = METHOD.start_server(fleet.home.task, fleet)
        common = start()
        for number in (1, 2):
            fleet.begin(number)
            METHOD.run_round(server, fleet)
            common = mean([descend(common, mine) for mine in CLIENTS])
        assert server.shared.vector == pytest.approx(common, rel=1e-4)
        METHOD.deliver(server, fleet)
        before = fleet.ledger.total().sent_bytes
        METHOD.deliver(server, fleet)
        assert fleet.ledger.total().sent_bytes == before


@pytest.mark.parametrize("kept", ["fp16", "int8", "int4"])
def test_what_rounding_takes_on_the_way_down_stays_at_the_server(kept: str) -> None:
    """Clients send changes of what they got, so changes too small to be seen below still add up."""
    shared = Shared(np.array([1.0, 0.3, 0.2, 0.7, -0.4], np.float32))
    training = replace(TRAINING, down=kept)
    exact = shared.vector.astype(np.float64)
    client = averaging.start_client(SPEC, PART, training)
    for _ in range(200):
        shared.held_by.clear()
        shared.version += 1
        averaging.receive(client, averaging.offer(shared, [0], PART, training)[0], PART)
        change = np.full(5, 1e-5)
        averaging.merge(shared, {0: update(change.tolist(), 1)}, PART)
        exact += change
    assert shared.vector == pytest.approx(exact, abs=1e-5)


def test_statistics_are_averaged_or_stay_as_training_says() -> None:
    spec = Spec("tiny_networks:TinyNorm", (1,), 2)
    shared, local = (
        FedAvg(Training(model=spec.model, statistics=policy)).part(spec)  # type: ignore[arg-type]
        for policy in ("shared", "local")
    )
    assert (shared.size, local.size) == (9, 7)
    client = averaging.start_client(spec, local, TRAINING)
    assert client.personal.tolist() == [0, 1]  # mean and variance of the start
    client.personal = np.array([5, 6], np.float32)
    assert averaging.compose(client, local).vector[7:].tolist() == [5, 6]


def test_a_network_that_is_shared_as_a_whole_is_not_copied() -> None:
    client = averaging.start_client(SPEC, PART, TRAINING)
    assert averaging.compose(client, PART).vector is client.shared


@pytest.mark.parametrize("name", ["fedavg", "fedper"])  # fedbn wants a network with batch normalisations
def test_clients_may_be_tested_as_trained_which_needs_no_delivery(name: str) -> None:
    method = load_method(name)(training=TRAINING, tested="trained")
    with closing(open_fleet(method)) as fleet:
        server = method.start_server(fleet.home.task, fleet)
        method.run_round(server, fleet)
        before = fleet.ledger.total(direction="down")
        method.deliver(server, fleet)
        assert fleet.ledger.total(direction="down") == before
        for client, mine in zip(fleet.states(), CLIENTS, strict=True):
            assert client.trained.vector == pytest.approx(descend(start(), mine), rel=1e-5)
            assert np.array_equal(method.predict(client, mine.x), nn.classify(client.trained, mine.x))
    down_and_up = method.costliest_round(fleet.home.task)
    assert [type(message) for message in down_and_up] == [Weights, Update]


AVERAGING = ("fedavg", "fedper", "fedbn", "lg-fedavg", "fedrep", "fedbabu", "fedavg-ft", "ditto", "pfedme", "pfedsd")


@pytest.mark.parametrize("name", [*AVERAGING, "fedpac", "pfedfda"])
@pytest.mark.parametrize("kept", ["fp32", "int8"])
def test_no_round_costs_a_client_more_than_the_costliest(name: str, kept: str) -> None:
    model = "tiny_networks:TinyNorm" if name == "fedbn" else TRAINING.model
    method: Any = load_method(name)(training=replace(TRAINING, model=model, down=kept, up=kept))  # type: ignore[call-arg]
    with closing(open_fleet(method)) as fleet:
        server = method.start_server(fleet.home.task, fleet)
        most_bytes = bound_bytes(method.costliest_round(fleet.home.task))
        for number in (1, 2, 3):
            fleet.begin(number)
            method.run_round(server, fleet)
            method.deliver(server, fleet)
            for client in (0, 1):
                assert 0 < fleet.ledger.total(client=client).sent_bytes <= most_bytes
