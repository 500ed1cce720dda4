import csv
import json
from collections import Counter, defaultdict
from contextlib import AbstractContextManager
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laconic import tsetlin as tm
from laconic.algorithm import Examples, Site, Task
from laconic.algorithms.tsetlin.cs_pfedtm import CSpFedTM, Order, Server, States, Update, Wanted
from laconic.algorithms.tsetlin.machines import Merged, choose_shape, paper_clause_bytes, resize
from laconic.algorithms.tsetlin.two_machines import TwoMachines
from laconic.fleets.base import Conditions, OverBudget
from laconic.fleets.source import ClientData
from laconic.runs.config import read_config
from laconic.runs.run import run
from laconic.simulation import Federation, federate
from laconic.wire import EMPTY

TASK = Task((4, 4), 3, 4)
SMALL: dict[str, Any] = {"n_clauses": 8, "n_shared": 2, "threshold": 10, "patch": 0}
METHOD = CSpFedTM(**SMALL)


def site(train: list[int], val: list[int] | None = None) -> Site:
    parts = [Examples(np.eye(16, dtype=np.uint8)[y].reshape(-1, 4, 4), np.array(y)) for y in (train, val or [])]
    return Site(0, 1, *parts, np.random.default_rng(0))


def update(weight: int, accuracy: float = 0.5, n_examples: int = 10, per_class: list[int] | None = None) -> Update:
    counts = None if per_class is None else np.array(per_class)
    return Update(np.full((3, 2), weight, np.int32), n_examples, accuracy, counts)


def server(**accuracy: float) -> Server:
    known = {int(client.removeprefix("c")): score for client, score in accuracy.items()}
    return Server(TASK, METHOD.build(TASK, 2), np.zeros(3, np.bool_), accuracy=known)


# ---------------------------------------------------------------- how much is shared
@pytest.mark.parametrize(
    ("n_affordable", "similarity", "n_shared"),
    [
        (13, 1.0, 13),  # all that is affordable: 200 * (187/200)^1 = 187 private, and no rounding makes it 186
        (13, 0.0, 0),
        (0, 1.0, 0),  # tau below one clause
        (13, 0.95, 13),  # 187.63 -> 187: CIFAR-10 at alpha 0.1
        (13, 0.7, 10),  # 190.81 -> 190: CIFAR-10 at alpha 0.05
        (100, 0.5, 59),  # 200 * sqrt(1/2) = 141.42 -> 141
    ],
)
def test_the_split_follows_from_similarity_and_what_is_affordable(
    n_affordable: int, similarity: float, n_shared: int
) -> None:
    assert CSpFedTM(n_clauses=200).count_shared(n_affordable, similarity) == n_shared


