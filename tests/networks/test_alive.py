"""How many modules a worker keeps."""

import threading

import numpy as np

from laconic import networks as nn
from laconic.networks import vector


def count_alive() -> int:
    return len(vector._alive.__dict__.get("modules", ()))


def in_a_worker(work) -> None:
    """In a thread of its own, where no module is alive yet."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    worker = threading.Thread(target=run)
    worker.start()
    worker.join()
    if failures:
        raise failures[0]


def test_four_kinds_of_networks_and_a_common_one_stay_alive_from_client_to_client() -> None:
    specs = [nn.Spec(model, (8, 8), 4, n_features=20) for model in ("resnet-small", "mobile-small", "shuffle-small")]
    specs.append(nn.Spec("cnn-small", (8, 8), 4, n_features=20))

    def work() -> None:
        modules = [vector.live(spec) for spec in specs]
        common = vector.live(nn.Spec("shuffle-small", (8, 8), 4), "aux")
        for client in range(20):
            assert vector.live(specs[client % 4]) is modules[client % 4]
        assert vector.live(nn.Spec("shuffle-small", (8, 8), 4), "aux") is common
        assert count_alive() == 5

    in_a_worker(work)


def test_a_worker_keeps_no_more_modules_than_its_limit_and_networks_are_none_the_worse() -> None:
    def work() -> None:
        x = np.ones((2, 3), np.float32)
        first = nn.build(nn.Spec("mlp", (3,), 2), 0)
        before = nn.outputs(first, x)[1]
        for n_classes in range(3, 3 + 2 * vector.MAX_ALIVE):
            vector.live(nn.Spec("mlp", (3,), n_classes))
            assert count_alive() <= vector.MAX_ALIVE
        assert np.array_equal(nn.outputs(first, x)[1], before)

    in_a_worker(work)
