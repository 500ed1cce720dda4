from pathlib import Path

import numpy as np
import pytest

from laconic import tsetlin as tm
from laconic.algorithm import Examples, Site, Task
from laconic.algorithms.tsetlin.fed_tm import FedTM, Holdings, Order, Update
from laconic.algorithms.tsetlin.machines import Merged, choose_shape
from laconic.fleets.source import ClientData
from laconic.runs.config import read_config
from laconic.runs.run import run
from laconic.simulation import federate
from laconic.wire import Hop, Ledger, encode_detailed

TASK = Task((4, 4), 3, 4)
METHOD = FedTM(n_clauses=2, epochs=1, patch=0)


def site(labels: list[int]) -> Site:
    examples = Examples(np.ones((len(labels), 4, 4), np.uint8), np.array(labels))
    return Site(0, 1, examples, examples, np.random.default_rng(0))


def update(per_class: list[int], weight: int, states: np.ndarray | None = None) -> Update:
    return Update(np.full((3, 2), weight, np.int32), states, np.array(per_class))


def test_each_class_has_the_two_richest_sampled_clients_as_donors() -> None:
    server = METHOD.start_server(TASK, None)  # type: ignore[arg-type]  # asks nothing
    holdings = {0: [5, 0, 0], 1: [5, 1, 0], 2: [9, 2, 0], 3: [4, 3, 0]}
    server.holdings = {client: np.array(counts) for client, counts in holdings.items()}
    wanted = METHOD.choose_donors(server, [0, 1, 2, 3])
    assert {client: classes.tolist() for client, classes in wanted.items()} == {
        0: [True, False, False],
        1: [False, False, False],
        2: [True, True, False],
        3: [False, True, False],
    }
    assert METHOD.choose_donors(server, [1])[1].tolist() == [True, True, False]  # alone
    del server.holdings[1]
    assert METHOD.choose_donors(server, [1])[1].tolist() == [False, False, False]  # never told us


def test_include_bits_are_the_or_of_the_donors_and_stay_where_none_arrived() -> None:
    server = METHOD.start_server(TASK, None)  # type: ignore[arg-type]
    n_literals = server.states.shape[2]
    server.states[2] = True
    a, b = np.zeros((2, 2, n_literals), np.bool_), np.zeros((1, 2, n_literals), np.bool_)
    a[0, 0, 3] = a[1, 1, 4] = b[0, 0, 5] = True
    METHOD.merge_states(
        server,
        [
            (Order(np.array([True, True, False])), update([1, 1, 0], 1, a)),
            (Order(np.array([True, False, False])), update([1, 0, 0], 1, b)),
            (Order(np.array([False, False, False])), update([1, 0, 0], 1)),
        ],
    )
    assert np.argwhere(server.states[:2]).tolist() == [[0, 0, 3], [0, 0, 5], [1, 1, 4]]
    assert server.states[2].all()


def test_lent_clauses_come_whole_from_one_donor_each_and_stay_where_their_lender_is_lost() -> None:
    method = FedTM(n_clauses=6, epochs=1, patch=0, merging="lend", n_donors=3)
    server = method.start_server(TASK, None)  # type: ignore[arg-type]
    server.states[...] = True
    server.holdings = {0: np.array([5, 0, 0]), 1: np.array([4, 0, 0]), 2: np.array([0, 1, 0])}
    orders = {client: Order(wanted) for client, wanted in method.choose_donors(server, [0, 1, 2, 3]).items()}
    # clauses for and against a class go in pairs; two donors of three parts take turns, one has them all
    assert method.find_clauses(orders[0])[0].tolist() == [True, True, False, False, True, True]
    assert method.find_clauses(orders[1])[0].tolist() == [False, False, True, True, False, False]
    assert method.find_clauses(orders[2])[1].all()
    assert not orders[3].send_states.any()
    n_literals = server.states.shape[2]
    updates = [(orders[0], np.zeros((4, n_literals), np.bool_)), (orders[2], np.zeros((6, n_literals), np.bool_))]
    method.merge_states(server, [(order, update([1, 1, 0], 1, states)) for order, states in updates])
    assert server.states.any(axis=2)[0].tolist() == [False, False, True, True, False, False]  # 1 was lost
    assert not server.states[1].any()
    assert server.states[2].all()


def test_where_clauses_are_lent_who_lacks_a_class_has_no_part_in_its_weights() -> None:
    method = FedTM(n_clauses=2, epochs=1, patch=0, merging="lend")
    server = method.start_server(TASK, None)  # type: ignore[arg-type]
    method.merge_weights(server, [update([3, 0, 0], 21), update([1, 2, 0], 40)])
    assert server.weights[:, 0].tolist() == [26, 40, 1]  # 25.75 and 40, to the nearest


def test_lenders_send_fewer_bytes_than_donors_of_whole_classes(tmp_path: Path) -> None:
    given = ["rounds=3", "method.epochs=5", "method.n_donors=4", "data.alpha=10000"]
    sent = {how: run(read_config(None, [*given, f"method.merging={how}"]), tmp_path / how) for how in ("or", "lend")}
    assert sent["lend"].upload_bytes < 0.8 * sent["or"].upload_bytes


def test_weights_of_a_class_met_late_start_at_the_mean_and_are_blended_from_then_on() -> None:
    server = METHOD.start_server(TASK, None)  # type: ignore[arg-type]
    METHOD.merge_weights(server, [update([3, 0, 0], 20), update([1, 0, 0], 40)])
    assert server.weights[:, 0].tolist() == [25, 1, 1]
    METHOD.merge_weights(server, [update([1, 1, 0], 50)])
    assert server.weights[:, 0].tolist() == [27, 50, 1]  # 0.9 * 25 + 0.1 * 50 = 27.5


