from pathlib import Path

import numpy as np
import pytest

from laconic import tsetlin as tm
from laconic.algorithm import Examples, Site, Task
from laconic.algorithms.tsetlin.clause_pool import BLENDS, Change, ClausePool, Head, Member, Offer, Server
from laconic.fleets.base import Conditions
from laconic.fleets.host import Home
from laconic.fleets.local import LocalFleet
from laconic.runs.budget import most_bytes
from laconic.runs.config import read_config
from laconic.runs.prepare import ClientData
from laconic.runs.run import run

TASK = Task((4, 4), 3, 4)
METHOD = ClausePool(n_clauses=10, epochs=20, threshold=10, n_offered=1, min_examples=2)
N_LITERALS = 32
NONE_RIGHT = np.zeros(len(BLENDS), np.int64)


def make_site(labels: list[int], client: int = 0) -> Site:
    """Class k is bright in row k."""
    rng, y = np.random.default_rng(client), np.array(labels)
    x = rng.random((len(y), 4, 4)) < 0.1
    x[np.arange(len(y)), y] = True
    examples = Examples(x.astype(np.uint8), y)
    return Site(client, 1, examples, examples, rng)


def make_server() -> Server:
    return METHOD.start_server(TASK, None)  # type: ignore[arg-type]  # asks nothing


def make_offer(places: list[int], holds: list[int], n_examples: int = 10) -> Offer:
    """Clauses of one literal each."""
    return Offer(np.eye(N_LITERALS, dtype=bool)[places], np.isin(np.arange(3), holds), n_examples)


def test_clients_offer_their_best_clauses_of_classes_with_enough_examples() -> None:
    site = make_site([0] * 20 + [1] * 20 + [2])
    client = METHOD.start_client(TASK, site)
    offer = METHOD.offer(client, Offer, site)  # type: ignore[arg-type]  # the request is empty
    fired, includes = tm.clause_outputs(client.machine, site.train.x), tm.include_bits(client.machine)
    rates = [np.mean(fired[site.train.y == label], axis=0) for label in range(3)]  # [class][bank, clause]
    gaps = [np.abs(rates[k][k] - (rates[1 - k][k] + rates[2][k]) / 2) for k in (0, 1)]
    best = [int(gap.argmax()) for gap in gaps]
    assert np.array_equal(offer.clauses, [includes[0, best[0]], includes[1, best[1]]])
    assert (offer.holds.tolist(), offer.n_examples) == ([True, True, True], 41)


def test_a_client_of_one_class_offers_nothing() -> None:
    client = METHOD.start_client(TASK, make_site([1] * 20))
    assert len(METHOD.offer(client, Offer, make_site([1] * 20)).clauses) == 0  # type: ignore[arg-type]


def test_a_lost_offer_is_made_again_without_training_again() -> None:
    site = make_site([0] * 20 + [1] * 20)
    client = METHOD.start_client(TASK, site)
    first = METHOD.offer(client, Offer, site)  # type: ignore[arg-type]
    states = client.machine.states.copy()
    assert METHOD.offer(client, Offer, site) == first  # type: ignore[arg-type]
    assert np.array_equal(client.machine.states, states)


def test_offers_stand_side_by_side_and_late_joiners_bring_only_their_own_to_the_others() -> None:
    server = make_server()
    METHOD.take_offer(server, 0, make_offer([3, 4], [0, 1]), round=1)
    METHOD.take_offer(server, 2, make_offer([3], [0]), round=1)
    assert server.clauses.argmax(axis=1).tolist() == [3, 4, 3]  # nothing is merged
    first = METHOD.find_news(server, [0, 2])
    assert first[0] is first[2]  # the same for both, so that it is encoded once
    server.members[0].informed = server.members[2].informed = 1
    server.head += 1
    METHOD.take_offer(server, 1, make_offer([7], [2]), round=5)
    assert server.head[0].tolist() == [1, 1, 1, 1, 0]  # bias, three old slots, a new one
    news = METHOD.find_news(server, [0, 1, 2])
    assert news[0].is_new.tolist() == [False, False, False, True]
    assert news[0].clauses.argmax(axis=1).tolist() == [7]
    assert news[1].is_new.all()
    client = METHOD.start_client(TASK, make_site([0, 1]))
    for message in (first[0], news[0], news[0]):  # twice, where the reply was lost
        METHOD.take_clauses(client, message, make_site([0, 1]))
    assert np.array_equal(client.clauses, server.clauses)


