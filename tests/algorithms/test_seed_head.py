from pathlib import Path

import numpy as np
import pytest

from laconic import linear
from laconic.algorithm import Examples, Site, Task
from laconic.algorithms.heads.one_shot import ClassMeans, Means, check_means, find_means, fit_head
from laconic.algorithms.heads.seed_head import SeedHead
from laconic.algorithms.heads.shared_head import Change, Head, Hello, Member, Server
from laconic.runs.budget import keep_budget, most_bytes
from laconic.runs.config import read_config
from laconic.runs.run import run
from laconic.simulation import simulate
from laconic.wire import EMPTY

TASK = Task((6,), 3, 2)
METHOD = SeedHead(n_seed=30)


def make_examples(labels: list[int], seed: int = 0) -> Examples:
    """Rows of bytes; class k is high in columns k and k + 3."""
    rng, y = np.random.default_rng(seed), np.array(labels, np.int64)
    x = rng.integers(90, 130, (len(y), 6), np.uint8)
    x[np.arange(len(y)), y] += 60
    x[np.arange(len(y)), y + 3] += 60
    return Examples(x, y)


def make_site(labels: list[int], seed: int = 0) -> Site:
    examples = make_examples(labels, seed)
    return Site(0, 1, examples, examples, np.random.default_rng(seed))


def make_server(holds: list[list[bool]]) -> Server:
    nothing = np.zeros((3, 31))
    means = ClassMeans(nothing[:, 1:], np.zeros(3, np.int64))
    return Server(nothing, nothing, means, {k: Member(np.array(mine), 10) for k, mine in enumerate(holds)})


def test_a_client_tells_signs_of_what_stands_out_and_keeps_the_rest_for_later() -> None:
    site = make_site([0, 1] * 20)
    client = METHOD.start_client(TASK, site)
    assert METHOD.join(client, EMPTY, site) == Hello(np.array([True, True, False]), 40)
    sent = METHOD.tell_head(make_server([[True, True, False]]), 0)
    change = METHOD.improve(client, sent, site)
    assert change.holds is None
    assert {*np.unique(change.rows)} == {-1, 0, 1}
    told = linear.dequantise(change.rows, change.exponents)
    lesson = METHOD.prepare(client, site.train)
    trained = linear.train(np.zeros((2, 31)), lesson, steps=20, rate=170.0, decay=1e-4)
    assert np.array_equal(told + client.left_over, trained)
    again = METHOD.improve(client, sent, site)
    kept = linear.dequantise(again.rows, again.exponents) + client.left_over
    assert np.array_equal(kept, 2 * trained - told)


def test_rows_move_by_the_mean_of_those_who_hold_a_class_and_go_on_with_momentum() -> None:
    server = make_server([[True, True, False], [False, True, False]])
    ones = np.ones((2, 31), np.int8)
    METHOD.merge(server, {0: Change(None, ones, np.array([0, 1])), 1: Change(None, -ones[:1], np.array([0]))})
    assert server.head[:, 0].tolist() == [1.0, 0.5, 0.0]  # (2 - 1) / 2
    METHOD.merge(server, {0: Change(None, ones, np.array([0, 1]))})
    assert server.head[:, 0].tolist() == pytest.approx([2.6, 0.5 + 0.6 * 0.5 + 2, 0])


def test_a_client_with_other_classes_says_so_and_gets_their_rows() -> None:
    site = make_site([0, 1] * 20)
    client, server = METHOD.start_client(TASK, site), make_server([[True, True, False]])
    change = METHOD.improve(client, METHOD.tell_head(server, 0), make_site([1, 2] * 20))
    assert change.holds is not None
    assert change.holds.tolist() == [False, True, True]
    assert change.rows.shape == (2, 31)  # of the classes that were asked for
    METHOD.merge(server, {0: change})
    assert server.members[0].holds.tolist() == [False, True, True]
    assert METHOD.tell_head(server, 0).holds.tolist() == [False, True, True]


