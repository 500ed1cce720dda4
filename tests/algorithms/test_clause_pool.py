import json
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laconic import tsetlin as tm
from laconic.algorithm import Examples, Site, Task, bound_bytes
from laconic.algorithms.tsetlin.clause_pool import ClausePool
from laconic.algorithms.tsetlin.members import Member, Members
from laconic.algorithms.tsetlin.pool import BLENDS, Change, Head, Offer
from laconic.algorithms.tsetlin.pool_server import PoolServer
from laconic.fleets.base import Conditions
from laconic.fleets.source import ClientData, Parts
from laconic.runs.budget import keep_budget, most_bytes
from laconic.runs.config import read_config
from laconic.runs.run import run
from laconic.simulation import Federation, federate

TASK = Task((4, 4), 3, 4)
METHOD = ClausePool(n_clauses=10, epochs=20, threshold=10, n_offered=1, min_examples=2)
N_LITERALS = 32
NONE_RIGHT = np.zeros(len(BLENDS), np.int64)
EMPTY_ROWS = np.zeros((1, 1), np.int8), np.zeros(1, np.int8)


def make_site(labels: list[int], client: int = 0) -> Site:
    """Class k is bright in row k."""
    rng, y = np.random.default_rng(client), np.array(labels)
    x = rng.random((len(y), 4, 4)) < 0.1
    x[np.arange(len(y)), y] = True
    examples = Examples(x.astype(np.uint8), y)
    return Site(client, 1, examples, examples, rng)


def make_server() -> PoolServer:
    return METHOD.start_server(TASK, None)  # type: ignore[arg-type]  # asks nothing


def make_offer(places: list[int], holds: list[int], n_examples: int = 10) -> Offer:
    """Clauses of one literal each."""
    scales = np.zeros((len(places), 2), np.int8)
    return Offer(np.eye(N_LITERALS, dtype=bool)[places], scales, np.isin(np.arange(3), holds), n_examples, 0)


def test_clients_offer_their_best_clauses_of_classes_with_enough_examples() -> None:
    site = make_site([0] * 20 + [1] * 20 + [2])
    client = METHOD.start_client(TASK, site)
    offer = METHOD.offer(client, Offer, site)  # type: ignore[arg-type]  # the request is empty
    spoken = tm.read_machine(client.own.machine, client.own.scales, site.train.x).reshape(-1, 3, 10)
    means = [np.mean(spoken[site.train.y == label], axis=0) for label in range(3)]  # [class][bank, clause]
    gaps = [np.abs(means[k][k] - (means[1 - k][k] + means[2][k]) / 2) for k in (0, 1)]
    best = [int(gap.argmax()) for gap in gaps]
    assert np.array_equal(offer.clauses, tm.include_bits(client.own.machine)[[0, 1], best])
    assert np.array_equal(offer.scales, client.own.scales.reshape(3, 10, 2)[[0, 1], best])
    assert (offer.holds.tolist(), offer.n_examples, offer.n_val) == ([True, True, True], 41, 41)


def test_a_client_of_one_class_offers_nothing() -> None:
    client = METHOD.start_client(TASK, make_site([1] * 20))
    assert len(METHOD.offer(client, Offer, make_site([1] * 20)).clauses) == 0  # type: ignore[arg-type]


def test_a_lost_offer_is_made_again_without_training_again() -> None:
    site = make_site([0] * 20 + [1] * 20)
    client = METHOD.start_client(TASK, site)
    first = METHOD.offer(client, Offer, site)  # type: ignore[arg-type]
    states = client.own.machine.states.copy()
    assert METHOD.offer(client, Offer, site) == first  # type: ignore[arg-type]
    assert np.array_equal(client.own.machine.states, states)