def test_a_new_offer_replaces_the_old_one_and_slots_left_over_fall_silent() -> None:
    server = make_server()
    METHOD.take_offer(server, 0, make_offer([3, 4], [0, 1]), round=1)
    METHOD.take_offer(server, 1, make_offer([5], [0]), round=1)
    server.head += 1
    METHOD.take_offer(server, 0, make_offer([9], [0]), round=4)
    assert server.clauses.sum(axis=1).tolist() == [1, 0, 1]
    assert server.head[0].tolist() == [1, 0, 0, 1]
    METHOD.take_offer(server, 0, make_offer([9, 10, 11], [0]), round=8)
    assert server.clauses.argmax(axis=1).tolist() == [9, 10, 5, 11]
    assert server.owners.tolist() == [0, 0, 1, 0]


def test_rows_are_averaged_over_the_holders_of_a_class_by_size_and_others_rest() -> None:
    server = make_server()
    METHOD.take_offer(server, 0, make_offer([3], [0, 1], n_examples=30), round=1)
    METHOD.take_offer(server, 1, make_offer([], [1], n_examples=10), round=1)
    a = Change(np.array([[2, 4], [4, 0]]), np.array([0, -1]), NONE_RIGHT)  # scales 1 and 1/2
    b = Change(np.array([[6, 2]]), np.array([1]), NONE_RIGHT)  # scale 2
    METHOD.merge(server, {0: a, 1: b})
    assert server.head.tolist() == [[2, 4], [4.5, 1], [0, 0]]  # (30 * 2 + 10 * 12) / 40, (30 * 0 + 10 * 4) / 40
    METHOD.merge(server, {1: b})
    assert server.head[0].tolist() == [2, 4]  # nobody spoke of it
    assert server.head[1].tolist() == pytest.approx([4.5 + 0.8 * 4.5 + 12, 1 + 0.8 + 4])
    before = server.head
    METHOD.merge(server, {})
    assert np.array_equal(server.head, before)


def test_blend_is_the_one_that_most_validation_examples_of_all_favour() -> None:
    server = make_server()
    server.members = {k: Member(np.array([True, False, False]), 1, 1) for k in (0, 1)}
    zero = np.zeros((1, 1), np.int8), np.zeros(1, np.int8)
    METHOD.merge(server, {0: Change(*zero, NONE_RIGHT)})
    assert server.blend == 1  # nobody has validation examples
    METHOD.merge(
        server, {0: Change(*zero, np.array([9, 8, 5, 5, 5, 5])), 1: Change(*zero, np.array([1, 5, 5, 6, 5, 5]))}
    )
    assert server.blend == 0.25


def test_clients_who_get_the_whole_pool_at_once_hold_it_once() -> None:
    server, sites = make_server(), [make_site([0] * 20 + [1] * 10, client) for client in (0, 1)]
    clients = [METHOD.start_client(TASK, site) for site in sites]
    for number, (client, site) in enumerate(zip(clients, sites, strict=True)):
        METHOD.take_offer(server, number, METHOD.offer(client, Offer, site), round=1)  # type: ignore[arg-type]
    news = METHOD.find_news(server, [0, 1])
    for number, (client, site) in enumerate(zip(clients, sites, strict=True)):
        METHOD.take_clauses(client, news[number], site)
    assert np.shares_memory(clients[0].clauses, clients[1].clauses)


