"""Runs over Flower: submitted, watched, and submitted again when the SuperLink lost them."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

from laconic.deploy.control import UNREACHABLE, Control
from laconic.deploy.runs import list_finished, show_rows
from laconic.files import remove, write_atomically
from laconic.records import Deployed, Failure, Summary, read

if TYPE_CHECKING:
    from laconic.runs.run import Watch

POLL_SECONDS = 3.0
MOST_TRIALS = 4  # without a new round between them; more are no accident
OWN_ERRORS = ("OverBudget", "ValueError", "TypeError", "ConfigError")  # which another trial would only meet again


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