def test_clients_rebuild_weak_includes_and_excludes_below_the_boundary() -> None:
    client = METHOD.start_client(TASK, site([0, 1]))
    states = np.zeros((3, 2, 32), np.bool_)
    states[0, 0, :5] = True
    METHOD.install(client, Merged(np.full((3, 2), 7, np.int32), states), site([0, 1]))
    assert np.unique(tm.literal_states(client.machine)).tolist() == [95, 128]
    assert np.array_equal(tm.include_bits(client.machine), states)
    assert (client.machine.weights == 7).all()


@pytest.mark.parametrize("mask", [False, True])
def test_mask_zeroes_the_weights_of_classes_a_client_lacks_before_sending_and_after_receiving(mask: bool) -> None:
    method = FedTM(n_clauses=2, epochs=1, patch=0, mask=mask)
    client = method.start_client(TASK, site([0, 1]))
    sent = method.train(client, Order(np.zeros(3, np.bool_)), site([0, 1]))
    assert (sent.weights[2] == 0).all() == mask
    method.install(client, Merged(np.full((3, 2), 7, np.int32), np.zeros((3, 2, 32), np.bool_)), site([0, 1]))
    assert client.machine.weights[:, 0].tolist() == [7, 7, 0 if mask else 7]


def test_only_the_include_bits_asked_for_travel() -> None:
    client = METHOD.start_client(TASK, site([0, 1, 2]))
    sent = METHOD.train(client, Order(np.array([False, True, True])), site([0, 1, 2]))
    assert sent.states is not None
    assert np.array_equal(sent.states, tm.include_bits(client.machine)[1:])
    assert METHOD.train(client, Order(np.zeros(3, np.bool_)), site([0])).states is None


# classes, clauses, patch; upload and download of a round with 100 clients: in bytes, and in MB as Table II prints them
TABLE_2 = {
    "MNIST": (10, 100, 10, 472_000, 4_000_000, "0.47", "4.00"),
    "FEMNIST": (62, 300, 10, 8_779_200, 74_400_000, "8.78", "74.40"),
    "F-MNIST": (10, 200, 5, 880_000, 4_800_000, "0.88", "4.80"),
}


@pytest.mark.parametrize("name", TABLE_2)
def test_papers_count_gives_table_2_exactly(name: str) -> None:
    """100 clients send weights, two of them each class's include bits; everyone gets the merged machine."""
    n_classes, n_clauses, patch, upload_bytes, download_bytes, upload_mb, download_mb = TABLE_2[name]
    shape = choose_shape(Task((28, 28), n_classes, 100), patch)
    weights, per_class = np.ones((n_classes, n_clauses), np.int32), np.ones(n_classes, np.int64)
    states = np.zeros((n_classes, n_clauses, shape.n_literals), np.bool_)
    ledger = Ledger()
    told, order = encode_detailed(Holdings(per_class)), encode_detailed(Order(per_class > 0))
    full, weights_only = Update(weights, states, per_class), Update(weights, None, per_class)
    encoded = {message: encode_detailed(each) for message, each in (("full", full), ("weights", weights_only))}
    merged = Merged(weights, states)
    encoded_merged = encode_detailed(merged)
    for client in range(100):
        ledger.record(Hop(1, "tell_holdings", "up", client), Holdings(per_class), told)
        ledger.record(Hop(1, "train", "down", client), Order(per_class > 0), order)
        sent = (full, encoded["full"]) if client < 2 else (weights_only, encoded["weights"])
        ledger.record(Hop(1, "train", "up", client), *sent)
        ledger.record(Hop(1, "install", "down", client), merged, encoded_merged)
    up, down = (ledger.total(direction=way).paper_bits / 8 for way in ("up", "down"))
    assert (up, down) == (upload_bytes, download_bytes)
    assert (f"{up / 1e6:.2f}", f"{down / 1e6:.2f}") == (upload_mb, download_mb)


def test_a_real_round_of_100_clients_costs_what_table_2_says_for_mnist() -> None:
    """Bits of MNIST's shape; three examples a client are enough, for the count is one of shapes."""
    rng, parts = np.random.default_rng(0), []
    for client in range(100):
        y = np.array([client % 10, (client + 1) % 10, (client + 2) % 10])
        examples = Examples((rng.random((3, 28, 28)) < 0.2).astype(np.uint8), y)
        parts.append((examples, examples, examples))
    task = Task((28, 28), 10, 100)
    with federate(FedTM(epochs=2), task, ClientData.of(parts), seed=0, workers=2) as federation:
        federation.play(0, is_evaluated=False)
        for number in (1, 2):
            federation.play(number, is_evaluated=False)
            up, down = (federation.fleet.ledger.total(direction=way) for way in ("up", "down"))
            assert (up.paper_bits / 8, down.paper_bits / 8) == (472_000, 4_000_000)


def test_real_bytes_of_a_run_on_digits_are_less_than_a_third_of_the_papers_count(tmp_path: Path) -> None:
    summary = run(read_config(None, ["rounds=4", "method.epochs=20"]), tmp_path / "run")
    assert summary.upload_bytes < summary.paper_upload_bytes / 3
    assert summary.download_bytes < summary.paper_download_bytes / 3
