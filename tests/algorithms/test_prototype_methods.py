"""FedProto and FedTGP, with what may travel sparsely, privately and in proportion."""

import json
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
import torch

from laconic import simulate, wire
from laconic.algorithm import Examples, Site, Task
from laconic.algorithms.networks.class_targets import Client, Means, Targets
from laconic.algorithms.networks.fed_proto import FedProto
from laconic.algorithms.networks.fed_tgp import FedTGP
from laconic.fleets.source import ClientData, Parts
from laconic.networks import Batch, Loss, Training
from laconic.networks.prototypes import choose_masks, read_rows, write_rows
from laconic.simulation import Federation, federate
from laconic.wire import Ledger, encode_detailed

TASK = Task((6,), 4, 3)
TRAINING = Training(model="mlp", batch=4, rate=0.05)
RNG = np.random.default_rng(0)


def method(kind: type = FedProto, **settings):
    return kind(training=TRAINING, n_features=8, **({"cps_dims": 8} | settings))


def site(labels: list[int], client: int = 0) -> Site:
    rng = np.random.default_rng(client)
    examples = Examples(rng.random((len(labels), 6), np.float32), np.array(labels))
    return Site(client, 1, examples, examples, np.random.default_rng(0))


def hold(client: Client, labels: list[int], **settings: object) -> Loss:
    return method(**settings).hold(client, site(labels))


def means(held: list[bool], rows: list[list[float]], n_examples: int | None = None) -> Means:
    return Means(np.array(held), np.array(rows, np.float32).ravel(), None, None, n_examples)


@pytest.mark.parametrize("kept", ["fp32", "fp16", "int8"])
def test_kept_dimensions_come_back_and_the_others_are_zero(kept: str) -> None:
    masks = choose_masks(4, 8, 2)
    rows = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    message = Means(np.ones(4, np.bool_), *write_rows(rows, masks, kept), n_examples=None)  # type: ignore[arg-type]
    back = read_rows(message.packed, masks)
    assert (back[~masks] == 0).all()
    tolerance = {"fp32": 0, "fp16": 2e-3, "int8": 2e-2}[kept]
    assert np.abs(back[masks] - rows[masks]).max() <= tolerance


def test_plain_mean_over_clients_that_sent_the_class() -> None:
    protos = FedProto(n_features=2, cps_dims=2)
    server = protos.start_server(Task((6,), 3, 3), None)  # type: ignore[arg-type]
    replies = {0: means([True, True, False], [[1, 1], [2, 2]]), 5: means([True, False, False], [[3, 5]])}
    merged, is_new = protos.merge(server, replies, RNG)
    assert merged.tolist() == [[2, 3], [2, 2], [0, 0]]
    assert is_new.tolist() == [True, True, False]


def test_ppa_is_the_weighted_mean_where_classes_are_balanced() -> None:
    """Two classes, 6 examples of each in all: K/n = 2/12. Client 0 has 4 and 2 of them, client 1 has 2 and 4."""
    protos = FedProto(n_features=1, cps_dims=1, ppa=True)
    server = protos.start_server(Task((6,), 2, 2), None)  # type: ignore[arg-type]
    replies = {0: means([True, True], [[4 * 1.0], [2 * 10.0]], 6), 1: means([True, True], [[2 * 4.0], [4 * 40.0]], 6)}
    merged, _ = protos.merge(server, replies, RNG)
    assert merged[:, 0].tolist() == pytest.approx([(4 * 1 + 2 * 4) / 6, (2 * 10 + 4 * 40) / 6])


def test_ppa_is_the_plain_mean_where_clients_have_as_many_examples_of_each_class() -> None:
    """Three of each class at each client: n = 12, K = 2, so K/n · 3 = 1/2."""
    protos = FedProto(n_features=1, cps_dims=1, ppa=True)
    server = protos.start_server(Task((6,), 2, 2), None)  # type: ignore[arg-type]
    replies = {0: means([True, True], [[3 * 1.0], [3 * 5.0]], 6), 1: means([True, True], [[3 * 3.0], [3 * 7.0]], 6)}
    merged, _ = protos.merge(server, replies, RNG)
    assert merged[:, 0].tolist() == pytest.approx([2, 6])