def test_full_similarity_never_shares_more_than_is_affordable() -> None:
    for n_clauses in (1, 2, 3, 7, 105, 195, 300, 800):
        method = CSpFedTM(n_clauses=n_clauses)
        for n_affordable in range(n_clauses // 2 + 1):
            assert method.count_shared(n_affordable, 1.0) == n_affordable


@pytest.mark.parametrize(
    ("download_bytes", "n_affordable"),
    [(10_000, 13), (759, 0), (760, 1), (150_000, 100)],  # 760 bytes a clause; never more than half of 200
)
def test_tau_affords_whole_clauses_by_the_papers_count(download_bytes: int, n_affordable: int) -> None:
    cifar10 = Task((32, 32, 24), 10, 100, levels=8)
    assert paper_clause_bytes(cifar10, 3) == 760
    assert CSpFedTM(n_clauses=200, patch=3, download_bytes=download_bytes).afford(cifar10) == n_affordable


def test_a_budget_affords_what_its_worst_round_takes_and_not_a_clause_more() -> None:
    from laconic.algorithm import bound_bytes

    task = Task((28, 28), 10, 100)
    for budget in (300, 1_000, 5_000, 20_000):
        method = CSpFedTM(patch=10, budget_bytes=budget)
        n = method.afford(task)
        assert bound_bytes(method.list_messages(task, n)) <= budget < bound_bytes(method.list_messages(task, n + 1))
        assert n < method.n_clauses // 2


@pytest.mark.parametrize(
    ("similarity", "shape"), [("clause", (3, 10)), ("clause-unmasked", (3, 10)), ("bit", (3, 10, 32))]
)
def test_a_reference_says_which_clauses_are_used_and_masks_classes_the_client_lacks(
    similarity: Any, shape: tuple[int, ...]
) -> None:
    method = CSpFedTM(similarity=similarity, patch=0, epochs=20)
    here = site([0, 1] * 20)
    used = method.train_reference(method.start_client(TASK, here), EMPTY, here).used
    assert used.shape == shape
    assert used[:2].any()
    assert used[2].any() == (similarity != "clause")  # class 2 is trained too, as the other class of each example


def gather(method: CSpFedTM, labels: list[list[int]], lost_replies: float = 0.0) -> AbstractContextManager[Federation]:
    """A client for each list of labels, thirty examples of each."""
    task, source = Task((4, 4), 3, len(labels)), ClientData.of([(site(mine * 30).train,) * 3 for mine in labels])
    return federate(method, task, source, seed=0, workers=1, conditions=Conditions(lost_replies=lost_replies))


def test_the_server_splits_by_the_mean_similarity_of_pairs_and_notes_what_is_affordable() -> None:
    """Hardly a clause of a held class is unused, so that clauses are about as similar as the label sets."""
    method = CSpFedTM(n_clauses=20, patch=0, epochs=30, download_bytes=240)  # 3 classes * 2 words * 4 bytes a clause
    with gather(method, [[0, 1], [0, 2], [0, 1]]) as federation:
        federation.play(0, is_evaluated=False)
    made, fleet = federation.server, federation.fleet
    assert made.similarity == pytest.approx((1 / 3 + 1 + 1 / 3) / 3, abs=0.05)
    clients, alike = fleet.pair_notes["similarity"]
    assert clients == [0, 1, 2]
    assert made.similarity == pytest.approx((alike[0, 1] + alike[0, 2] + alike[1, 2]) / 3)
    assert made.shared is not None
    assert made.shared.n_clauses == 7  # 20 * 0.5^0.55 = 13.7 -> 13 private
    assert (fleet.notes["n_affordable"], fleet.notes["n_affordable_by_paper"]) == (10, 10)
    assert fleet.notes["paper_reference_bytes"] == 3 * 10 * 24


@pytest.mark.parametrize(("labels", "lost_replies"), [([[0, 1, 2]], 0.0), ([[0, 1], [0, 1]], 0.999999)])
def test_without_two_clients_to_compare_nothing_is_shared(labels: list[list[int]], lost_replies: float) -> None:
    with gather(CSpFedTM(patch=0), labels, lost_replies) as federation:
        federation.play(0, is_evaluated=False)
    assert federation.server.shared is None


# ---------------------------------------------------------------- merging
def test_the_two_best_of_last_time_are_donors_and_ties_go_to_the_lower_id() -> None:
    updates = {client: update(1, accuracy=0.1) for client in (5, 2, 7, 3)}
    wanted = METHOD.choose_donors(server(c2=0.8, c3=0.9, c5=0.8, c7=0.2), updates)
    assert list(wanted) == [3, 2]
    assert all(classes.all() for classes in wanted.values())


def test_a_client_never_ranked_counts_by_how_it_does_now_and_one_alone_is_the_only_donor() -> None:
    assert list(METHOD.choose_donors(server(c1=0.5), {1: update(1, 0.99), 2: update(1, 0.7)})) == [2, 1]
    assert list(METHOD.choose_donors(server(), {4: update(1, 0.0)})) == [4]


def test_include_bits_of_a_class_that_nobody_holds_are_not_asked_for() -> None:
    masked = update(1)
    masked.weights[1] = 0
    assert METHOD.choose_donors(server(), {1: masked})[1].tolist() == [True, False, True]


def test_by_samples_each_class_has_the_richest_as_donors() -> None:
    method = CSpFedTM(**SMALL, donors="samples")
    counts = {0: [5, 0, 0], 1: [5, 1, 0], 2: [9, 2, 0], 3: [4, 0, 0]}
    wanted = method.choose_donors(server(c3=1.0), {k: update(1, per_class=mine) for k, mine in counts.items()})
    assert {client: classes.tolist() for client, classes in wanted.items()} == {
        0: [True, False, False],
        1: [False, True, False],
        2: [True, True, False],
    }


def test_masked_zeros_shrink_the_mean_weights_unless_only_holders_count() -> None:
    a, b = update(20, n_examples=10), update(8, n_examples=30)
    b.weights[1:], a.weights[2] = 0, 0  # b holds class 0, a classes 0 and 1, nobody class 2
    for holders_only, first, second in ((False, [11, 5, 1], [11, 5, 1]), (True, [11, 20, 1], [11, 20, 1])):
        method, made = CSpFedTM(**SMALL, holders_only=holders_only), server()
        assert made.shared is not None
        method.merge_weights(made, made.shared, [a, b])
        assert made.shared.weights[:, 0].tolist() == first  # (200 + 240) / 40; 200 / 40 or 200 / 10; as it was
        assert made.is_merged.tolist() == [True, True, False]
        method.merge_weights(made, made.shared, [a, b])
        assert made.shared.weights[:, 0].tolist() == second  # half of each, alike


def test_a_class_seen_late_takes_the_mean_and_is_blended_by_half_from_then_on() -> None:
    made = server()
    assert made.shared is not None
    early = update(10)
    early.weights[2] = 0
    METHOD.merge_weights(made, made.shared, [early])
    METHOD.merge_weights(made, made.shared, [update(21)])
    assert made.shared.weights[:, 0].tolist() == [15, 15, 21]  # (10 + 21) / 2 = 15.5


def test_classes_held_show_in_masked_weights_or_are_told() -> None:
    masked = update(3)
    masked.weights[0] = 0
    assert masked.find_held().tolist() == [False, True, True]
    assert update(3, per_class=[0, 4, 0]).find_held().tolist() == [False, True, False]


# ---------------------------------------------------------------- the client's two machines
@pytest.mark.parametrize("mask", [True, False])
def test_both_machines_are_masked_before_sending_and_after_receiving(mask: bool) -> None:
    method, here = CSpFedTM(**SMALL, mask=mask), site([0, 1] * 5)
    client = method.start_client(TASK, here)
    sent = method.train(client, Order(2), here)
    assert sent is not None
    assert (sent.per_class is None) == mask  # without zeros to tell them, counts travel
    for machine in client.machines.values():
        assert machine.weights[:2].all()
        assert machine.weights[2].any() != mask
    method.install(client, Merged(np.full((3, 2), 7, np.int32), np.zeros((3, 2, 32), np.bool_)), here)
    assert client.machines["shared"].weights[:, 0].tolist() == [7, 7, 0 if mask else 7]


def test_received_include_bits_become_weak_includes_and_excludes_below_the_boundary() -> None:
    here = site([0, 1, 2])
    client = METHOD.start_client(TASK, here)
    states = np.zeros((3, 2, 32), np.bool_)
    states[1, 0, :5] = True
    METHOD.install(client, Merged(np.ones((3, 2), np.int32), states), here)
    assert np.unique(tm.literal_states(client.machines["shared"])).tolist() == [95, 128]
    assert np.array_equal(tm.include_bits(client.machines["shared"]), states)
    got = METHOD.give_states(client, Wanted(np.array([False, True, False])), here)
    assert np.array_equal(got.states, states[1:2])


def test_the_private_machine_never_leaves_and_is_left_alone_by_install() -> None:
    here = site([0, 1, 2] * 4)
    client = METHOD.start_client(TASK, here)
    METHOD.train(client, Order(2), here)
    before = client.machines["private"].states.copy(), client.machines["private"].weights.copy()
    METHOD.install(client, Merged(np.ones((3, 2), np.int32), np.ones((3, 2, 32), np.bool_)), here)
    assert np.array_equal(client.machines["private"].states, before[0])
    assert np.array_equal(client.machines["private"].weights, before[1])


def test_a_new_split_keeps_the_first_clauses_and_adds_fresh_ones() -> None:
    machine = tm.build(choose_shape(TASK, 0), 3, 4)
    machine.weights[...] = [[5, 6, 7, 8]] * 3
    machine.states[:, :, machine.shape.literal_slots] = 200
    fewer, more = resize(machine, 2), resize(machine, 6)
    assert fewer.weights[0].tolist() == [5, 6]
    assert more.weights[0].tolist() == [5, 6, 7, 8, 1, 1]
    assert tm.literal_states(more)[0, :, 0].tolist() == [200] * 4 + [127] * 2
    assert resize(machine, 4) is machine


@pytest.mark.parametrize(("n_shared", "sizes"), [(0, [8]), (3, [5, 3]), (8, [8])])
def test_an_order_sets_the_split_and_nothing_shared_sends_nothing(n_shared: int, sizes: list[int]) -> None:
    here = site([0, 1, 2])
    client = METHOD.start_client(TASK, here)
    sent = METHOD.train(client, Order(n_shared), here)
    assert [machine.n_clauses for machine in client.machines.values()] == sizes
    assert (sent is None) == (n_shared == 0)
    assert METHOD.predict(client, here.train.x).shape == (3,)


def make_client(holds: list[bool], spans: dict[str, float]) -> TwoMachines:
    return TwoMachines(TASK, {}, np.array(holds), spans)


SUMS = {"private": np.array([[4, 2, -6], [1, 0, 0]]), "shared": np.array([[-50, 40, 0], [0, 30, 0]])}


def test_composite_divides_by_the_span_over_all_examples_or_by_each_ones_own() -> None:
    spans = {name: tm.measure_span(sums) for name, sums in SUMS.items()}
    assert spans == {"private": 10.0, "shared": 90.0}
    by_set = tm.combine(list(SUMS.values()), list(spans.values()))
    assert by_set[0] == pytest.approx([0.4 - 5 / 9, 0.2 + 4 / 9, -0.6])
    assert by_set[1] == pytest.approx([0.1, 1 / 3, 0])
    by_sample = tm.combine(list(SUMS.values()), None)
    assert by_sample[0] == pytest.approx(by_set[0])
    assert by_sample[1] == pytest.approx([1, 1, 0])
    client = make_client([True] * 3, spans)
    assert CSpFedTM(normaliser="dataset").choose(client, SUMS).tolist() == [1, 1]
    assert CSpFedTM(normaliser="sample").choose(client, SUMS).tolist() == [1, 0]


def test_sums_that_are_all_equal_have_span_1() -> None:
    assert tm.measure_span(np.zeros((4, 3), np.int32)) == tm.measure_span(np.zeros((0, 3), np.int32)) == 1.0
    assert tm.combine([np.full((2, 3), 7)], None).tolist() == [[7.0] * 3] * 2


def test_sums_are_clamped_to_the_threshold() -> None:
    machine = tm.build(choose_shape(TASK, 0), 3, 1, threshold=5)
    machine.weights[...] = 100
    machine.states[0, 0, machine.shape.literal_slots[0]] = 200  # class 0 fires on the first pixel
    assert tm.clamped_sums(machine, np.eye(16, dtype=np.uint8)[:1].reshape(1, 4, 4)).tolist() == [[5, 0, 0]]


def test_a_masked_class_wins_over_negative_sums_unless_only_present_classes_are_chosen() -> None:
    client = make_client([True, True, False], {"private": 10.0})
    sums = {"private": np.array([[-3, -1, 0]])}
    assert CSpFedTM(present_only=False).choose(client, sums).tolist() == [2]
    assert CSpFedTM(present_only=True).choose(client, sums).tolist() == [1]


@pytest.mark.parametrize("gate", [True, False])
def test_the_gate_leaves_out_a_shared_machine_that_does_not_help(gate: bool) -> None:
    method, here = CSpFedTM(**SMALL | {"epochs": 30}, gate=gate), site([0, 1, 2] * 10, [0, 1, 2] * 3)
    client = method.start_client(TASK, here)
    method.train(client, Order(2), here)
    states = np.zeros((3, 2, 32), np.bool_)
    states[2, 0, 16 + 15] = True  # "not the last pixel" speaks for class 2, always
    method.install(client, Merged(np.full((3, 2), 90, np.int32), states), here)
    assert here.notes["private_accuracy"] == 1.0
    assert here.notes["both_accuracy"] < 1.0
    assert client.is_gated == gate == ("is_gated" in here.notes)
    right = np.mean(method.predict(client, here.val.x) == here.val.y)
    assert right == here.notes["private_accuracy" if gate else "both_accuracy"]


def test_a_prediction_does_not_depend_on_other_examples() -> None:
    here = site([0, 1, 2] * 5, [0, 1, 2])
    client = METHOD.start_client(TASK, here)
    METHOD.train(client, Order(2), here)
    together = METHOD.predict(client, here.train.x)
    assert together.tolist() == [METHOD.predict(client, x[None])[0] for x in here.train.x]


# ---------------------------------------------------------------- bytes, by the paper's count
# Table 3: classes, input, patch, clauses, words; shared clauses at either alpha. Table 2: MB of a machine. Tables 4, 5:
# MB sent up in a round of 30 of 100 clients, some rounded and some cut off; CIFAR-10's second is printed as 0.3.
TABLES = """data,classes,shape,levels,patch,n_clauses,words,storage,alpha,n_shared,upload_bytes,printed
SVHN,10,32 32 3,1,5,300,9,0.12,0.05,7,13440,0.01
SVHN,10,32 32 3,1,5,300,9,0.12,0.1,24,46080,0.05
EMNIST,62,28 28 1,1,10,195,9,0.48,0.05,2,23808,0.02
EMNIST,62,28 28 1,1,10,195,9,0.48,0.1,9,107136,0.11
CIFAR-10,10,32 32 24,8,3,200,18,0.15,0.05,10,26400,0.03
CIFAR-10,10,32 32 24,8,3,200,18,0.15,0.1,13,34320,0.03
CIFAR-100,100,32 32 24,8,2,105,10,0.46,0.05,2,40000,0.04
CIFAR-100,100,32 32 24,8,2,105,10,0.46,0.1,2,40000,0.04
SC-12,12,13 29 1,1,10,800,8,0.35,0.05,8,17664,0.01
SC-12,12,13 29 1,1,10,800,8,0.35,0.1,13,28704,0.02
Tiny-ImageNet,200,32 32 24,8,2,60,10,0.53,0.05,3,120000,0.1
Tiny-ImageNet,200,32 32 24,8,2,60,10,0.53,0.1,3,120000,0.1
"""


@pytest.mark.parametrize("row", list(csv.DictReader(StringIO(TABLES))), ids=lambda row: f"{row['data']}-{row['alpha']}")
def test_papers_count_gives_the_storage_of_table_2_and_the_uploads_of_tables_4_and_5(row: dict[str, str]) -> None:
    task = Task(tuple(map(int, row["shape"].split())), int(row["classes"]), 100, levels=int(row["levels"]))
    patch, n_shared = int(row["patch"]), int(row["n_shared"])
    clause_bytes = paper_clause_bytes(task, patch)
    assert clause_bytes == task.n_classes * (int(row["words"]) + 1) * 4
    assert f"{clause_bytes * int(row['n_clauses']) / 1e6:.2f}" == row["storage"]
    weights, states = (count_paper_bytes(task, patch, n_shared, place) for place in (0, 1))
    assert 30 * weights + 2 * states == int(row["upload_bytes"])
    scale = 10 ** len(row["printed"].partition(".")[2])
    as_printed = 30 * weights + 2 * states
    assert float(row["printed"]) in {
        np.floor(as_printed / 1e6 * scale) / scale,
        round(as_printed / 1e6 * scale) / scale,
    }


def count_paper_bytes(task: Task, patch: int, n_shared: int, place: int) -> float:
    """Of the weights (place 0) or include bits (1) that a client sends, out of the messages themselves."""
    from laconic.wire.ledger import count_field

    machine = CSpFedTM(patch=patch).build(task, n_shared)
    messages = Update(machine.weights, 1, 0.5, None), States(tm.include_bits(machine))
    return count_field(messages[place], ("weights", "states")[place], 0).paper_bits / 8


def test_a_real_round_of_100_clients_costs_what_the_paper_counts_for_svhn() -> None:
    """Bits of SVHN's shape; up: 30 clients' weights and 2 clients' include bits; down: all 100 get the machine."""
    rng, parts = np.random.default_rng(0), []
    for client in range(100):
        y = np.arange(client, client + 10) % 10
        examples = Examples((rng.random((10, 32, 32, 3)) < 0.2).astype(np.uint8), y)
        parts.append((examples, examples, examples))
    method, task = CSpFedTM(n_clauses=30, n_shared=24, patch=5), Task((32, 32, 3), 10, 100)
    some = Conditions(participation=0.3)
    with federate(method, task, ClientData.of(parts), seed=0, workers=2, conditions=some) as federation:
        federation.play(0, is_evaluated=False)
        assert federation.fleet.ledger.total().sent_bytes == 0  # the split is given: no reference round
        federation.play(1, is_evaluated=False)
    up, down = (federation.fleet.ledger.total(direction=way).paper_bits / 8 for way in ("up", "down"))
    assert (up, down) == (30 * 24 * 10 * 4 + 2 * 24 * 10 * 9 * 4, 100 * 24 * 10 * 10 * 4)


# ---------------------------------------------------------------- whole runs
DIGITS = ["method.name=cs-pfedtm", "data.clients=4", "data.alpha=0.5", "rounds=4", "method.n_clauses=40"]


def read_rows(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("budget", [300, 3_000, 9_000])
def test_no_client_exceeds_the_budget_in_any_round_and_what_it_allows_is_shared(budget: int, tmp_path: Path) -> None:
    settings = [f"budget={budget}B", "method.reestimate_every=2"]
    run(read_config(None, [*DIGITS, *settings]), tmp_path / "run")
    spent: dict[int, Counter[int]] = defaultdict(Counter)
    for row in read_rows(tmp_path / "run", "traffic"):
        spent[row["round"]][row["client"]] += row["sent_bytes"]
    rows = read_rows(tmp_path / "run", "metrics")
    assert [row["busiest_bytes"] for row in rows] == [max(spent[number].values()) for number in range(5)]
    assert {row["budget_bytes"] for row in rows} == {budget}
    assert 0 < max(row["busiest_bytes"] for row in rows) <= budget
    for row in rows[1:]:
        assert row["notes"]["n_shared"] >= row["notes"]["n_shared_by_paper"]
    notes = rows[0]["notes"]
    assert notes["n_affordable"] >= notes["n_affordable_by_paper"]
    assert (notes["n_affordable"] > 0) == (budget > 300)
    assert f"budget_bytes = {budget}" in (tmp_path / "run" / "config.toml").read_text()


def test_a_budget_below_the_reference_round_or_a_given_split_is_refused(tmp_path: Path) -> None:
    for setting in ("budget=20B", "method.n_shared=20"):
        with pytest.raises(OverBudget, match="Raise the budget"):
            run(read_config(None, [*DIGITS, "budget=2kB", setting]), tmp_path / "run")


def test_the_reference_round_is_round_0_and_its_bytes_are_counted(tmp_path: Path) -> None:
    run(read_config(None, [*DIGITS, "rounds=1"]), tmp_path / "run")
    rows = [row for row in read_rows(tmp_path / "run", "traffic") if row["round"] == 0]
    assert {(row["step"], row["direction"]) for row in rows} == {("train_reference", "down"), ("train_reference", "up")}
    up = [row for row in rows if row["direction"] == "up" and row["field"] == "used"]
    assert [row["paper_bits"] for row in up] == [100] * 4  # 10 classes, 10 clauses
    notes = read_rows(tmp_path / "run", "metrics")
    assert 0 < notes[0]["notes"]["similarity"] == notes[1]["notes"]["similarity"] < 1
    assert notes[1]["notes"]["n_shared"] + notes[1]["notes"]["n_private"] == 40
    assert {"donor_1", "donor_2"} <= notes[1]["notes"].keys()
    mine = read_rows(tmp_path / "run", "clients")[0]["notes"]
    assert {"private_accuracy", "shared_accuracy", "both_accuracy"} <= mine.keys()


def test_similarity_is_estimated_anew_and_the_split_follows_the_drift() -> None:
    """At first all hold the same three classes; from round 2 on each has one of its own; from round 4 on as before."""
    alike = {client: (site([0, 1, 2] * 10).train,) * 3 for client in range(3)}
    apart = {client: (site([client] * 30).train,) * 3 for client in range(3)}
    method = CSpFedTM(n_clauses=8, threshold=10, patch=0, epochs=20, reestimate_every=2)
    source, splits = ClientData(((0, alike), (2, apart), (4, alike))), []
    with federate(method, Task((4, 4), 3, 3), source, seed=0, workers=1) as federation:
        federation.play(0, is_evaluated=False)
        for number in range(1, 5):
            federation.play(number, is_evaluated=False)
            fleet = federation.fleet
            splits.append((fleet.notes["n_private"], fleet.notes["n_shared"]))
            has_asked = fleet.ledger.total(step="train_reference", direction="up").sent_bytes > 0
            assert has_asked == (number in (2, 4))
    assert splits == [(4, 4), (8, 0), (8, 0), (4, 4)]


def test_sharing_nothing_sends_orders_alone(tmp_path: Path) -> None:
    summary = run(read_config(None, [*DIGITS, "method.n_shared=0"]), tmp_path / "run")
    assert (summary.upload_bytes, summary.paper_download_bytes) == (0, 0)
    assert summary.download_bytes < 4 * 4 * 8
    assert summary.accuracy_mean is not None


@pytest.mark.parametrize(
    "ablation",
    [
        ["n_shared=40", "mask=false", "donors=samples", "epochs=5"],  # FedTM
        ["n_shared=40", "donors=samples", "epochs=5"],  # mask only
        ["n_shared=10", "mask=false"],  # personalisation only
        ["n_shared=10", "holders_only=true", "gate=true", "normaliser=sample"],
        ["similarity=bit", "donors=samples"],
        ["similarity=clause-unmasked"],
    ],
)
def test_every_ablation_runs_with_lost_replies_and_partial_participation(ablation: list[str], tmp_path: Path) -> None:
    hard = ["fleet.participation=0.5", "fleet.lost_replies=0.3"]
    settings = [f"method.{setting}" for setting in ablation]
    assert run(read_config(None, [*DIGITS, *hard, *settings]), tmp_path / "run").rounds == 4


def test_more_shared_than_there_are_clauses_is_refused() -> None:
    with pytest.raises(ValueError, match=r"n_shared = 9 must be at most n_clauses, 8"):
        CSpFedTM(n_clauses=8, n_shared=9)


# ---------------------------------------------------------------- what is tested
def test_a_client_tested_as_trained_predicts_by_what_it_trained_whatever_came_since() -> None:
    method = CSpFedTM(**SMALL, tested="trained")
    client, home = method.start_client(TASK, site([0, 1, 2])), site([0, 1, 2] * 5, [0, 1, 2])
    method.train(client, Order(2), home)
    before, trained = method.personal_model(client), client.machines["shared"].weights.copy()
    other = method.build(TASK, 2)
    method.install(client, Merged(np.full((3, 2), 7, np.int32), tm.include_bits(other)), home)
    after = method.personal_model(client)
    assert np.array_equal(after.machines["shared"].weights, trained)
    assert np.array_equal(after.scores(home.val.x), before.scores(home.val.x))
    assert (client.machines["shared"].weights == 7).all(), "the next round goes on from what came"


def test_who_never_trained_is_tested_with_what_came() -> None:
    method = CSpFedTM(**SMALL, tested="trained")
    client, home = method.start_client(TASK, site([0, 1, 2])), site([0, 1, 2], [0, 1, 2])
    method.install(client, Merged(np.full((3, 2), 7, np.int32), tm.include_bits(method.build(TASK, 2))), home)
    assert (method.personal_model(client).machines["shared"].weights == 7).all()


def test_a_round_trains_the_machine_that_came_and_keeps_no_older_one() -> None:
    method = CSpFedTM(**SMALL, tested="trained")
    client, home = method.start_client(TASK, site([0, 1, 2])), site([0, 1, 2] * 5, [0, 1, 2])
    for _ in range(2):
        method.train(client, Order(2), home)
        assert np.array_equal(client.machines["trained"].weights, client.machines["shared"].weights)
        method.install(client, Merged(np.full((3, 2), 7, np.int32), tm.include_bits(method.build(TASK, 2))), home)