def test_a_change_that_is_no_sign_is_refused() -> None:
    head = Head(np.array([True, False, False]), np.zeros((1, 31), np.int8), np.zeros(1, np.int8))
    with pytest.raises(ValueError, match="rows reach from 2 to 2"):
        METHOD.check_change(head, Change(None, np.full((1, 31), 2), np.zeros(1, np.int8)))


@pytest.mark.parametrize("share", [True, False])
def test_clients_of_two_classes_learn_them(share: bool) -> None:
    clients = [
        (make_examples(labels * 15, seed), make_examples(labels * 20, seed + 10))
        for seed, labels in enumerate([[0, 1], [1, 2], [0, 2]])
    ]
    done = simulate(SeedHead(n_seed=60, share=share), clients, 5, task=Task((6,), 3, 3))
    assert done.rounds[-1].accuracy is not None
    assert done.rounds[-1].accuracy > 0.9
    assert (sum(row.upload_bytes + row.download_bytes for row in done.rounds) == 0) == (not share)


def test_a_private_head_is_the_one_that_plain_steps_find() -> None:
    site = make_site([0, 1, 2] * 10)
    alone = SeedHead(share=False, own_steps=30)
    client = alone.start_client(TASK, site)
    alone.learn_alone(client, EMPTY, site)
    lesson = alone.prepare(client, site.train)
    plain = linear.train(np.zeros(client.head.shape), lesson, steps=30, rate=170.0, decay=1e-4)
    assert np.allclose(client.head, plain, atol=1e-4)


def test_digits_are_learned_whose_pixels_reach_to_16(tmp_path: Path) -> None:
    given = ["method.name=seedhead", "method.n_seed=40", "rounds=5", "data.clients=5"]
    summary = run(read_config(None, given), tmp_path / "run")
    assert summary.accuracy_mean is not None
    assert summary.accuracy_mean > 0.7


def test_a_budget_turns_down_the_number_of_features() -> None:
    config = read_config(None, ["method.name=seedhead", "budget=400B"])
    kept = keep_budget(config, Task((28, 28), 10, 5), lambda line: None)
    assert 1 <= kept.method.n_seed < 480  # type: ignore[attr-defined]
    assert (most_bytes(kept.method, Task((28, 28), 10, 5)) or 0) <= 400


def test_means_are_told_once_and_make_a_head_with_the_clients_own_spread() -> None:
    clients = [
        (make_examples(labels * 15, seed), make_examples(labels * 20, seed + 10))
        for seed, labels in enumerate([[0, 1], [1, 2], [0, 2]])
    ]
    done = simulate(SeedHead(n_seed=60, one_shot=True), clients, 2, task=Task((6,), 3, 3))
    assert done.rounds[1].accuracy is not None
    assert done.rounds[1].accuracy > 0.9
    assert done.rounds[1].upload_bytes > 0
    assert (done.rounds[2].upload_bytes, done.rounds[2].download_bytes) == (0, 0)


def test_a_head_of_means_is_what_linear_algebra_says() -> None:
    site = make_site([0, 1, 2] * 10)
    client = METHOD.start_client(TASK, site)
    lesson = METHOD.prepare(client, site.train)
    means, counts = find_means(lesson)
    assert counts.tolist() == [10, 10, 10]
    around = lesson.features[:, 1:] - means[lesson.places]
    inverse = np.linalg.inv(around.T @ around / 30 + 0.5 * np.eye(30))
    head = fit_head(lesson, means, 0.5)
    assert np.allclose(head[:, 1:], means @ inverse, atol=1e-5)
    assert np.allclose(head[:, 0], -np.diag(means @ inverse @ means.T) / 2, atol=1e-5)


def test_means_that_do_not_fit_the_classes_are_refused() -> None:
    zeros = np.zeros((2, 30), np.int8)
    with pytest.raises(ValueError, match="1 counts, 2 rows of 2 classes"):
        check_means(EMPTY, Means(np.array([True, True, False]), np.ones(1, np.int64), zeros, np.zeros(2, np.int8)))