def test_fedtgp_brings_sums_to_the_size_of_means_by_the_number_of_senders() -> None:
    """K/n = 2/12; class 0 came from two clients with 3 examples each, class 1 from one with 6."""
    tgp = FedTGP(n_features=1, cps_dims=1, ppa=True)
    masks = choose_masks(2, 1, 1)
    replies = {0: means([True, False], [[3 * 2.0]], 3), 1: means([True, True], [[3 * 4.0], [6 * 5.0]], 9)}
    points, labels = tgp.weigh(masks, replies)
    assert labels.tolist() == [0, 0, 1]
    assert points[:, 0].tolist() == pytest.approx([2, 4, 5])  # 2/12 · 2 · 6, 2/12 · 2 · 12, 2/12 · 1 · 30


def test_how_fast_clients_train_is_no_matter_of_how_fedtgps_server_learns_its_targets() -> None:
    first = means([True, False, True, False], [[2] * 8, [-1] * 8])
    second = means([False, True, True, False], [[1] * 8, [0] * 8])
    learned = []
    for rate in (0.01, 0.5):
        tgp = FedTGP(training=replace(TRAINING, rate=rate), n_features=8, cps_dims=8)
        with gather(tgp, [[0, 2], [1, 2]]) as federation:
            federation.play(0, is_evaluated=False)
            server = federation.server
            targets, _ = tgp.merge(server, {0: first, 1: second}, np.random.default_rng(0))
        learned.append(targets)
    assert np.array_equal(*learned)


@pytest.mark.parametrize(("setting", "least"), [("margin", 0), ("server_epochs", 1), ("server_rate", 0)])
def test_a_setting_of_fedtgps_server_that_makes_no_sense_is_refused_by_name(setting: str, least: int) -> None:
    with pytest.raises(ValueError, match=f"method.{setting} = -1 must be at least {least}"):
        FedTGP(**{setting: -1})


def test_a_client_holds_to_targets_in_proportion_to_its_classes() -> None:
    client = method().start_client(TASK, site([0]))
    client.receive(Targets(np.array([1, 1, 0, 0], np.bool_), np.zeros(16, np.float32), None, None, None))
    labels = [0, 0, 0, 0, 1]  # shares 1 and 1/4
    batch = Batch(
        np.arange(2), torch.tensor([0, 1]), torch.full((2, 8), 2.0), torch.zeros(2, 4)
    )  # every feature is 2 away from its target
    plain = float(torch.nn.functional.cross_entropy(batch.logits, batch.labels))
    evenly = hold(client, labels, pull=0.5, cps_loss="masked", cpkd=False)
    in_proportion = hold(client, labels, pull=0.5, cps_loss="masked", cpkd=True)
    assert float(evenly(batch)) == pytest.approx(plain + 0.5 * (4 + 4) / 2)
    assert float(in_proportion(batch)) == pytest.approx(plain + 0.5 * (4 * 1 + 4 * 0.25) / 2)


def test_the_masked_loss_looks_at_kept_dimensions_alone_and_the_full_one_draws_the_rest_to_zero() -> None:
    client = method(cps_dims=2).start_client(TASK, site([0]))
    masks = choose_masks(4, 8, 2)
    client.receive(Targets(np.ones(4, np.bool_), np.full(8, 2.0, np.float32), None, None, masks))
    features = torch.full((1, 8), 2.0)  # right where it counts, 2 away elsewhere
    batch = Batch(np.arange(1), torch.tensor([0]), features, torch.zeros(1, 4))
    plain = float(torch.nn.functional.cross_entropy(batch.logits, batch.labels))
    masked, full = (hold(client, [0], cps_loss=loss) for loss in ("masked", "full"))
    assert float(masked(batch)) == pytest.approx(plain)
    assert float(full(batch)) == pytest.approx(plain + 6 * 4 / 8)


@pytest.mark.parametrize("loss", ["masked", "full"])
def test_what_is_kept_is_drawn_as_hard_as_where_nothing_is_left_out(loss: str) -> None:
    """Averaged over the kept alone, 2 of 8 dimensions would be drawn four times as hard, and FedTGP ran away."""
    slopes = []
    for kept in (2, 8):
        client = method(cps_dims=kept).start_client(TASK, site([0]))
        masks = choose_masks(4, 8, kept)
        client.receive(Targets(np.ones(4, np.bool_), np.full(4 * kept, 2.0, np.float32), None, None, masks))
        features = torch.full((1, 8), 5.0, requires_grad=True)
        batch = Batch(np.arange(1), torch.tensor([0]), features, torch.zeros(1, 4))
        hold(client, [0], cps_loss=loss)(batch).backward()
        slopes.append(features.grad[0].numpy()[masks[0]])
    assert slopes[0].tolist() == slopes[1][:2].tolist() == [2 * 3 / 8] * 2


