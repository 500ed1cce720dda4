from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laconic.data import PARTITIONS, Partition, Partitioning, from_arrays, load, partition
from laconic.data.tables import draw_log_dirichlet, round_table

DRAWN = [name for name in PARTITIONS if name not in ("natural", "dirichlet-sampled")]  # every example once
SKEWED = ["dirichlet", "dirichlet-equal", "shards", "windows"]


def make(n_train=3000, n_test=600, n_classes=10, seed=0):
    """A set of labels only; x tells each example from every other."""
    rng = np.random.default_rng(seed)
    y = [np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)]) for n in (n_train, n_test)]
    x = [np.arange(len(labels), dtype=np.float64)[:, None] for labels in y]
    return from_arrays("made", {"x_train": x[0], "y_train": y[0], "x_test": x[1], "y_test": y[1]})


def count(dataset, parts, round_number=0):
    """Tables [clients, classes] of training (validation included) and test examples."""
    rows = parts.counts(dataset, round_number)
    train = np.array([np.add(row["train"], row["val"]) for row in rows])
    return train, np.array([row["test"] for row in rows])


def assert_sound(dataset, parts, validation):
    for shares in (parts.shares, parts.drifted or ()):
        for pools, n in ((("train", "val"), len(dataset.y_train)), (("test",), len(dataset.y_test))):
            indices = [getattr(share, pool) for share in shares for pool in pools]
            joined = np.concatenate(indices) if indices else np.array([], int)
            assert len(np.unique(joined)) == len(joined)  # nothing is anybody's twice
            assert not len(joined) or (joined.min() >= 0 and joined.max() < n)
            assert all((np.diff(part) > 0).all() for part in indices)
        for share in shares:
            n_mine = len(share.train) + len(share.val)
            assert len(share.train) >= 1
            assert (len(share.val) >= 1) == (validation > 0 and n_mine >= 2)


@given(
    rule=st.sampled_from(DRAWN),
    clients=st.integers(1, 40),
    alpha=st.sampled_from([1e-300, 1e-6, 0.01, 0.1, 1.0, 100.0, 1e300]),
    labels=st.integers(1, 3),
    validation=st.sampled_from([0.0, 0.1, 0.5, 0.95]),
    n_classes=st.integers(1, 12),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=70)
def test_shares_are_apart_whole_and_large_enough(rule, clients, alpha, labels, validation, n_classes, seed):
    dataset = make(700, 90, n_classes, seed=seed % 7)
    chosen = Partitioning(
        rule, clients, alpha, min(labels, n_classes), validation=validation, min_samples=5, drift_round=3
    )
    parts = partition(dataset, chosen, seed)
    assert len(parts.shares) == clients
    assert_sound(dataset, parts, validation)
    for round_number in (0, 3):
        train, test = count(dataset, parts, round_number)
        assert train.sum(axis=1).min() >= 5
        is_used = train.sum(axis=0) > 0
        np.testing.assert_array_equal(train.sum(axis=0), np.where(is_used, np.bincount(dataset.y_train), 0))
        np.testing.assert_array_equal(test.sum(axis=0), np.where(is_used, np.bincount(dataset.y_test), 0))
        assert is_used.all() or rule == "windows"


@pytest.mark.parametrize("rule", DRAWN)
def test_same_seed_same_partition_other_seed_another(rule):
    dataset = make()
    chosen = Partitioning(rule)
    assert partition(dataset, chosen, 3).sha256 == partition(dataset, chosen, 3).sha256
    assert partition(dataset, chosen, 3).sha256 != partition(dataset, chosen, 4).sha256


def test_partition_of_a_seed_stays_the_same_from_version_to_version():
    """A changed sum means that published runs cannot be repeated."""
    assert partition(load("digits"), Partitioning(), 0).sha256[:16] == "9f5b979a968df2b6"


@pytest.mark.parametrize("rule", SKEWED)
def test_train_and_test_of_a_client_have_the_same_mix(rule):
    dataset = make(20_000, 5_000)
    train, test = count(dataset, partition(dataset, Partitioning(rule, clients=20), 0))
    mixes = [table / table.sum(axis=1, keepdims=True) for table in (train, test)]
    is_large = test.sum(axis=1) >= 50  # one example more or less is much to a small client
    assert is_large.sum() >= 10
    apart = np.abs(mixes[0] - mixes[1]).sum(axis=1) / 2
    assert apart[is_large].max() < 0.04
    others = np.roll(mixes[1], 1, axis=0)
    assert np.abs(mixes[0] - others).sum(axis=1).mean() / 2 > 0.5  # and not because all are alike


