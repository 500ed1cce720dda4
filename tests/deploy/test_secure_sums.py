"""Flower's SecAgg+, its own workflow and its own half of a client: can it carry the sums that our methods need?

The server gets the sum of what the clients have, and nothing of any one of them. Flower's messages, without its
processes; pytest -s prints the figures of docs/deploy.md.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from laconic.aggregate import average, average_weights
from laconic.algorithm import Algorithm, Examples, Task
from laconic.algorithms.tsetlin.fed_tm import FedTM, Order
from laconic.fleets.base import BaseFleet
from laconic.fleets.source import ClientData
from laconic.simulation import federate

pytest.importorskip("flwr", reason="flwr is not installed: pip install 'laconic-fl[flower]'")
pytest.importorskip("torch", reason="torch is not installed: pip install 'laconic-fl[nn]'")

from flwr.app import ConfigRecord, Context, Error, Message, RecordDict
from flwr.client.mod import secaggplus_mod
from flwr.common import Code, FitRes, Status, bytes_to_ndarray, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.common.secure_aggregation.secaggplus_constants import RECORD_KEY_CONFIGS, Key
from flwr.compat.common import recorddict_compat as compat
from flwr.server.client_manager import SimpleClientManager
from flwr.server.compat.grid_client_proxy import GridClientProxy
from flwr.server.compat.legacy_context import LegacyContext
from flwr.server.strategy import FedAvg as Strategy
from flwr.server.workflow import SecAggPlusWorkflow
from flwr.server.workflow.constant import MAIN_CONFIGS_RECORD, MAIN_PARAMS_RECORD

from laconic.algorithms.networks.fed_avg import FedAvg
from laconic.algorithms.networks.weights import NO_NEWS
from laconic.fleets.flower import weigh
from laconic.networks import Training
from loop_grid import FIRST_NODE, Loop, pretend_task

N_CLIENTS, N_CLASSES, N_SIDE = 6, 3, 8
Vectors = Sequence[NDArray]
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Sealed(NamedTuple):
    mean: NDArray  # by weight
    masked: list[NDArray]  # what the server got from each client
    n_bytes: int  # of Flower's messages, both ways
    n_letters: int


@pytest.fixture(autouse=True)
def _in_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_task(monkeypatch)
    np.random.seed(0)  # noqa: NPY002  # Flower's rounding has no stream of its own


def add_up(vectors: Vectors, weights: Sequence[int], clip: float, lost: int | None = None) -> Sealed:
    """A round of SecAgg+ over what the clients hold; lost: who falls silent once keys are shared."""
    homes = [Context(1, FIRST_NODE + k, {}, RecordDict(), {}) for k in range(len(vectors))]
    letters, masked = [], []

    def reply(letter: Message) -> Message:
        client = letter.metadata.dst_node_id - FIRST_NODE

        def fit(asked: Message, context: Context) -> Message:
            told = ndarrays_to_parameters([np.asarray(vectors[client], np.float64)])
            sent = FitRes(Status(Code.OK, ""), told, weights[client], {})
            return Message(compat.fitres_to_recorddict(sent, False), reply_to=asked)

        letters.append(weigh(letter))
        kept = ConfigRecord(dict(letter.content.config_records[RECORD_KEY_CONFIGS]))
        answer = secaggplus_mod(letter, homes[client], fit)
        letter.content.config_records[RECORD_KEY_CONFIGS] = kept  # it takes from what others get too
        letters.append(weigh(answer))
        return answer

    def lose(letter: Message, answer: Message) -> Message:
        found = answer.content.config_records[RECORD_KEY_CONFIGS].get(Key.MASKED_PARAMETERS)
        if found is not None and letter.metadata.dst_node_id - FIRST_NODE == lost:
            return Message(Error(5, "node unavailable"), reply_to=letter)
        if found is not None:
            masked.append(bytes_to_ndarray(found[-1]))
        return answer

    grid, clients = Loop(len(vectors), reply), SimpleClientManager()
    grid.meddle = lose
    for home in homes:
        clients.register(GridClientProxy(home.node_id, grid, 1))
    strategy = Strategy(min_fit_clients=len(vectors), min_available_clients=len(vectors))
    context = LegacyContext(Context(1, 1, {}, RecordDict(), {}), strategy=strategy, client_manager=clients)
    context.state.config_records[MAIN_CONFIGS_RECORD] = ConfigRecord({"current_round": 1})
    start = ndarrays_to_parameters([np.zeros(1)])
    context.state.array_records[MAIN_PARAMS_RECORD] = compat.parameters_to_arrayrecord(start, True)
    SecAggPlusWorkflow(1.0, 0.5, clipping_range=clip, max_weight=float(max(weights)))(grid, context)
    merged = compat.arrayrecord_to_parameters(context.state.array_records[MAIN_PARAMS_RECORD], True)
    (mean,) = parameters_to_ndarrays(merged)
    return Sealed(mean, masked, sum(letters), len(letters))


@contextmanager
def open_fleet(method: Algorithm) -> Iterator[BaseFleet]:
    rng, parts = np.random.default_rng(0), []
    patterns = rng.random((N_CLASSES, N_SIDE, N_SIDE)) < 0.5
    for client in range(N_CLIENTS):
        y = rng.integers(0, N_CLASSES, 20 + 5 * client)
        x = (patterns[y] ^ (rng.random((len(y), N_SIDE, N_SIDE)) < 0.1)).astype(np.uint8)
        parts.append((Examples(x, y), Examples(x[:0], y[:0]), Examples(x[:4], y[:4])))
    task = Task((N_SIDE, N_SIDE), N_CLASSES, N_CLIENTS, 1, 1.0)
    with federate(method, task, ClientData.of(parts), 0, workers=1) as federation:
        federation.fleet.begin(1)
        yield federation.fleet


@pytest.mark.parametrize("lost", [None, 2])
def test_fedavgs_mean_comes_out_of_masked_updates(lost: int | None) -> None:
    method = FedAvg(Training(model="mlp", rate=0.1))
    with open_fleet(method) as fleet:
        server = method.start_server(fleet.home.task, fleet)
        updates = fleet.ask(method.train, dict.fromkeys(fleet.sampled, NO_NEWS))
        plain_bytes = fleet.ledger.total().sent_bytes
    changes = [method.decode_change(update, server.spec, 0) for update in updates.values()]
    sizes, counted = [update.n_examples for update in updates.values()], [k for k in updates if k != lost]
    clip = float(2 ** np.ceil(np.log2(np.abs(changes).max())))
    sealed = add_up(changes, sizes, clip, lost)
    due = average([changes[k] for k in counted], [sizes[k] for k in counted])
    error = np.abs(sealed.mean - due).max()
    cost = f"{sealed.n_letters} letters of {sealed.n_bytes} B, {plain_bytes} B coded"
    print(f"fedavg, {due.size} values up to {np.abs(due).max():.2g}: error {error:.2g}; {cost}; lost: {lost}")
    assert error < 1e-5 * clip
    assert len(sealed.masked) == len(counted)


def test_fedtms_weights_come_out_exactly() -> None:
    method = FedTM(n_clauses=20, threshold=20, epochs=2)
    with open_fleet(method) as fleet:
        server = method.start_server(fleet.home.task, fleet)
        orders = dict.fromkeys(fleet.sampled, Order(np.zeros(N_CLASSES, np.bool_)))
        updates = list(fleet.ask(method.train, orders).values())
        plain_bytes = fleet.ledger.total().sent_bytes
    sizes = [int(update.per_class.sum()) for update in updates]
    vectors = [np.append(size * update.weights.ravel(), size) for size, update in zip(sizes, updates, strict=True)]
    sealed = add_up(vectors, [1] * N_CLIENTS, clip=2.0**21)  # half the steps: whole numbers stay whole
    sums = np.rint(N_CLIENTS * sealed.mean).astype(np.int64)
    assert sums.tolist() == np.sum(vectors, axis=0).tolist()
    mean = np.trunc(sums[:-1] / sums[-1]).reshape(server.weights.shape)
    every = np.ones(N_CLASSES, np.bool_)
    options = {"blend": method.blend, "is_new": every, "is_held": every}
    due = average_weights(server.weights, [update.weights for update in updates], sizes, **options)
    print(f"fedtm, {mean.size} weights: {sealed.n_letters} letters of {sealed.n_bytes} B, {plain_bytes} B coded")
    assert mean.tolist() == due.tolist()


def test_what_the_server_gets_of_a_client_tells_nothing_of_it() -> None:
    vectors = [np.full(500, value) for value in (-1.0, 0.0, 1.0)]
    once, again = (add_up(vectors, [1, 1, 1], clip=2.0).masked for _ in range(2))
    for mine, other in zip(once, again, strict=True):
        assert mine.shape == (500,)
        assert len(np.unique(mine)) > 490  # though the client has one number 500 times
        assert np.mean(mine == other) < 0.01