def test_offers_stand_side_by_side_and_late_joiners_bring_only_their_own_to_the_others() -> None:
    server = make_server()
    server.take_offer(0, make_offer([3, 4], [0, 1]), round=1)
    server.take_offer(2, make_offer([3], [0]), round=1)
    assert server.pool.clauses.argmax(axis=1).tolist() == [3, 4, 3]  # nothing is merged
    first = server.find_news([0, 2])
    assert first[0] is first[2]  # the same for both, so that it is encoded once
    server.members.by_id[0].told = server.members.by_id[2].told = 3
    server.head += 1
    server.take_offer(1, make_offer([7], [2]), round=5)
    assert server.head[0].tolist() == [1, 1, 1, 1, 0]  # bias, three old slots, a new one
    news = server.find_news([0, 1, 2])
    assert news[0].is_new.tolist() == [False, False, False, True]
    assert news[0].clauses.argmax(axis=1).tolist() == [7]
    assert news[1].is_new.all()
    client = METHOD.start_client(TASK, make_site([0, 1]))
    for message in (first[0], news[0], news[0]):  # twice, where the reply was lost
        METHOD.take_clauses(client, message, make_site([0, 1]))
    assert np.array_equal(client.clauses, server.pool.clauses)


def test_a_new_offer_replaces_the_old_one_and_slots_left_over_fall_silent() -> None:
    server = make_server()
    server.take_offer(0, make_offer([3, 4], [0, 1]), round=1)
    server.take_offer(1, make_offer([5], [0]), round=1)
    server.head += 1
    server.take_offer(0, make_offer([9], [0]), round=4)
    assert server.pool.clauses.sum(axis=1).tolist() == [1, 0, 1]
    assert server.head[0].tolist() == [1, 0, 0, 1]
    server.take_offer(0, make_offer([9, 10, 11], [0]), round=8)
    assert server.pool.clauses.argmax(axis=1).tolist() == [9, 10, 5, 11]
    assert server.pool.owners.tolist() == [0, 0, 1, 0]


def test_rows_are_averaged_over_the_holders_of_a_class_by_size_and_others_rest() -> None:
    server = make_server()
    server.take_offer(0, make_offer([3], [0, 1], n_examples=30), round=1)
    server.take_offer(1, make_offer([], [1], n_examples=10), round=1)
    a = Change(None, np.array([[2, 4], [4, 0]]), np.array([0, -1]), NONE_RIGHT)  # scales 1 and 1/2
    b = Change(None, np.array([[6, 2]]), np.array([1]), NONE_RIGHT)  # scale 2
    server.members.by_id[0].told = server.members.by_id[1].told = 1
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
    server.members.by_id = {k: Member(np.array([True, False, False]), 1, 9, 1) for k in (0, 1)}
    METHOD.merge(server, {0: Change(None, *EMPTY_ROWS, NONE_RIGHT)})
    assert server.blend == 1  # nobody has validation examples
    METHOD.merge(
        server,
        {
            0: Change(None, *EMPTY_ROWS, np.array([9, 8, 5, 5, 5, 5])),
            1: Change(None, *EMPTY_ROWS, np.array([1, 5, 5, 6, 5, 5])),
        },
    )
    assert server.blend == 0.25


def test_clients_who_get_the_whole_pool_at_once_hold_it_once() -> None:
    server, sites = make_server(), [make_site([0] * 20 + [1] * 10, client) for client in (0, 1)]
    clients = [METHOD.start_client(TASK, site) for site in sites]
    for number, (client, site) in enumerate(zip(clients, sites, strict=True)):
        server.take_offer(number, METHOD.offer(client, Offer, site), round=1)  # type: ignore[arg-type]
    news = server.find_news([0, 1])
    for number, (client, site) in enumerate(zip(clients, sites, strict=True)):
        METHOD.take_clauses(client, news[number], site)
    assert np.shares_memory(clients[0].clauses, clients[1].clauses)


def test_a_change_is_what_training_adds_to_the_head_as_it_arrived() -> None:
    site = make_site([0] * 20 + [1] * 10)
    client = METHOD.start_client(TASK, site)
    offer = METHOD.offer(client, Offer, site)  # type: ignore[arg-type]
    server = make_server()
    server.take_offer(0, offer, round=1)
    METHOD.take_clauses(client, server.find_news([0])[0], site)
    holds = np.array([True, True, False])
    sent = Head(holds, None, np.array([[3, 1, 0], [0, -1, 2]], np.int8), np.array([-1, 0], np.int8), 2.0)
    change = METHOD.improve(client, sent, site)
    assert client.head.tolist() == [[1.5, 0.5, 0], [0, -1, 2]]
    assert (change.rows.shape, np.abs(change.rows).max() <= 7, client.blend) == ((2, 3), True, 2.0)
    assert change.n_right.tolist() == client.count_right(site.val).tolist()
    assert change.holds is None