@pytest.mark.parametrize("rule", ["dirichlet", "dirichlet-equal"])
def test_small_alpha_makes_clients_differ_more(rule):
    dataset = make(20_000, 5_000)

    def labels_in_effect(alpha):
        train, _ = count(dataset, partition(dataset, Partitioning(rule, clients=20, alpha=alpha), 0))
        shares = train / train.sum(axis=1, keepdims=True)
        return (1 / (shares**2).sum(axis=1)).mean()

    spread = [labels_in_effect(alpha) for alpha in (0.01, 0.1, 1, 10, 10_000)]
    assert spread == sorted(spread)
    assert spread[0] < 2
    assert spread[-1] > 9.5


@pytest.mark.parametrize("alpha", [0.05, 1.0, 30.0])
def test_dirichlet_draws_have_its_mean_and_variance(alpha):
    shares = np.exp(draw_log_dirichlet(5, 40_000, alpha, np.random.default_rng(0)))
    np.testing.assert_allclose(shares.sum(axis=0), 1)
    np.testing.assert_allclose(shares.mean(axis=1), 0.2, atol=0.01)
    np.testing.assert_allclose(shares.var(axis=1), 0.2 * 0.8 / (5 * alpha + 1), rtol=0.05)


@pytest.mark.parametrize("rule", ["iid", "dirichlet-equal", "shards"])
@pytest.mark.parametrize(("clients", "alpha"), [(7, 0.01), (100, 0.1), (33, 100.0)])
def test_equal_rules_give_equal_sizes(rule, clients, alpha):
    dataset = make(3001, 600)
    train, _ = count(dataset, partition(dataset, Partitioning(rule, clients, alpha), 0))
    assert np.ptp(train.sum(axis=1)) <= (2 if rule == "shards" else 1)


def test_equal_dirichlet_stays_skewed_where_most_shares_underflow():
    dataset = make(60_000, 10_000)
    train, test = count(dataset, partition(dataset, Partitioning("dirichlet-equal", clients=100, alpha=0.01), 0))
    assert train.sum(axis=1).tolist() == [600] * 100
    assert (train.max(axis=1) / 600).mean() > 0.8
    assert test.sum(axis=1).min() >= 90


def test_iid_clients_have_all_labels_alike():
    train, test = count(make(), partition(make(), Partitioning("iid", clients=20), 0))
    assert np.ptp(train, axis=0).max() <= 1
    assert np.ptp(test, axis=0).max() <= 1


def test_quantity_clients_differ_in_size_alone():
    dataset = make(20_000, 5_000)
    train, _ = count(dataset, partition(dataset, Partitioning("quantity", alpha=0.5), 0))
    sizes = train.sum(axis=1)
    assert sizes.max() > 5 * np.median(sizes)
    large = train[sizes > 500]
    np.testing.assert_allclose(large / large.sum(axis=1, keepdims=True), 0.1, atol=0.05)


def test_windows_are_consecutive_labels_shared_evenly():
    dataset = make(1000, 200, n_classes=5)
    train, test = count(dataset, partition(dataset, Partitioning("windows", clients=5, labels=2), 0))
    expected = [{0, 1}, {2, 3}, {4, 0}, {1, 2}, {3, 4}]
    assert [set(np.flatnonzero(row)) for row in train] == expected
    assert [set(np.flatnonzero(row)) for row in test] == expected
    for column in train.T:
        assert np.ptp(column[column > 0]) <= 1


def test_shards_give_about_so_many_labels():
    dataset = make(6000, 1000)
    train, _ = count(dataset, partition(dataset, Partitioning("shards", clients=30, labels=2), 0))
    assert 1 <= (train > 30).sum(axis=1).mean() <= 2.5


@pytest.mark.parametrize("seed", range(51))
def test_digits_work_for_ten_clients_whatever_the_seed(seed):
    dataset = load_digits_once()
    parts = partition(dataset, Partitioning(), seed)
    assert_sound(dataset, parts, 0.1)
    train, test = count(dataset, parts)
    assert (train.sum(), test.sum()) == (1352, 445)
    assert train.sum(axis=1).min() >= 10
    assert test.sum(axis=1).min() >= 1


