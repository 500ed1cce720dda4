"""What a run will cost, before it: a trial of two rounds, with one or two local epochs where the method has epochs."""

from __future__ import annotations

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
from laconic.runs.prepare import Prepared, prepare
from laconic.runs.run import play
from laconic.state import freeze
from laconic.wire import Ledger

if TYPE_CHECKING:
    from laconic.runs.config import Config

ROUNDS = 2  # of a trial; in the first every client is new


def check(config: Config, say: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """Bytes of one regular round over all clients, memory of the clients' states, and seconds, roughly."""
    prepared = prepare(config)
    config = keep_budget(config, prepared.task, say)
    say("trying two rounds with next to no training")
    n_epochs = getattr(config.method, "epochs", 1)
    ledger, seconds = try_out(config, prepared, 1)
    if n_epochs > 1:
        per_epoch = max(0.0, try_out(config, prepared, 2)[1] - seconds)
        seconds += per_epoch * (n_epochs - 1)
    up, down = (ledger.total(direction=way) for way in ("up", "down"))
    train, val, _ = prepared.source.at(0, 0)
    state = config.method.start_client(prepared.task, Site(0, 0, train, val, np.random.default_rng(0)))
    n_held = prepared.task.n_clients if config.fleet.state == "memory" else config.fleet.n_workers
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


def try_out(config: Config, prepared: Prepared, epochs: int) -> tuple[Ledger, float]:
    """The last round's ledger and seconds; a method without epochs runs as it is."""
    has_epochs = hasattr(config.method, "epochs")
    method = replace(config.method, **{"epochs": epochs}) if has_epochs else config.method
    home = Home(method, prepared.task, prepared.source, config.seed)
    conditions = Conditions(config.fleet.participation)
    with closing(LocalFleet(home, conditions, lambda what, done, total: None, config.fleet.n_workers)) as fleet:
        server = None
        for number in range(ROUNDS + 1):
            started = perf_counter()
            fleet.begin(number)
            server, _ = play(method, prepared.task, server, fleet, is_evaluated=True)
        return fleet.ledger, perf_counter() - started
