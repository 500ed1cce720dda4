"""Clausepool with features made from a seed."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from laconic.algorithm import Examples, Site, Task
from laconic.algorithms.tsetlin.clause_pool import ClausePool
from laconic.algorithms.tsetlin.pool import Clauses, Offer
from laconic.algorithms.tsetlin.pooled_model import PooledModel
from laconic.conformance import HARD, TWO_EACH, configure, make_data, read_all
from laconic.models.seeds import SeededHeads
from laconic.runs.run import resume, run
from laconic.wire import EMPTY

TASK = Task((4, 4, 2), 3, 4, byte_layers=1)
SMALL = {"n_clauses": 10, "epochs": 5, "threshold": 10, "n_offered": 1, "min_examples": 2, "patch": 0}
METHOD = ClausePool(n_seed=12, own_seed=True, precision="signs", **SMALL)
SEEDED = ("method.n_seed=20", "method.own_seed=true", "method.precision=signs")


def make_site(labels: list[int], client: int = 0) -> Site:
    """Class k is bright in row k; a layer of bits, then one of bytes."""
    rng, y = np.random.default_rng(client), np.array(labels)
    bits = rng.random((len(y), 4, 4)) < 0.1
    bits[np.arange(len(y)), y] = True
    x = np.stack([bits, 200 * bits + rng.integers(0, 50, bits.shape)], axis=-1).astype(np.uint8)
    examples = Examples(x, y)
    return Site(client, 1, examples, examples, rng)


def make_client(site: Site) -> PooledModel:
    """Who has offered, was told of its own clauses, and has had a head."""
    server, client = METHOD.start_server(TASK, None), METHOD.start_client(TASK, site)  # type: ignore[arg-type]
    server.take_offer(0, METHOD.offer(client, EMPTY, site), round=1)
    news = server.find_news([0])[0]
    METHOD.take_clauses(client, news, site)
    server.mark_told(0, news)
    METHOD.merge(server, {0: METHOD.improve(client, METHOD.tell_head(server, 0), site)})
    METHOD.improve(client, METHOD.tell_head(server, 0), site)
    return client


def test_the_head_hears_the_bank_and_then_the_pools_clauses() -> None:
    server = METHOD.start_server(TASK, None)  # type: ignore[arg-type]
    assert server.head.shape == (3, 1 + 12)
    offer = Offer(np.eye(32, dtype=bool)[:2], np.zeros((2, 2), np.int8), np.array([True, True, False]), 10, 0)
    server.head = server.head + 1
    server.take_offer(0, offer, round=1)
    assert server.head.shape == (3, 1 + 12 + 2)
    assert server.head[0].tolist() == [1.0] * 13 + [0, 0]
    assert METHOD.tell_head(server, 0).rows.shape == (2, 13)  # nothing was told of the clauses yet
    site = make_site([0, 1] * 10)
    client = make_client(site)
    features = client.look_around(site.train.x)
    assert features.shape == (20, 1 + 12 + len(client.slots))
    assert client.head.shape[1] == features.shape[1]


def test_a_client_leaves_with_all_that_it_guesses_by() -> None:
    site = make_site([0, 1] * 10)
    client = make_client(site)
    model = METHOD.personal_model(client)
    assert isinstance(model, SeededHeads)
    assert np.array_equal(model.classify(site.train.x), client.guess(site.train.x, [client.blend])[0])
    fresh = METHOD.start_client(TASK, site)
    assert np.array_equal(METHOD.personal_model(fresh).classify(site.train.x), fresh.guess(site.train.x, [1.0])[0])


def test_clauses_see_bits_and_the_bank_sees_bytes() -> None:
    site = make_site([0, 1] * 10)
    client = make_client(site)
    other = site.train.x.copy()
    other[..., 1] = 0
    n_fixed = 13
    assert np.array_equal(client.look_around(other)[:, n_fixed:], client.look_around(site.train.x)[:, n_fixed:])
    assert not np.array_equal(client.look_around(other)[:, 1:n_fixed], client.look_around(site.train.x)[:, 1:n_fixed])


def test_with_a_mirrored_bank_both_seed_heads_hear_an_image_and_its_mirror_image_alike() -> None:
    site = make_site([0, 1] * 10)
    client = replace(METHOD, bank="mirrored").start_client(TASK, site)
    METHOD.offer(client, EMPTY, site)
    x, seeds = site.train.x, client.seeds
    assert seeds is not None
    logits, mirrored = seeds.logits(x), seeds.logits(x[:, :, ::-1].copy())
    assert logits is not None
    assert logits.any()
    assert np.array_equal(logits, mirrored)
    assert np.array_equal(seeds.read(x), seeds.read(x[:, :, ::-1].copy()))


def test_what_is_left_over_is_forgotten_of_slots_that_are_written_anew() -> None:
    client = make_client(make_site([0, 1] * 10))
    assert client.left_over is not None
    assert client.left_over.shape == (2, len(client.columns))
    again = Clauses(np.ones(len(client.clauses), np.bool_), client.clauses, client.scales)
    METHOD.take_clauses(client, again, make_site([0, 1]))
    assert client.left_over.shape == (2, 13)


@pytest.mark.parametrize("n_offered", [0, 1])
def test_every_fleet_and_a_resumed_run_end_the_same(n_offered: int, tmp_path: Path) -> None:
    data, given = make_data(tmp_path, TWO_EACH), (*HARD, *SEEDED, f"method.n_offered={n_offered}")
    run(configure("clausepool", "local", data, *given, "fleet.workers=1"), tmp_path / "one")
    run(configure("clausepool", "process", data, *given), tmp_path / "two")
    run(configure("clausepool", "local", data, *given, "rounds=2"), tmp_path / "three")
    resume(tmp_path / "three", rounds=3)
    assert read_all(tmp_path / "one") == read_all(tmp_path / "two") == read_all(tmp_path / "three")


def test_without_any_seed_a_pool_must_be_offered() -> None:
    with pytest.raises(ValueError, match=r"method.n_offered = 0 must be at least 1"):
        ClausePool(n_offered=0)