def load_digits_once(cache=[]):  # noqa: B006  # half a second each
    if not cache:
        cache.append(load("digits"))
    return cache[0]


@pytest.mark.parametrize("rule", DRAWN)
def test_five_hundred_clients_all_train_and_are_tested(rule):
    dataset = make(60_000, 10_000)
    parts = partition(dataset, Partitioning(rule, clients=500), 0)
    assert_sound(dataset, parts, 0.1)
    train, test = count(dataset, parts)
    assert train.sum(axis=1).min() >= 10
    assert test.sum(axis=1).min() >= 1
    assert (train.sum(), test.sum()) == (60_000, 10_000)


def test_starved_clients_get_what_they_wish_for():
    """Over 100 clients alpha 0.01 leaves most without any; they are fed few labels, not a mix."""
    dataset = make(3000, 600)
    train, _ = count(dataset, partition(dataset, Partitioning("dirichlet", clients=100, alpha=0.01), 0))
    fed = train[train.sum(axis=1) == 10]
    assert len(fed) > 50
    assert (fed > 0).sum(axis=1).mean() < 2


@pytest.mark.parametrize("rule", DRAWN)
def test_as_many_clients_as_examples_is_the_limit(rule):
    dataset = make(30, 12, n_classes=3)
    chosen = Partitioning(rule, clients=30, labels=1, min_samples=1)
    if rule != "windows":  # labels are not equally frequent, so windows of one label cannot come out even
        parts = partition(dataset, chosen, 0)
        assert [len(share.train) for share in parts.shares] == [1] * 30
        assert sum(len(share.test) for share in parts.shares) == 12  # most have none
    with pytest.raises(
        ValueError, match=r"31 clients with >= 1 training examples need 31; made has 30\. Use data\.clients <= 30"
    ):
        partition(dataset, replace(chosen, clients=31), 0)


def test_too_large_a_minimum_says_what_would_do():
    with pytest.raises(
        ValueError, match=r"need 2000; made has 1000\. Use data\.clients <= 100 or data\.min_samples <= 5\."
    ):
        partition(make(1000, 100), Partitioning(clients=200), 0)
    rare = np.repeat([0, 1], [995, 5])
    x = np.ones((1000, 1))
    dataset = from_arrays("rare", {"x_train": x, "y_train": rare, "x_test": x, "y_test": rare})
    words = r"windows over 2 clients leaves 1 clients with < 10 training examples \(smallest: 5\)"
    with pytest.raises(ValueError, match=words):
        partition(dataset, Partitioning("windows", clients=2, labels=1), 0)


@given(counts=st.lists(st.integers(1, 40), min_size=1, max_size=8), share=st.floats(0.01, 0.6), seed=st.integers(0, 99))
def test_validation_takes_the_last_of_a_label_only_if_it_must(counts, share, seed):
    y = np.repeat(np.arange(len(counts)), counts)
    x = np.ones((len(y), 1))
    dataset = from_arrays("made", {"x_train": x, "y_train": y, "x_test": x, "y_test": y})
    chosen = Partitioning("iid", clients=1, validation=share, min_samples=1)
    (row,) = partition(dataset, chosen, seed).counts(dataset)
    kept, aside = np.array(row["train"]), np.array(row["val"])
    n_aside = min(max(1, round(share * len(y))), len(y) - 1)
    assert aside.sum() == n_aside
    assert np.count_nonzero(kept == 0) == max(0, n_aside - sum(n - 1 for n in counts))
    if min(counts) >= 4:
        np.testing.assert_allclose(aside, share * np.array(counts), atol=1.5)  # label by label


@pytest.mark.parametrize("rule", DRAWN)
def test_drift_changes_shares_only_from_its_round(rule):
    dataset = make()
    calm, drifting = (partition(dataset, Partitioning(rule, drift_round=k), 0) for k in (0, 5))
    assert calm.drifted is None
    assert calm.at(100) is calm.shares
    for mine, same in zip(calm.shares, drifting.at(4), strict=True):
        np.testing.assert_array_equal(mine.train, same.train)
    assert drifting.at(5) is drifting.at(6) is drifting.drifted
    before, after = (count(dataset, drifting, k)[0] for k in (4, 5))
    if rule in SKEWED:
        assert np.abs(before - after).sum() > 0.5 * before.sum()


