import numpy as np
import pytest

from laconic.algorithm import Examples, Site, Task
from laconic.algorithms.networks.fed_select import FedSelect, Shared
from laconic.networks import Training
from laconic.wire import bound

TINY = Training(model="mlp", statistics="local", batch=4, epochs=2)
TASK = Task((2,), 2, 3)
SIZES = (512, 256, 512, 2)  # weights and biases in turn


def site(round: int = 1) -> Site:
    rng = np.random.default_rng(round)
    examples = Examples(rng.normal(size=(8, 2)).astype(np.float32), np.array([0, 1] * 4))
    return Site(0, round, examples, examples, rng)


def test_each_parameter_is_the_mean_of_those_who_share_it() -> None:
    method = FedSelect(training=TINY)
    server = method.start_server(TASK, None)  # type: ignore[arg-type]  # asks nothing
    server.vector = np.array([7, 7, 7, 7], np.float32)
    own = [np.array(mask, np.bool_) for mask in ([0, 0, 1, 1], [0, 1, 0, 1])]
    method.merge(server, zip(own, [np.array([1, 2]), np.array([3, 4])], strict=True))
    assert server.vector.tolist() == [2, 2, 4, 7]  # the last one is nobody's to share
    server.is_own = {5: own[0]}
    assert method.tell(server, 5).values.tolist() == [2, 2]
    assert method.tell(server, 6).values.tolist() == [2, 2, 4, 7]  # a newcomer gets all
    assert FedSelect(training=TINY, start_shared=0.5).tell(server, 6).values is None


def test_what_moves_most_becomes_the_clients_own_a_quarter_at_a_time_up_to_the_limit() -> None:
    method = FedSelect(training=TINY, every=1, limit=0.4)
    client = method.start_client(TASK, site())
    part = method.part(client.network.spec)
    moved = client.anchor.copy()
    moved[10:138] += 1  # of the first tensor; a quarter of 512 is 128
    method.choose(client, moved.copy(), part)
    assert np.flatnonzero(client.is_own[:512]).tolist() == list(range(10, 138))
    assert not client.is_own[512:768].any()  # biases
    assert np.count_nonzero(client.is_own[768:1280]) == 128
    moved[200:296] -= 2  # a quarter of the 384 left
    moved[10:138] += 9  # own already
    method.choose(client, moved, part)
    assert np.flatnonzero(client.is_own[:512]).tolist() == [*range(10, 138), *range(200, 296)]
    method.choose(client, moved + 1, part)
    assert np.count_nonzero(client.is_own[:512]) == 224  # 0.4375 is above the limit


def test_own_and_shared_are_trained_in_turn_and_decay_leaves_the_others_alone() -> None:
    method = FedSelect(training=Training(model="mlp", statistics="local", batch=4, decay=0.1))
    client = method.start_client(TASK, site())
    trains = np.arange(client.network.vector.size) % 3 == 0
    before = client.network.vector
    method.train_some(client.network, trains, site())
    after = client.network.vector
    assert np.array_equal(after[~trains], before[~trains])
    assert (after[trains] != before[trains]).mean() > 0.5


def test_which_are_own_travels_only_when_the_server_does_not_know() -> None:
    method = FedSelect(training=TINY, every=2)
    client = method.start_client(TASK, site())
    size = client.is_own.size
    first = method.train(client, Shared(None), site(1))
    assert first.is_own is None
    assert first.values.size == size
    method.train(client, Shared(np.zeros(size, np.float32)), site(2))
    third = method.train(client, Shared(np.zeros(size, np.float32)), site(3))  # two rounds are over
    assert third.is_own is not None
    assert third.values.size == size - 256
    lost = method.train(client, Shared(np.ones(size, np.float32)), site(4))  # the server missed it
    assert lost.is_own is not None
    known = method.train(client, Shared(lost.values), site(5))
    assert known.is_own is not None  # two more rounds, a new choice
    assert np.array_equal(known.is_own & third.is_own, third.is_own)
    assert method.train(client, Shared(known.values), site(6)).is_own is None


def test_received_values_take_the_place_of_shared_ones_alone() -> None:
    method = FedSelect(training=Training(model="mlp", statistics="local", rate=1e-12, epochs=1))
    client = method.start_client(TASK, site())
    client.is_own[:512] = True
    before = client.network.vector
    method.train(client, Shared(np.full(770, 5, np.float32)), site())
    assert np.allclose(client.network.vector[:512], before[:512])
    assert np.allclose(client.network.vector[512:], 5)


def test_budget_turns_down_what_is_shared_at_first() -> None:
    whole, half = (FedSelect(training=TINY, start_shared=share) for share in (1.0, 0.5))
    client = half.start_client(TASK, site())
    sent = half.train(client, Shared(None), site())
    assert [int(part.sum()) for part in np.split(client.is_own, np.cumsum(SIZES)[:-1])] == [256, 0, 256, 0]
    assert bound(sent) <= bound(half.costliest_round(TASK)[1])
    assert sum(map(bound, half.costliest_round(TASK))) < 0.65 * sum(map(bound, whole.costliest_round(TASK)))
    with pytest.raises(ValueError, match=r"method\.every"):
        FedSelect(every=0)
    with pytest.raises(ValueError, match=r"method\.training\.epochs"):
        FedSelect(training=Training(steps=3))
