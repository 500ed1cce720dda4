"""Runs on a deployment: submitted, watched, and submitted again when the SuperLink lost them."""

from __future__ import annotations

import json
import time
import tomllib
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from laconic.deploy.control import UNREACHABLE, Control
from laconic.deploy.folders import check_named, read_settings
from laconic.files import make_folder, remove, write_atomically
from laconic.records import Deployed, Failure, Partition, Summary, read, read_rounds, write
from laconic.runs.budget import keep_budget
from laconic.runs.config import Config, write_config
from laconic.runs.record import describe_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laconic.runs.run import Watch

BEGUN = "begun"  # in the server's folder: a file for each run, with the path of its folder
MOST_FINISHED = 50  # runs that nodes are told of
POLL_SECONDS = 3.0
MOST_TRIALS = 4  # without a new round between them; more are no accident
OWN_ERRORS = ("OverBudget", "ValueError", "TypeError", "ConfigError")  # which another trial would only meet again


def begin(server: Path, config: Config, folder: Path, say: Callable[[str], None]) -> None:
    """The folder of a new run, as laconic run makes it."""
    check_named(tomllib.loads(write_config(config))["method"])
    task = read_settings(server, "server").task
    config.method.check_task(task)
    config = keep_budget(config, task, say)
    make_folder(folder)
    write(folder, describe_environment())
    write(folder, read(server, Partition))
    deployed = Deployed(uuid.uuid4().hex, str(server.resolve()))
    write(folder, deployed)
    write_atomically(server / BEGUN / deployed.run, str(folder.resolve()).encode())
    write_atomically(folder / "config.toml", write_config(config).encode())


def carry_through(folder: Path, watch: Watch, wait_seconds: float) -> Summary:
    """The summary at the end of the run, whatever becomes of the SuperLink and the nodes meanwhile."""
    deployed = read(folder, Deployed)
    server, submitted = Path(deployed.server), folder / "submitted.json"
    rows, n_trials = show_rows(folder, watch), 0
    last = next(rows)
    while not (folder / Summary.file).exists():
        run_id = json.loads(submitted.read_text("utf-8")) if submitted.exists() else None
        if run_id is None or has_ended(server, run_id, watch):
            if (folder / Summary.file).exists():
                break
            n_trials += 1
            if n_trials > MOST_TRIALS:
                raise RuntimeError(
                    f"{MOST_TRIALS} trials brought no new round; see {folder}/events.log and {server}/flower.log"
                )
            remove(folder / Failure.file)
            run_id = submit(server, deployed.run, folder, wait_seconds)
            write_atomically(submitted, json.dumps(run_id).encode())
            watch.said(f"submitted to the SuperLink as run {run_id}")
        time.sleep(POLL_SECONDS)
        before, last = last, next(rows)
        n_trials = n_trials if last == before else 0
        if (folder / Failure.file).exists():
            error = read(folder, Failure).error
            if error.partition(":")[0] in OWN_ERRORS:
                raise RuntimeError(f"the run failed: {error}")
    next(rows)
    remove(folder / Failure.file)
    return read(folder, Summary)


def submit(server: Path, run: str, folder: Path, wait_seconds: float) -> int:
    """Waits for the SuperLink, if need be."""
    experiment = (folder / "config.toml").read_text("utf-8")
    while True:
        try:
            with Control(server) as control:
                nodes = {node.client: node.node_id for node in control.register()}
                write_atomically(folder / "nodes.json", json.dumps(nodes).encode())
                settings = {"run": run, "folder": str(folder.resolve()), "server": str(server)}
                settings |= {"experiment": experiment, "finished": " ".join(list_finished(server))}
                return control.start(settings | {"wait-seconds": float(wait_seconds)})
        except UNREACHABLE:
            time.sleep(POLL_SECONDS)


def list_finished(server: Path) -> list[str]:
    """The last runs on this server that are done, so that nobody will ask a node for their states again."""
    begun = sorted((server / BEGUN).glob("*"), key=lambda path: path.stat().st_mtime)
    done = [path.name for path in begun if (Path(path.read_text("utf-8")) / Summary.file).exists()]
    return done[-MOST_FINISHED:]


def has_ended(server: Path, run_id: int, watch: Watch) -> bool:
    try:
        with Control(server) as control:
            found = control.find_run(run_id)
    except UNREACHABLE:
        return False
    if found is None:
        watch.said(f"the SuperLink has forgotten run {run_id}")
    elif found.status.startswith("finished"):
        watch.said(f"run {run_id} is {found.status} {found.details}".rstrip())
    return found is None or found.status.startswith("finished")


def show_rows(folder: Path, watch: Watch) -> Iterator[int]:
    """The last round shown, again and again."""
    last = -1
    while True:
        for row in read_rounds(folder):
            if row.round > last:
                watch.finished_round(row, 0.0)
                last = row.round
        yield last