def grouped(sizes_train, sizes_test):
    """Speakers "s0", "s1", ... with so many examples."""
    speakers = [np.repeat([f"s{i}" for i in range(len(sizes))], sizes) for sizes in (sizes_train, sizes_test)]
    rng = np.random.default_rng(0)
    order = [rng.permutation(len(s)) for s in speakers]
    arrays = {}
    for split, mine, mixed in zip(("train", "test"), speakers, order, strict=True):
        arrays |= {f"x_{split}": np.ones((len(mine), 1)), f"y_{split}": np.arange(len(mine)) % 2}
        arrays[f"speaker_{split}"] = mine[mixed]
    return from_arrays("spoken", arrays)


def test_natural_clients_are_the_groups():
    dataset = grouped([30, 9, 20, 50, 10], [5, 5, 0, 7, 3, 4])  # s1 has too few, s2 is not tested, s5 not trained
    parts = partition(dataset, Partitioning("natural", group="speaker", min_samples=10), 0)
    assert_sound(dataset, parts, 0.1)
    in_train, in_test = dataset.groups["speaker"]
    for name, n_test, share in zip(("s0", "s2", "s3", "s4"), (5, 0, 7, 3), parts.shares, strict=True):
        mine = np.sort(np.concatenate([share.train, share.val]))
        np.testing.assert_array_equal(mine, np.flatnonzero(in_train == name))
        np.testing.assert_array_equal(share.test, np.flatnonzero(in_test == name))
        assert len(share.test) == n_test
    assert parts.counts(dataset)[1]["test"] == [0, 0]
    two = partition(dataset, Partitioning("natural", clients=2, group="speaker"), 0)
    assert [len(share.train) + len(share.val) for share in two.shares] == [30, 50]


def test_natural_errors_say_what_there_is():
    dataset = grouped([30, 9, 20], [1, 1, 1])
    with pytest.raises(ValueError, match=r"data\.group = 'room' is no column of spoken; there are: speaker"):
        partition(dataset, Partitioning("natural", group="room"), 0)
    with pytest.raises(
        ValueError, match=r"3 values of speaker, 2 of them with >= 10 .*\(largest: 30\)\. Use clients <= 2"
    ):
        partition(dataset, Partitioning("natural", clients=3, group="speaker", min_samples=10), 0)
    apart = grouped([30, 20], [0, 0, 9])
    with pytest.raises(ValueError, match=r'Use data\.name = "spoken@speaker"'):
        partition(apart, Partitioning("natural", clients=0, group="speaker"), 0)


@pytest.mark.parametrize("drift_round", [0, 4])
def test_saved_partition_loads_the_same(tmp_path, drift_round):
    parts = partition(make(), Partitioning(drift_round=drift_round), 0)
    for name in ("first.npz", "second.npz"):
        parts.save(tmp_path / name)
    loaded = Partition.load(tmp_path / "first.npz")
    assert loaded.sha256 == parts.sha256
    assert (loaded.drift_round, loaded.drifted is None) == (drift_round, drift_round == 0)
    np.testing.assert_array_equal(loaded.at(9)[3].val, parts.at(9)[3].val)
    assert (tmp_path / "first.npz").read_bytes() == (tmp_path / "second.npz").read_bytes()