def test_masks_travel_once_and_targets_only_to_whom_lacks_them() -> None:
    protos = method(cps_dims=2)
    server = protos.start_server(TASK, None)  # type: ignore[arg-type]
    server.version, server.held_by, server.has_target = 3, {1: 3, 2: 2}, np.ones(4, np.bool_)
    offered = protos.offer(server, [0, 1, 2], Targets(None, None, None, None, None))
    first, holder, late = (offered[client] for client in (0, 1, 2))
    assert [targets.masks is not None for targets in (first, holder, late)] == [True, False, False]
    assert [targets.exact is not None for targets in (first, holder, late)] == [True, False, True]
    whole = method()
    assert whole.offer(whole.start_exchange(TASK), [0])[0].masks is None  # all are kept: nothing to tell


def parts_of(labels: list[list[int]]) -> list[Parts]:
    return [(site(mine, client).train,) * 3 for client, mine in enumerate(labels)]


def gather(protos, labels: list[list[int]]) -> AbstractContextManager[Federation]:
    return federate(protos, Task((6,), 4, len(labels)), ClientData.of(parts_of(labels)), 0, workers=2)


@pytest.mark.parametrize("kind", [FedProto, FedTGP])
@pytest.mark.parametrize("ppa", [False, True])
def test_no_message_shows_a_class_count_and_how_many_examples_there_are_only_where_sums_travel(
    kind: type, ppa: bool
) -> None:
    for message in (Targets, Means):
        counts = [field.name for field in message.schema if field.kind in ("ints", "int")]
        assert set(counts) <= {"levels", "n_examples"}  # of rounded prototypes, and of all classes together
    protos = method(kind, ppa=ppa)
    client = protos.start_client(TASK, site([0]))
    reply = protos.train(client, protos.offer(protos.start_exchange(TASK), [0])[0], site([0, 0, 0, 1]))
    assert reply.held.tolist() == [True, True, False, False]
    assert reply.n_examples == (4 if ppa else None)


@pytest.mark.parametrize("kind", [FedProto, FedTGP])
@pytest.mark.parametrize("kept", ["fp32", "int8"])
def test_with_ppa_a_client_sends_which_classes_it_has_their_sums_and_how_many_examples_in_all(
    kind: type, kept: str
) -> None:
    protos = method(kind, ppa=True, cps_dims=2, kept=kept)
    labels = [[0, 0, 0, 1], [1, 1, 2, 2, 2], [3] * 7]
    with gather(protos, labels) as federation:
        for number in range(3):
            federation.play(number, is_evaluated=number == 2)
        rows = [json.loads(line) for line in federation.fleet.ledger.to_jsonl()]
    fields = {row["field"] for row in rows if row["direction"] == "up" and row["sent_bytes"]}
    values = {"exact"} if kept == "fp32" else {"levels", "scales"}
    assert fields == {"held", "n_examples", "(envelope)"} | values
    assert all(row["sent_bytes"] < 3 for row in rows if row["field"] == "n_examples")  # one number


@pytest.mark.parametrize("kind", [FedProto, FedTGP])
def test_fewer_bits_are_noted_with_what_they_take_of_the_targets(kind: type) -> None:
    errors, sent = {}, {}
    for kept in ("fp32", "fp16", "int8"):
        protos = kind(training=TRAINING, n_features=64, cps_dims=64, kept=kept)
        with gather(protos, [[0, 1] * 8, [1, 2] * 8]) as federation:
            for number in (0, 1):
                federation.play(number, is_evaluated=True)
            fleet = federation.fleet
            errors[kept], sent[kept] = fleet.notes["prototype_error"], fleet.ledger.total().sent_bytes
    assert errors["fp32"] == 0 < errors["fp16"] < 1e-3 < errors["int8"] < 1e-2
    assert sent["fp32"] > sent["fp16"] > sent["int8"]


def test_targets_and_means_are_coded_against_the_last_ones_though_an_empty_message_came_between() -> None:
    protos = FedProto(training=Training(model="mlp", batch=4, rate=1e-6), n_features=64, cps_dims=64)
    sent = {}
    with gather(protos, [[0, 1] * 8, [1, 2] * 8]) as federation:
        for number in range(5):
            federation.play(number, is_evaluated=number == 2)
            total, only = federation.fleet.ledger.total, {"step": "train", "field": "exact"}
            sent[number] = {way: total(**only, direction=way).sent_bytes for way in ("down", "up")}
    assert sent[3]["down"] == 0  # a delivery told them already
    assert sent[4]["down"] < sent[2]["down"] / 2
    assert max(sent[number]["up"] for number in (2, 3, 4)) < sent[1]["up"] / 2


