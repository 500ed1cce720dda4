from contextlib import AbstractContextManager

import numpy as np
import pytest

from laconic.algorithm import Examples, Site, Task
from laconic.algorithms.networks.fed_avg import FedAvg
from laconic.algorithms.networks.weights import NO_NEWS, Server, Shared, Update, Weights
from laconic.fleets.base import Conditions
from laconic.fleets.source import ClientData
from laconic.networks import Training, layout, start_vector
from laconic.networks.vector import Spec
from laconic.simulation import Federation, federate

TASK = Task((3,), 2, 4)
METHOD = FedAvg(Training(batch=4, rate=0.1))
SPEC = Spec("auto", (3,), 2)


def examples(n: int, seed: int = 0) -> Examples:
    rng = np.random.default_rng(seed)
    return Examples(rng.random((n, 3), np.float32), rng.integers(0, 2, n))


def gather(method: FedAvg, sizes: list[int], **conditions: float) -> AbstractContextManager[Federation]:
    source = ClientData.of([(examples(n, client), examples(0), examples(4)) for client, n in enumerate(sizes)])
    return federate(method, Task((3,), 2, len(sizes)), source, 0, workers=2, conditions=Conditions(**conditions))


def update(change: list[float], n_examples: int) -> Update:
    return Update(np.array(change, np.float32), None, None, n_examples)


def test_the_mean_change_by_examples_is_added() -> None:
    shared = Shared(np.array([1, 2], np.float32))
    METHOD.merge(Server(SPEC, shared), {0: update([4, 0], 1), 3: update([0, 8], 3)}, 1)
    assert shared.vector.tolist() == [2, 8]  # 1 + 4/4, 2 + 3*8/4
    assert shared.version == 1
    assert shared.held_by == {0: 0, 3: 0}  # what they trained, not yet what came of it


def test_the_network_goes_only_to_those_who_lack_it() -> None:
    shared = Shared(start_vector(SPEC, 0), version=2, held_by={1: 2, 2: 1})
    latest = Weights(*METHOD.pack_latest(Server(SPEC, shared)))
    offered = shared.offer([0, 1, 2], latest, NO_NEWS)
    assert [weights.exact is not None for weights in offered.values()] == [True, False, True]
    assert [*shared.offer([0, 1, 2], latest)] == [0, 2]
    fresh = Shared(start_vector(SPEC, 0)).offer([0], latest, NO_NEWS)
    assert fresh[0].exact is None  # the first network follows from a seed


def test_a_client_tells_how_training_changed_what_it_received() -> None:
    client = METHOD.start_client(TASK, Site(0, 0, examples(8), examples(0), np.random.default_rng(0)))
    received = np.full(layout(SPEC).size, 0.01, np.float32)
    site = Site(0, 1, examples(8), examples(0), np.random.default_rng(1))
    reply = METHOD.train(client, Weights(received, None, None), site)
    assert reply.n_examples == 8
    assert np.array_equal(client.shared, received)  # it keeps the network of all, not its own
    assert np.abs(reply.exact).max() > 0
    again = METHOD.start_client(TASK, site)
    site.rng = np.random.default_rng(1)
    assert METHOD.train(again, Weights(received, None, None), site) == reply


def test_after_delivery_all_clients_hold_one_array() -> None:
    with gather(METHOD, [4, 5, 6, 7], participation=0.5) as federation:
        for number in (0, 1):
            federation.play(number, is_evaluated=True)
        server, fleet = federation.server, federation.fleet
        states = fleet.states()
        assert len({id(state.shared) for state in states}) == 1
        assert np.array_equal(states[0].shared, server.shared.vector)
        assert fleet.ledger.total(step="install", direction="down").sent_bytes > 0
        before = len(fleet.ledger)
        METHOD.deliver(server, fleet)
        assert len(fleet.ledger) == before  # nobody lacks it any more


@pytest.mark.parametrize(("down", "up", "share"), [("fp16", "fp16", 0.5), ("int8", "int4", 0.4)])
def test_fewer_bits_take_fewer_bytes_and_lead_to_nearly_the_same_network(down: str, up: str, share: float) -> None:
    method = FedAvg(Training(batch=4, rate=0.1, down=down, up=up))  # type: ignore[arg-type]
    with gather(METHOD, [40, 40]) as exact, gather(method, [40, 40]) as rounded:
        for number in range(4):
            exact.play(number, is_evaluated=False)
            rounded.play(number, is_evaluated=False)
    for way in ("up", "down"):
        sent = rounded.fleet.ledger.total(direction=way).sent_bytes
        assert sent < share * 2 * 4 * layout(SPEC).size  # two clients, of floats; rows of 3 weights have a scale each
    moved = np.linalg.norm(exact.server.shared.vector - start_vector(SPEC, 0))
    assert np.linalg.norm(rounded.server.shared.vector - exact.server.shared.vector) < 0.15 * moved