def test_a_change_is_what_training_adds_to_the_head_as_it_arrived() -> None:
    site = make_site([0] * 20 + [1] * 10)
    client = METHOD.start_client(TASK, site)
    offer = METHOD.offer(client, Offer, site)  # type: ignore[arg-type]
    server = make_server()
    METHOD.take_offer(server, 0, offer, round=1)
    METHOD.take_clauses(client, METHOD.find_news(server, [0])[0], site)
    sent = Head(np.array([[3, 1, 0], [0, -1, 2]], np.int8), np.array([-1, 0], np.int8), 2.0)
    change = METHOD.improve(client, sent, site)
    assert client.head.tolist() == [[1.5, 0.5, 0], [0, -1, 2]]
    assert (change.rows.shape, np.abs(change.rows).max() <= 7, client.blend) == ((2, 3), True, 2.0)
    assert change.n_right.tolist() == METHOD.try_blends(client, site).tolist()
    assert site.notes["validation_accuracy"] == change.n_right[BLENDS.index(2.0)] / len(site.val.y)


def test_only_held_classes_are_guessed() -> None:
    site = make_site([0] * 10 + [2] * 20)
    client = METHOD.start_client(TASK, site)
    assert METHOD.predict(client, site.train.x).tolist() == [2] * 30  # knows nothing but its shares
    METHOD.offer(client, Offer, site)  # type: ignore[arg-type]
    guessed = METHOD.predict(client, site.train.x)
    assert set(guessed) == {0, 2}
    assert np.mean(guessed == site.train.y) > 0.9


def make_fleet(method: ClausePool, **conditions: float) -> LocalFleet:
    parts = {
        k: (site.train, site.val, site.train)
        for k in range(4)
        for site in [make_site([k % 3] * 9 + [(k + 1) % 3] * 9, k)]
    }
    home = Home(method, TASK, ClientData(((0, parts),)), seed=0)
    return LocalFleet(home, Conditions(**conditions), lambda what, done, total: None, 2)  # type: ignore[arg-type]


def test_clauses_travel_once_and_then_only_the_head() -> None:
    fleet = make_fleet(METHOD)
    server = METHOD.start_server(TASK, fleet)
    steps = []
    for number in (1, 2):
        fleet.begin(number)
        METHOD.run_round(server, fleet)
        steps.append({step for (step,) in fleet.ledger.totals("step")})
    fleet.close()
    assert steps == [{"offer", "take_clauses", "improve"}, {"improve"}]
    assert len(server.clauses) == 8  # of each client one for each of its two classes


def test_the_control_sends_nothing() -> None:
    method = ClausePool(n_clauses=10, epochs=20, threshold=10, share=False)
    fleet = make_fleet(method)
    server = method.start_server(TASK, fleet)
    for number in (1, 2):
        fleet.begin(number)
        method.run_round(server, fleet)
        assert fleet.ledger.total().sent_bytes == 0
    scores = fleet.evaluate()
    fleet.close()
    assert sum(score.n_correct for score in scores) > 60  # of 72
    assert method.costliest_round(TASK) == []


def test_a_refresh_that_is_lost_is_asked_for_again_before_the_head() -> None:
    method = ClausePool(n_clauses=6, epochs=1, threshold=10, n_offered=1, min_examples=2, refresh_every=2)
    fleet = make_fleet(method, lost_replies=0.4)
    server = method.start_server(TASK, fleet)
    for number in range(1, 13):
        fleet.begin(number)
        method.run_round(server, fleet)
    fleet.close()
    assert len(server.clauses) == 8
    assert min(member.offered for member in server.members.values()) > 4


def test_no_round_costs_more_than_the_costliest(tmp_path: Path) -> None:
    settings = ["method.name=clausepool", "rounds=2", "method.epochs=2", "method.n_clauses=10", "data.clients=4"]
    config = read_config(None, settings)
    summary = run(config, tmp_path / "run")
    most = most_bytes(config.method, Task((8, 8), 10, 4))
    assert most is not None
    assert summary.upload_bytes + summary.download_bytes < 2 * 4 * most


def test_settings_out_of_range_are_named() -> None:
    with pytest.raises(ValueError, match=r"method\.momentum = 1\.0 must be"):
        ClausePool(momentum=1.0)
    with pytest.raises(ValueError, match=r"method\.n_offered = 0"):
        ClausePool(n_offered=0)