def test_a_tenth_of_the_dimensions_counts_a_tenth_and_takes_a_tenth_but_for_what_frames_messages() -> None:
    """Table 4: d(K_i + K) numbers a client and round, s in place of d. 20 clients, 5 of 10 classes each, 30 rounds.

    The last bits of means are noise, so that no coding of a tenth of them takes less than a tenth; what is there once
    for a message, however short it is, and for a client, its masks, is what is lacking to ten.
    """
    n_classes, n_rounds, rng = 10, 30, np.random.default_rng(0)
    rows = rng.gamma(2, 0.3, (n_classes, 500)).astype(np.float32)  # means of what went through a ReLU
    sent = {}
    for kept in (500, 50):
        masks, ledger = choose_masks(n_classes, 500, kept), Ledger()
        down = [
            Targets(np.ones(n_classes, np.bool_), *write_rows(rows, masks, "fp32"), masks=first)
            for first in (None if kept == 500 else masks, None)
        ]
        for client in range(20):
            held = np.isin(np.arange(n_classes), rng.permutation(n_classes)[:5])
            up = Means(held, *write_rows(rows[held], masks[held], "fp32"), n_examples=None)
            codes = [encode_detailed(message) for message in (up, *down)]
            for number in range(n_rounds):
                for way, which in (("up", 0), ("down", 1 if number == 0 else 2)):
                    ledger.record(wire.Hop(number, "train", way, client), (up, *down)[which], codes[which])
        total = ledger.total()
        assert total.paper_bits == 20 * n_rounds * 32 * kept * (5 + n_classes)
        sent[kept] = total.sent_bytes
    assert 9.7 < sent[500] / sent[50] < 10
    assert 20 * n_rounds * 4 * 500 * (5 + n_classes) / sent[50] > 12  # against the 32 bits that the paper counts


@pytest.mark.parametrize("kind", [FedProto, FedTGP])
def test_a_prediction_is_recorded_by_target_by_kept_dimensions_and_by_head_and_made_by_what_is_asked_for(
    kind: type,
) -> None:
    x = site([0] * 30).train.x
    client = method(kind, cps_dims=2).start_client(TASK, site([0]))
    assert list(method(kind).predict_also(client, x)) == ["head"]  # no targets yet
    masks, rng = choose_masks(4, 8, 2), np.random.default_rng(0)
    client.receive(Targets(np.ones(4, np.bool_), rng.random(8).astype(np.float32), None, None, masks))
    found = method(kind).predict_also(client, x)
    assert list(found) == ["head", "prototype", "kept_dims"]
    for tested in ("head", "prototype"):
        assert np.array_equal(method(kind, tested=tested).predict(client, x), found[tested])


def test_clients_with_different_networks_share_targets() -> None:
    protos = FedProto(
        training=Training(batch=8, rate=0.05),
        models=("mlp", "test_prototype_methods:Wide"),
        n_features=8,
        cps_dims=4,
        ppa=True,
    )
    clients = parts_of([[0, 1] * 8, [0, 1] * 8, [1, 2] * 8])
    states = simulate(protos, clients, rounds=2, task=TASK, evaluate_every=2).states
    assert len({state.network.spec.model for state in states}) == 2
    assert states[0].network.vector.size != states[1].network.vector.size
    assert np.array_equal(states[0].targets, states[1].targets)
    assert states[0].has_target.tolist() == [True, True, True, False]


@pytest.mark.parametrize("averaging", ["clipped", "trimmed", "median"])
def test_sums_have_no_median_which_shows_before_anything_is_trained(averaging: Literal["clipped"]) -> None:
    FedProto().check_averaging(averaging)
    with pytest.raises(ValueError, match=rf'"{averaging}" needs means to compare.*say method.ppa = false'):
        FedProto(ppa=True).check_averaging(averaging)
    with pytest.raises(ValueError, match=rf'fleet.averaging = "{averaging}" is not for fedtgp: it does not heed it'):
        FedTGP().check_averaging(averaging)
    FedProto(ppa=True).check_averaging("mean")


class Wide(torch.nn.Module):
    """A network of one's own whose head gets 8 features."""

    def __init__(self, input_shape: tuple[int, ...], n_classes: int) -> None:
        super().__init__()
        self.body = torch.nn.Linear(*input_shape, 8)
        self.head = torch.nn.Linear(8, n_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.body(x)))
