"""What a run will cost, before it: two rounds in which training is only tried out, for a second or two in all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from laconic.algorithm import Site
from laconic.fleets.base import Conditions
from laconic.fleets.local import LocalFleet
from laconic.fleets.source import ClientData, Parts
from laconic.runs.budget import keep_budget, most_bytes
from laconic.runs.prepare import Prepared, prepare
from laconic.runs.run import find_device
from laconic.simulation import Federation, federate
from laconic.state import freeze
from laconic.trial import trying

if TYPE_CHECKING:
    from laconic.runs.config import Config

TRAIN_SECONDS = 0.7  # of training in each of the two rounds
MOST_TESTED = 200  # examples of one client, to see how long a prediction takes
N_TESTED = 3  # clients


def check(config: Config, say: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """Bytes of one regular round over all clients, memory of the clients' states, and seconds, roughly."""
    prepared = prepare(config)
    config = keep_budget(config, prepared.task, say)
    say("trying two rounds with next to no training")
    untested = [(train, val, val._replace(x=val.x[:0], y=val.y[:0])) for train, val, _ in list_clients(prepared)]
    conditions = Conditions(config.fleet.participation)
    played: list[tuple[float, Counter[str]]] = []  # seconds, and turns left out, of the start and the two rounds
    with (
        federate(
            config.method, prepared.task, ClientData.of(untested), config.seed,
            workers=config.fleet.n_workers, conditions=conditions, device=find_device(config),
        ) as federation,
        trying(TRAIN_SECONDS) as trial,
    ):  # fmt: skip
        for number in range(3):
            trial.seconds_left = TRAIN_SECONDS
            played.append((federation.play(number, is_evaluated=True).seconds, trial.take_skipped()))
        n_busy = min(config.fleet.n_workers, len(federation.fleet.sampled))
        up, down = (federation.fleet.ledger.total(direction=way) for way in ("up", "down"))
        test_seconds = time_tests(federation, config, prepared) / min(config.fleet.n_workers, prepared.task.n_clients)
    train, val, _ = prepared.source.at(0, 0)
    state = config.method.start_client(prepared.task, Site(0, 0, train, val, np.random.default_rng(0)))
    n_held = prepared.task.n_clients if config.fleet.state == "memory" else config.fleet.n_workers
    start_seconds, first_seconds, round_seconds = (spent + trial.foretell(left) / n_busy for spent, left in played)
    n_tests = -(-config.rounds // config.evaluate_every)
    return {
        "method": config.method_name,
        "clients": prepared.task.n_clients,
        "upload_bytes": up.sent_bytes,
        "download_bytes": down.sent_bytes,
        "paper_upload_bytes": up.paper_bits / 8,
        "paper_download_bytes": down.paper_bits / 8,
        "most_bytes_per_client": most_bytes(config.method, prepared.task),
        "memory_bytes": len(freeze({"state": state})) * n_held,
        "seconds_first_round": start_seconds + first_seconds + test_seconds,
        "seconds_per_round": round_seconds + test_seconds,
        "seconds_total": start_seconds + first_seconds + (config.rounds - 1) * round_seconds + n_tests * test_seconds,
    }


def list_clients(prepared: Prepared) -> list[Parts]:
    """As they are in the first round."""
    return [prepared.source.at(client, 0) for client in range(prepared.task.n_clients)]


def time_tests(federation: Federation, config: Config, prepared: Prepared) -> float:
    """Seconds of testing every client, one after the other; some of the examples of some clients are tried."""
    assert isinstance(federation.fleet, LocalFleet)
    place = {"test": 2, "validation": 1}[config.data.tested]
    tests = [parts[place] for parts in list_clients(prepared)]
    most = sorted(range(len(tests)), key=lambda client: -len(tests[client].y))[: N_TESTED + 1]
    seconds, n_tried = 0.0, 0
    for number, client in enumerate(most):
        state, x = federation.fleet.state(client), tests[client].x[:MOST_TESTED]
        started = perf_counter()
        federation.algorithm.predict(state, x)
        if number or len(most) == 1:  # the first is warming up
            seconds, n_tried = seconds + perf_counter() - started, n_tried + len(x)
    return seconds / max(n_tried, 1) * sum(len(test.y) for test in tests)