def test_only_held_classes_are_guessed() -> None:
    site = make_site([0] * 10 + [2] * 20)
    client = METHOD.start_client(TASK, site)
    assert METHOD.predict(client, site.train.x).tolist() == [2] * 30  # knows nothing but its shares
    METHOD.offer(client, Offer, site)  # type: ignore[arg-type]
    guessed = METHOD.predict(client, site.train.x)
    assert set(guessed) == {0, 2}
    assert np.mean(guessed == site.train.y) > 0.9


def make_parts(shift: int = 0) -> dict[int, Parts]:
    """Client k holds two classes, from k + shift on."""
    sites = [make_site([(k + shift) % 3] * 9 + [(k + shift + 1) % 3] * 9, k) for k in range(4)]
    return dict(enumerate((site.train, site.val, site.train) for site in sites))


def gather(
    method: ClausePool, *later: tuple[int, dict[int, Parts]], **conditions: float
) -> AbstractContextManager[Federation]:
    source = ClientData(((0, make_parts()), *later))
    return federate(method, TASK, source, seed=0, workers=2, conditions=Conditions(**conditions))  # type: ignore[arg-type]


def play(gathered: AbstractContextManager[Federation], n_rounds: int) -> tuple[PoolServer, list[int], list[int]]:
    """The server, the bytes of each round, and how many of all 72 test examples were right after it."""
    sent, right = [], []
    with gathered as federation:
        federation.play(0, is_evaluated=False)
        for number in range(1, n_rounds + 1):
            played = federation.play(number, is_evaluated=True)
            assert played.trouble is None
            sent.append(federation.fleet.ledger.total().sent_bytes)
            right.append(sum(score.n_correct for score in played.scores or ()))
    return federation.server, sent, right


def test_clauses_travel_once_and_then_only_the_head() -> None:
    steps = []
    with gather(METHOD) as federation:
        for number in range(3):
            federation.play(number, is_evaluated=False)
            steps.append({step for (step,) in federation.fleet.ledger.totals("step")})
    assert steps == [set(), {"offer", "take_clauses", "improve"}, {"improve"}]
    assert len(federation.server.pool.clauses) == 8  # of each client one for each of its two classes


def test_the_control_sends_nothing() -> None:
    method = ClausePool(n_clauses=10, epochs=20, threshold=10, share=False)
    _, sent, right = play(gather(method), 2)
    assert sent == [0, 0]
    assert right[-1] > 60  # of 72
    assert method.costliest_round(TASK) == []


def test_a_refresh_that_is_lost_is_asked_for_again_before_the_head() -> None:
    method = ClausePool(n_clauses=6, epochs=1, threshold=10, n_offered=1, min_examples=2, refresh_every=2)
    server, _, _ = play(gather(method, lost_replies=0.4), 12)
    assert len(server.pool.clauses) == 8
    assert min(member.offered for member in server.members.by_id.values()) > 4


SMALL: dict[str, Any] = {"n_clauses": 10, "epochs": 20, "threshold": 10, "n_offered": 1, "min_examples": 2}


@pytest.mark.parametrize("refresh_every", [0, 4])
def test_clients_follow_a_drift_of_their_classes_with_and_without_a_new_pool(refresh_every: int) -> None:
    """From round 4 on clients hold other classes."""
    method = ClausePool(**SMALL, refresh_every=refresh_every)
    server, _, right = play(gather(method, (4, make_parts(shift=1))), 14)
    assert np.mean(right[5:]) > 65  # of 72; two rounds later
    assert [member.holds.tolist() for member in server.members.by_id.values()] == [
        [False, True, True], [True, False, True], [True, True, False], [False, True, True]
    ]  # fmt: skip
    assert len(server.pool.clauses) == 8  # replaced, not heaped up


