"""What methods that share a vector have in common (algorithms/networks/shared_vector.py, algorithms/broadcast.py)."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

import numpy as np
import pytest
from tiny_networks import CLIENTS, SPEC, TRAINING, descend, mean, open_fleet, start

from laconic import networks as nn
from laconic.aggregate import EVERY_AVERAGING
from laconic.algorithm import Algorithm, Coded, bound_bytes
from laconic.algorithms import METHODS, load_method
from laconic.algorithms.broadcast import Broadcast
from laconic.algorithms.networks.fed_avg import FedAvg
from laconic.algorithms.networks.weights import NO_NEWS, Client, Server, Shared, Update, Weights
from laconic.networks import Spec, Training, find_part, start_vector
from laconic.wire import Message, Sparse

PART = find_part(SPEC)
METHOD = FedAvg(TRAINING)


def update(change: list[float], n_examples: int) -> Update:
    return Update(np.array(change, np.float32), None, None, n_examples)


def start_client(spec: Spec, method: FedAvg) -> Client:
    vector, mask = start_vector(spec, 0), method.part(spec).mask
    return Client(spec, vector[mask], vector[~mask])


def test_the_mean_change_is_by_examples() -> None:
    server = Server(SPEC, Shared(np.array([1, 2], np.float32)))
    METHOD.merge(server, {4: update([1, 0], 3), 7: update([5, 4], 1)}, 1)
    assert server.shared.vector.tolist() == [3, 3]
    assert (server.shared.version, server.shared.held_by) == (1, {4: 0, 7: 0})  # they have what was before


def test_clients_without_examples_change_nothing() -> None:
    server = Server(SPEC, Shared(np.array([1, 2], np.float32)))
    METHOD.merge(server, {4: update([1, 1], 0)}, 1)
    assert server.shared.vector.tolist() == [1, 2]


def test_nothing_is_sent_to_those_who_hold_the_latest() -> None:
    broadcast, latest = Broadcast(version=2, held_by={0: 2, 1: 1}), Weights(start_vector(SPEC, 0), None, None)
    offered = broadcast.offer([0, 1, 2], latest, NO_NEWS)
    assert {client: weights.is_news for client, weights in offered.items()} == {0: False, 1: True, 2: True}
    assert offered[1] is offered[2]  # encoded once
    assert [*broadcast.offer([0, 1, 2], latest)] == [1, 2]
    assert [broadcast.count_missed(client) for client in (0, 1, 2)] == [0, 1, 2]
    broadcast.acknowledge([1, 2])
    assert broadcast.offer([0, 1, 2], latest) == {}


def test_first_weights_cost_nothing_for_they_follow_from_a_seed() -> None:
    with open_fleet(METHOD) as fleet:
        server = METHOD.start_server(fleet.home.task, fleet)
    assert server.shared.offer([0], METHOD.largest_down(SPEC), NO_NEWS) == {0: NO_NEWS}
    assert np.array_equal(fleet.states()[0].shared, server.shared.vector)


def test_a_round_of_fedavg_is_the_mean_of_what_clients_make_of_the_network() -> None:
    with open_fleet(METHOD) as fleet:
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
    server = Server(SPEC, Shared(np.array([1.0, 0.3, 0.2, 0.7, -0.4], np.float32)))
    method = FedAvg(replace(TRAINING, down=kept))
    exact = server.shared.vector.astype(np.float64)
    client = start_client(SPEC, method)
    for _ in range(200):
        client.receive(Weights(*method.pack_latest(server)), PART)
        assert client.shared == pytest.approx(server.shared.vector, abs=0.2)
        change = np.full(5, 1e-5)
        method.merge(server, {0: update(change.tolist(), 1)}, 1)
        exact += change
    assert server.shared.vector == pytest.approx(exact, abs=1e-5)


def test_statistics_are_averaged_or_stay_as_training_says() -> None:
    spec = Spec("tiny_networks:TinyNorm", (1,), 2)
    methods = [FedAvg(Training(model=spec.model, statistics=policy)) for policy in ("shared", "local")]  # type: ignore[arg-type]
    shared, local = (method.part(spec) for method in methods)
    assert (shared.size, local.size) == (9, 7)
    client = start_client(spec, methods[1])
    assert client.personal.tolist() == [0, 1]  # mean and variance of the start
    client.personal = np.array([5, 6], np.float32)
    assert client.compose(local).vector[7:].tolist() == [5, 6]


def test_a_network_that_is_shared_as_a_whole_is_not_copied() -> None:
    client = start_client(SPEC, METHOD)
    assert client.compose(PART).vector is client.shared


@pytest.mark.parametrize("name", ["fedavg", "fedper"])  # fedbn wants a network with batch normalisations
def test_clients_may_be_tested_as_trained_which_needs_no_delivery(name: str) -> None:
    method = load_method(name)(training=TRAINING, tested="trained")
    with open_fleet(method) as fleet:
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


@pytest.mark.parametrize("name", ["eden", "fedbat", "obcsaa", "zsignfed"])
def test_clients_whose_changes_are_coded_may_be_tested_as_trained_too(name: str) -> None:
    training = replace(TRAINING, statistics="local")
    as_averaged, as_trained = (load_method(name)(training=training, tested=each) for each in ("averaged", "trained"))
    with open_fleet(as_averaged) as known, open_fleet(as_trained) as fleet:
        for method, some in ((as_averaged, known), (as_trained, fleet)):
            server = method.start_server(some.home.task, some)
            method.run_round(server, some)
            before = some.ledger.total(direction="down")
            method.deliver(server, some)
            assert (some.ledger.total(direction="down") == before) == (method is as_trained)
        for client, other, mine in zip(fleet.states(), known.states(), CLIENTS, strict=True):
            assert np.array_equal(as_trained.predict(client, mine.x), nn.classify(client.trained, mine.x))
            assert not np.array_equal(client.trained.vector, client.shared)  # what it made of it, not what came
            assert other.trained is None


AVERAGING = ("fedavg", "fedper", "fedbn", "lg-fedavg", "fedrep", "fedbabu", "fedavg-ft", "ditto", "pfedme", "pfedsd")


@pytest.mark.parametrize("name", [*AVERAGING, "fedpac", "pfedfda"])
@pytest.mark.parametrize("kept", ["fp32", "int8"])
def test_no_round_costs_a_client_more_than_the_costliest(name: str, kept: str) -> None:
    model = "tiny_networks:TinyNorm" if name == "fedbn" else TRAINING.model
    method: Any = load_method(name)(training=replace(TRAINING, model=model, down=kept, up=kept))  # type: ignore[call-arg]
    with open_fleet(method) as fleet:
        server = method.start_server(fleet.home.task, fleet)
        most_bytes = bound_bytes(method.costliest_round(fleet.home.task))
        for number in (1, 2, 3):
            fleet.begin(number)
            method.run_round(server, fleet)
            method.deliver(server, fleet)
            for client in (0, 1):
                assert 0 < fleet.ledger.total(client=client).sent_bytes <= most_bytes


# ---------------------------------------------------------------- what no honest client sends
EXACT, LEVELS, SCALES = np.ones(5, np.float32), np.ones(5, np.int8), np.ones(4, np.float32)
LIES: dict[str, tuple[Callable[[Update], Update], str]] = {
    "one entry short": (lambda u: replace(u, exact=EXACT[:4]), r"exact has shape \(4,\), \(5,\) was expected"),
    "nothing in it": (lambda u: replace(u, exact=EXACT[:0]), r"exact has shape \(0,\)"),
    "a table": (lambda u: replace(u, exact=EXACT[None]), "exact has shape"),
    "both forms": (lambda u: Update(EXACT, LEVELS, SCALES, 1), "levels came, but was not expected"),
    "neither form": (lambda u: Update(None, None, None, 1), "exact is missing"),
    "levels without scales": (lambda u: Update(None, LEVELS, None, 1), "exact is missing"),
    "scales alone": (lambda u: Update(None, None, SCALES, 1), "exact is missing"),
    "a number too wide": (lambda u: replace(u, exact=EXACT.astype(np.float64)), "exact takes 8 bytes a number"),
    "beyond belief": (lambda u: replace(u, exact=1e7 * EXACT), "exact reaches"),
}


def lie(method: type[FedAvg], change: Callable[[Update], Update], monkeypatch: pytest.MonkeyPatch) -> None:
    """Client 1 sends something else in place of what it made."""
    honest = method.tell_change

    def tell_change(self: FedAvg, client: Any, weights: Weights, site: Any) -> Update:
        reply = honest(self, client, weights, site)
        return change(reply) if site.id == 1 else reply

    monkeypatch.setattr(method, "tell_change", tell_change)


@pytest.mark.parametrize("what", LIES)
def test_a_reply_that_no_training_makes_is_refused_by_name_and_the_round_goes_on(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, words = LIES[what]
    lie(FedAvg, change, monkeypatch)
    with open_fleet(METHOD) as fleet:
        server = METHOD.start_server(fleet.home.task, fleet)
        METHOD.run_round(server, fleet)
        (refused,) = fleet.refused
        assert pytest.approx(descend(start(), CLIENTS[0]), rel=1e-5) == server.shared.vector  # the other's alone
        assert server.shared.held_by == {0: 0}
    assert refused.startswith("round 1, client 1: reply to train refused")
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(refused)


NETWORKS = [name for name, method in METHODS.items() if ".networks." in method.where]
SHARING = {"fedavg", "fedper", "lg-fedavg", "fedrep", "fedpac"}
SILENT = {"separate", "dispfl"}  # nothing goes up: clients send nothing, or only to each other


def shorten(reply: Message, field: str) -> Message:
    value = getattr(reply, field)
    if isinstance(value, Sparse):
        return replace(reply, **{field: Sparse(value.mask[:-1], value.values[: np.count_nonzero(value.mask[:-1])])})
    return replace(reply, **{field: value[..., :-1]})


@pytest.mark.parametrize("name", [name for name in NETWORKS if name not in SILENT])
def test_an_array_one_entry_short_is_refused_whatever_the_method(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind: Any = load_method(name)
    model = "tiny_networks:TinyNorm" if name == "fedbn" else TRAINING.model
    settings = {"n_features": 1, "cps_dims": 1} if name in ("fedproto", "fedtgp") else {}
    statistics: Any = "shared" if name in SHARING else "local"
    training = replace(TRAINING, model=model, steps=1, statistics=statistics)
    if name == "fedselect":
        training = replace(training, steps=0)
    method = kind(training=training, **settings)
    honest, fields = kind.train, set[str]()

    def tell(field: str) -> Any:
        @wraps(honest)
        def train(self: Any, client: Any, message: Any, site: Any) -> Any:
            told = honest(self, client, message, site)
            reply = told.reply if isinstance(told, Coded) else told
            arrays = {f.name for f in reply.schema if isinstance(getattr(reply, f.name), np.ndarray | Sparse)}
            fields.update(arrays)
            return shorten(reply, field) if site.id == 1 and field in arrays else reply

        return train

    def count_refused(field: str) -> int:
        monkeypatch.setattr(kind, "train", tell(field))
        with open_fleet(method) as fleet:
            method.run_round(method.start_server(fleet.home.task, fleet), fleet)
            assert all(f"client 1: reply to train refused ({field}" in words for words in fleet.refused) or field == ""
            return len(fleet.refused)

    assert count_refused("") == 0
    assert {field: count_refused(field) for field in fields} == dict.fromkeys(fields, 1)


@pytest.mark.parametrize("name", METHODS)
def test_no_method_is_a_subclass_of_a_method(name: str) -> None:
    methods = {load_method(other) for other in METHODS}
    parents = [parent for parent in load_method(name).__mro__[1:] if issubclass(parent, Algorithm)]
    assert [parent.__name__ for parent in parents if parent in methods or parent.name] == []  # a shape has no name


MEANS_ALONE = {"separate", "fedselect", "dispfl", "fedtgp", "fedpac", "pfedfda", "pfed1bs", "obda", "obcsaa"}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_method_says_in_its_own_class_what_it_is_called_and_which_means_it_heeds(name: str) -> None:
    method = load_method(name)
    assert vars(method)["name"] == name
    is_alone = name in MEANS_ALONE | {"bifl-updown", "bifl-ml"}
    assert method.averagings == (("mean",) if is_alone else EVERY_AVERAGING)