def test_what_is_no_partition_is_refused(tmp_path):
    path = tmp_path / "partition.npz"
    good = {"indices": np.arange(6), "sizes": np.array([[[3, 1, 2]]]), "drift_round": np.array(0)}
    bad = [
        {"sizes": np.array([[[3, 1, 1]]])},
        {"sizes": np.array([3, 1, 2])},
        {"sizes": np.array([[[7, 1, -2]]])},
        {"drift_round": np.array(4)},
        {"drift_round": np.array([4, 5])},
        {"indices": np.array([{}] * 6, dtype=object)},
        {"indices": np.arange(6.0)},
        {"sizes": np.zeros((0, 0, 3), int), "indices": np.arange(0)},
    ]
    np.savez(path, **good)
    assert Partition.load(path).shares[0].test.tolist() == [4, 5]
    for change in bad:
        np.savez(path, **(good | change))
        with pytest.raises(ValueError, match=r"partition\.npz is no partition"):
            Partition.load(path)
    path.write_bytes(b"PK nothing")
    with pytest.raises(ValueError, match="is no partition"):
        Partition.load(path)
    with pytest.raises(ValueError, match="is no partition"):
        Partition.load(tmp_path / "absent.npz")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"partition": "dirichlett"}, "data.partition = 'dirichlett' is unknown. Did you mean dirichlet?"),
        ({"clients": 0}, "data.clients = 0 must be >= 1"),
        ({"partition": "natural", "group": "speaker", "clients": -2}, "data.clients = -2 must be"),
        ({"alpha": -0.1}, "data.alpha = -0.1 must be > 0. Small = more different clients (0.1 typical)"),
        ({"alpha": float("nan")}, "data.alpha = nan must be > 0"),
        ({"labels": 0}, "data.labels = 0 must be >= 1"),
        ({"partition": "natural"}, "data.group is empty; natural needs a column"),
        ({"validation": 1.0}, "data.validation = 1.0 must be from 0 to below 1"),
        ({"min_samples": 0}, "data.min_samples = 0 must be >= 1"),
        ({"drift_round": -1}, "data.drift_round = -1 must be 0 (never)"),
        ({"partition": "natural", "group": "speaker", "drift_round": 2}, "and 0 with natural"),
    ],
)
def test_settings_are_refused_by_key(wrong, words):
    with pytest.raises(ValueError, match="data") as caught:
        Partitioning(**wrong)
    assert words in str(caught.value)


def test_too_many_labels_and_negative_seeds_are_refused():
    with pytest.raises(ValueError, match=r"data\.labels = 11 must be <= 10, the number of classes"):
        partition(make(), Partitioning("windows", labels=11), 0)
    with pytest.raises(
        ValueError, match=r"data\.labels = 301 makes 3010 shards of 3000 examples\. Use data\.labels <= 300"
    ):
        partition(make(), Partitioning("shards", labels=301), 0)
    with pytest.raises(ValueError, match="seed = -1 must be >= 0"):
        partition(make(), Partitioning(), -1)


@given(
    weights=st.lists(st.lists(st.floats(0.001, 1), min_size=3, max_size=3), min_size=1, max_size=9),
    columns=st.lists(st.integers(0, 30), min_size=3, max_size=3),
)
def test_rounding_keeps_rows_and_columns(weights, columns):
    wish, columns = np.log(weights), np.array(columns)
    rows = np.full(len(weights), columns.sum() // len(weights)) + (
        np.arange(len(weights)) < columns.sum() % len(weights)
    )
    exact = np.minimum(np.outer(rows, columns) / max(columns.sum(), 1), 5)  # short of the totals, as after cut rows
    table = round_table(exact, wish, rows, columns)
    np.testing.assert_array_equal(table.sum(axis=1), rows)
    np.testing.assert_array_equal(table.sum(axis=0), columns)
    assert (table >= np.floor(exact)).all()


def test_sampled_clients_have_as_many_each_by_one_mix_of_labels_and_may_share_examples():
    dataset = make(8000, 4000)
    chosen = Partitioning("dirichlet-sampled", 20, 0.3, validation=0.1, train_samples=300, test_samples=200)
    parts = partition(dataset, chosen, 0)
    train, test = count(dataset, parts)
    assert (train.sum(axis=1) == 300).all()
    assert (test.sum(axis=1) == 200).all()
    assert np.abs(train / 300 - test / 200).max() < 0.15  # two draws from the same mix
    assert ((train / 300) > 0.5).any(axis=1).sum() >= 5  # which differ
    for share in parts.shares:
        mine = np.concatenate([share.train, share.val])
        assert len(np.unique(mine)) == 300
        assert len(share.val) == 30
    everyone = np.concatenate([share.train for share in parts.shares])
    assert len(np.unique(everyone)) < len(everyone)
    assert partition(dataset, chosen, 0).sha256 == parts.sha256 != partition(dataset, chosen, 1).sha256


def test_sampling_more_than_a_label_has_is_refused_with_how_many_it_has():
    with pytest.raises(ValueError, match=r"data\.test_samples <= [0-9]+"):
        partition(make(), Partitioning("dirichlet-sampled", 3, 0.1, train_samples=100, test_samples=400), 0)
    with pytest.raises(ValueError, match=r"train_samples"):
        Partitioning("dirichlet-sampled", train_samples=1)