def test_a_client_that_has_other_classes_says_so_and_changes_only_rows_it_was_sent() -> None:
    client = METHOD.start_client(TASK, make_site([0] * 9 + [1] * 9))
    METHOD.offer(client, Offer, make_site([0] * 9 + [1] * 9))  # type: ignore[arg-type]
    rows, exponents = np.array([[3], [2]], np.int8), np.zeros(2, np.int8)
    change = METHOD.improve(client, Head(client.own.holds, None, rows, exponents, 1.0), make_site([1] * 9 + [2] * 9))
    assert change.holds is not None
    assert change.holds.tolist() == client.own.holds.tolist() == [False, True, True]
    assert client.own.machine.n_classes == 2
    assert client.head.tolist() == [[2], [0]]
    assert change.rows[0].tolist() == [0]  # of class 0, which it has no longer


def test_clients_that_came_together_are_refreshed_apart() -> None:
    server = make_server()
    for client in range(4):
        server.take_offer(client, make_offer([client], [0]), round=1, refresh_every=4)
    due = [[k for k in range(4) if server.members.is_due(k, number, 4)] for number in (2, 3, 4, 5)]
    assert due == [[3], [2, 3], [1, 2, 3], [0, 1, 2, 3]]  # asked in turn, each would be due alone
    server.take_offer(3, make_offer([3], [0]), round=2, refresh_every=4)
    assert not server.members.is_due(3, 5, 4)
    assert server.members.is_due(3, 6, 4)


def test_without_progress_the_exchange_ends_and_a_newcomer_starts_it_again() -> None:
    method = ClausePool(n_clauses=10, epochs=20, threshold=10, n_offered=1, min_examples=2, patience=3)
    server, sent, right = play(gather(method), 12)
    assert sent[0] > 0 == sent[-1]
    assert right[-1] == right[-2] > 65
    end = server.members.best_round + method.patience
    assert [n_bytes > 0 for n_bytes in sent] == [number <= end for number in range(1, 13)]
    server.take_offer(3, make_offer([5], [0]), round=13)
    assert server.members.is_wanted(0, 14, 3)


def test_at_the_end_whoever_was_away_still_gets_the_head_once() -> None:
    method = ClausePool(n_clauses=10, epochs=20, threshold=10, n_offered=1, min_examples=2, patience=4)
    server, sent, _ = play(gather(method, participation=0.5), 60)
    end = server.members.best_round + method.patience
    assert min(member.heard for member in server.members.by_id.values()) >= end
    assert sent[-1] == 0


def test_progress_is_of_all_who_were_ever_heard_whoever_takes_part() -> None:
    holds, seen = np.array([True, False, False]), []
    members = Members({k: Member(holds, 1, 10, 1) for k in (0, 1)})
    for number, right in enumerate(({0: 8, 1: 2}, {0: 8}, {1: 9}), start=1):
        for client, n_right in right.items():
            members.by_id[client].n_right, members.by_id[client].heard = np.array([n_right, 0]), number
        members.see_progress(number)
        seen.append((members.best, members.best_round))
    assert seen == [(0.5, 1), (0.5, 1), (0.85, 3)]  # the second is no better, though 80 % of those who took part


def test_a_pool_may_arrive_in_portions_and_each_clause_is_learned_by_those_who_know_it() -> None:
    server = make_server()
    server.n_told, server.n_known = 2, 3
    server.take_offer(0, make_offer([3, 4], [0, 1], n_examples=30), round=1)
    server.take_offer(1, make_offer([5, 6], [1], n_examples=10), round=1)
    client, told = METHOD.start_client(TASK, make_site([1, 2])), []
    for _ in range(3):
        for news in server.find_news([1]).values():
            METHOD.take_clauses(client, news, make_site([1, 2]))
            server.mark_told(1, news)
        slots = METHOD.tell_head(server, 1).slots
        told.append(None if slots is None else slots.tolist())
    assert told == [[True, True, False, False], [True, True, True, False], [True, True, True, False]]
    METHOD.improve(client, METHOD.tell_head(server, 1), make_site([1, 2]))
    assert client.head.shape[1] == 4  # bias and three slots
    a = Change(None, np.array([[0, 0, 0], [2, 2, 2]]), np.array([0, 0]), NONE_RIGHT)
    b = Change(None, np.array([[6, 6, 6, 6]]), np.array([0]), NONE_RIGHT)
    server.members.by_id[0].told = 2
    METHOD.merge(server, {0: a, 1: b})
    assert server.head[1].tolist() == [3, 3, 3, 6, 0]  # (30 * 2 + 10 * 6) / 40; the third slot is known to one alone


