import numpy as np
import pytest

from laconic.algorithm import Examples, Site, Task
from laconic.algorithms.networks.critical import STAY, list_places
from laconic.algorithms.networks.fed_cac import FedCAC, Upload
from laconic.networks import Training, layout
from laconic.networks.selection import measure_overlap, pick_share
from laconic.wire import bound

TINY = Training(model="mlp", statistics="local", batch=4, epochs=1)
TASK = Task((2,), 2, 3)


def upload(mask: str, *values: float) -> Upload:
    return Upload(np.array([letter == "1" for letter in mask]), np.array(values, np.float32))


def test_others_are_the_mean_of_whole_networks_and_critical_ones_that_of_the_alike() -> None:
    method = FedCAC(alone_after=4)
    sent = {4: upload("1100", 4, 8, 1, 1), 6: upload("1100", 8, 16, 2, 2), 9: upload("0110", 0, 3, 6, 9)}
    overlap = measure_overlap([one.mask for one in sent.values()])
    starts = method.mix(sent, overlap, 4)
    assert starts[4].critical is not None
    assert starts[4].critical.tolist() == [6, 12]
    assert starts[4].values.tolist() == [3, 4]  # nobody's zeros in it
    assert starts[4].is_set is None
    assert (starts[9].critical, starts[9].n_stay) == (None, 2)
    assert starts[9].values.tolist() == [4, 4]
    after = method.mix(sent, overlap, 5)
    assert [(start.critical, start.n_stay) for start in after.values()] == [(None, 0)] * 3


def test_size_times_change_says_what_is_critical_and_batch_normalisation_takes_part() -> None:
    method = FedCAC(training=Training(model="resnet-small", statistics="local", batch=3, epochs=1))
    task = Task((8, 8), 2, 3, peak=255.0)
    rng = np.random.default_rng(0)
    examples = Examples(rng.integers(0, 255, (6, 8, 8)).astype(np.uint8), np.array([0, 1] * 3))
    client = method.start_client(task, site := Site(0, 2, examples, examples, rng))
    spec, before = client.network.spec, client.network.vector
    sent = method.train(client, STAY, site)
    n_trained = layout(spec).n_trained
    assert sent.values.size == n_trained
    scores = np.abs((sent.values - before[:n_trained]) * sent.values)
    assert np.array_equal(sent.mask, pick_share(scores, list_places(spec, method.part(spec)), 0.5))
    assert client.sent_round == 2
    assert np.array_equal(client.network.vector[:n_trained], sent.values)


def test_bound_covers_a_mix_with_nothing_and_with_half_of_it_critical() -> None:
    method, rng = FedCAC(training=TINY), np.random.default_rng(0)
    size = method.part(method.start_server(TASK, None).spec).size  # type: ignore[arg-type]  # asks nothing
    down, up = map(bound, method.costliest_round(TASK))
    for mask in (np.zeros(size, np.bool_), np.arange(size) < size // 2):
        sent = {client: Upload(mask, rng.random(size).astype(np.float32)) for client in range(3)}
        assert all(bound(start) <= down for start in method.mix(sent, measure_overlap([mask] * 3), 1).values())
        assert bound(sent[0]) <= up


def test_statistics_cannot_be_shared() -> None:
    with pytest.raises(ValueError, match="statistics"):
        FedCAC(training=Training())
