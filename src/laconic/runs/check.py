"""What a run will cost, before it: a trial of two rounds, with a single local epoch where the method has epochs."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from laconic.algorithm import Site
from laconic.fleets.base import Conditions
from laconic.fleets.host import Home
from laconic.fleets.local import LocalFleet
from laconic.runs.budget import keep_budget, most_bytes
from laconic.runs.prepare import prepare
from laconic.state import freeze

if TYPE_CHECKING:
    from laconic.runs.config import Config

TRIAL_ROUNDS = 2  # in the first every client is new


def check(config: Config, say: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """Bytes of one regular round over all clients, memory of the clients' states, and seconds, roughly."""
    prepared = prepare(config)
    config = keep_budget(config, prepared.task, say)
    n_epochs = getattr(config.method, "epochs", 1)
    trial = replace(config.method, **{"epochs": 1}) if n_epochs > 1 else config.method
    home = Home(trial, prepared.task, prepared.source, config.seed)
    conditions = Conditions(config.fleet.participation)
    n_workers = config.fleet.workers or os.cpu_count() or 1
    with closing(LocalFleet(home, conditions, lambda what, done, total: None, n_workers)) as fleet:
        server = trial.start_server(prepared.task, fleet)
        for number in range(1, TRIAL_ROUNDS + 1):
            started = perf_counter()
            fleet.begin(number)
            trial.run_round(server, fleet)
            seconds = (perf_counter() - started) * n_epochs
        up, down = (fleet.ledger.total(direction=way) for way in ("up", "down"))
    train, val, _ = prepared.source.at(0, 0)
    state = trial.start_client(prepared.task, Site(0, 0, train, val, np.random.default_rng(0)))
    n_held = prepared.task.n_clients if config.fleet.state == "memory" else n_workers
    return {
        "method": config.method_name,
        "clients": prepared.task.n_clients,
        "upload_bytes": up.sent_bytes,
        "download_bytes": down.sent_bytes,
        "paper_upload_bytes": up.paper_bits / 8,
        "paper_download_bytes": down.paper_bits / 8,
        "most_bytes_per_client": most_bytes(config.method, prepared.task),
        "memory_bytes": len(freeze({"state": state})) * n_held,
        "seconds_per_round": seconds,
        "seconds_total": seconds * config.rounds,
    }