@pytest.mark.parametrize("budget", [3_000, 4_000, 10_000])
def test_a_budget_is_kept_by_fewer_clauses_more_rounds_or_a_smaller_pool(budget: int, tmp_path: Path) -> None:
    small = ["method.epochs=2", "method.n_clauses=10", "method.min_examples=2", "method.n_offered=3"]
    config = read_config(None, ["method.name=clausepool", "rounds=6", "data.clients=12", f"budget={budget}B", *small])
    run(config, tmp_path / "run")
    kept = read_config(tmp_path / "run" / "config.toml").method
    assert isinstance(kept, ClausePool)
    assert kept.budget_bytes == budget
    n_known, n_told = kept.plan(task := Task((8, 8, 4), 10, 12, levels=4))
    assert bound_bytes(kept.list_messages(task, n_known, n_told)) <= budget
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert 0 < max(row["busiest_bytes"] for row in rows) <= budget


def test_more_bytes_buy_a_larger_pool_then_more_clauses_of_each_in_more_bits_and_then_a_faster_start() -> None:
    task, plans = Task((28, 28), 10, 100), []
    for budget in (5_000, 15_000, 25_000, 40_000, 100_000):
        config = keep_budget(
            read_config(None, ["method.name=clausepool", f"budget={budget}B"]), task, lambda line: None
        )
        assert isinstance(config.method, ClausePool)
        plans.append((config.method.precision, config.method.n_offered, *config.method.plan(task)))
    precisions, n_offered, n_known, n_told = zip(*plans, strict=True)
    assert precisions == ("coarse", "coarse", "coarse", "fine", "fine")
    assert n_offered == (1, 1, 1, 2, 2)
    assert n_known[0] < n_known[1] < n_known[2] == 1000  # of each client and class one
    assert n_known[3] == n_known[4] == 2000
    assert n_told[0] == n_told[1] == 20 < n_told[2]
    assert n_told[3] < n_told[4]


def test_coarse_numbers_take_fewer_bytes_and_keep_within_their_limits() -> None:
    task = Task((8, 8), 10, 50)
    fine, coarse = (ClausePool(precision=precision) for precision in ("fine", "coarse"))  # type: ignore[arg-type]
    assert (most_bytes(coarse, task) or 0) < 0.92 * (most_bytes(fine, task) or 0)
    site = make_site([0] * 20 + [1] * 10)
    client = coarse.start_client(TASK, site)
    coarse.offer(client, Offer, site)  # type: ignore[arg-type]
    sent = Head(client.own.holds, None, np.array([[3], [-7]], np.int8), np.array([0, 0], np.int8), 1.0)
    change = coarse.improve(client, sent, site)
    assert np.abs(change.rows).max() <= 3
    coarse.check_change(sent, change)
    with pytest.raises(ValueError, match="rows reach from"):
        coarse.check_change(sent, Change(None, change.rows + 4, change.exponents, change.n_right))


@pytest.mark.parametrize(
    "task", [Task((12,), 3, 4), Task((8, 8), 3, 4), Task((8, 8, 6), 3, 4, levels=2), Task((24, 24, 3), 3, 4)]
)
def test_any_shape_of_example_will_do_colour_images_too(task: Task) -> None:
    rng, method = np.random.default_rng(0), ClausePool(n_clauses=4, epochs=3, threshold=5, min_examples=2)
    y = np.repeat([0, 1, 2], 8)
    x = (rng.random((24, *task.input_shape)) < 0.3).astype(np.uint8)
    x[y == 1] = 0  # dark
    x[y == 2] = 1
    source = ClientData.of([(Examples(x, y),) * 3] * 4)
    server, _, right = play(federate(method, task, source, seed=0, workers=1), 3)
    assert len(server.pool.clauses) == 4 * 3 * 2
    assert right[-1] > 80  # of 96


def test_a_head_on_a_pool_of_any_size_stays_calm_for_many_rounds() -> None:
    for n_offered in (1, 10):
        method = ClausePool(n_clauses=10, epochs=20, threshold=10, n_offered=n_offered, min_examples=2)
        server, _, right = play(gather(method), 40)
        assert min(right[5:]) > 65
        assert np.abs(server.head).max() < 100


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
