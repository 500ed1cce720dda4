"""Runs on real nodes as their folders tell of them, at the server and at each node, whatever carries the messages."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from laconic.deploy.allowed import check_allowed
from laconic.deploy.limits import check_longest
from laconic.deploy.settings import read_settings
from laconic.deploy.thresholds import choose_rule, find_task, is_fitted
from laconic.files import make_folder, write_atomically
from laconic.fleets import REMOTE
from laconic.records import BEGUN, Deployed, Partition, Summary, list_begun, read, read_rounds, write
from laconic.runs.budget import keep_budget
from laconic.runs.config import Config, write_config
from laconic.runs.record import describe_environment
from laconic.runs.typed_toml import ConfigError

if TYPE_CHECKING:
    from laconic.runs.run import Watch

MOST_FINISHED = 50  # runs that nodes are told of


def begin(server: Path, config: Config, folder: Path, say: Callable[[str], None]) -> None:
    """The folder of a new run, as laconic run makes it."""
    check_allowed(tomllib.loads(write_config(config))["method"])
    settings, partition = read_settings(server, "server"), read(server, Partition)
    config = choose_rule(config, is_nodes_own=partition.is_nodes_own)
    if settings.over in REMOTE:
        config = replace(config, fleet=replace(config.fleet, name=settings.over))
    rule = config.data.booleanize
    if settings.over == "flower" and is_fitted(rule):
        raise ConfigError("E102", f'data.booleanize = "{rule}" is fitted over MQTT alone (docs/deploy.md)')
    task = find_task(settings.task, rule)
    config.method.check_task(task)
    config = keep_budget(config, task, say)
    if settings.over == "mqtt":
        check_longest(config.method, task, settings.largest_bytes)
    make_folder(folder)
    write(folder, describe_environment())
    write(folder, partition)
    deployed = Deployed(draw_id(server), str(server.resolve()))
    write(folder, deployed)
    write_atomically(folder / "config.toml", write_config(config).encode())
    write_atomically(server / BEGUN / deployed.run, str(folder.resolve()).encode())


def draw_id(server: Path) -> str:
    """Of a new run. Messages tell a run by two bytes of it, so no other on this server begins as it does."""
    taken = {path.name[:4] for path in (server / BEGUN).glob("*")}
    while (run := uuid.uuid4().hex)[:4] in taken and len(taken) < 1 << 16:
        pass
    return run


def list_finished(server: Path) -> list[str]:
    """The last runs on this server that are done, so that nobody will ask a node for their states again."""
    done = [path.name for path in list_begun(server) if (Path(path.read_text("utf-8")) / Summary.file).exists()]
    return done[-MOST_FINISHED:]


def count_attempt(folder: Path) -> int:
    """How often the server has started this run, this time among them."""
    path = folder / "attempts.json"
    attempt = 1 + (json.loads(path.read_text("utf-8")) if path.exists() else 0)
    write_atomically(path, json.dumps(attempt).encode())
    return attempt


def show_rows(folder: Path, watch: Watch) -> Iterator[int]:
    """The last round shown, again and again."""
    last = -1
    while True:
        for row in read_rounds(folder):
            if row.round > last:
                watch.finished_round(row, 0.0)
                last = row.round
        yield last


def clear_finished(runs: Path, finished: Sequence[str]) -> None:
    """As a new run begins at a node: of those that the server calls finished the last one's states stay, no others."""
    done = [runs / name for name in finished if re.fullmatch(r"[0-9a-f]{8,64}", name) and (runs / name).is_dir()]
    for states in sorted(done, key=lambda states: states.stat().st_mtime)[:-1]:
        shutil.rmtree(states)
