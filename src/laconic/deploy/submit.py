"""Runs on a deployment: submitted, watched, and submitted again when the SuperLink lost them."""

from __future__ import annotations

import json
import shutil
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from laconic.deploy.control import UNREACHABLE, Control
from laconic.deploy.folders import read_settings
from laconic.files import write_atomically
from laconic.runs.budget import keep_budget
from laconic.runs.config import Config, write_config
from laconic.runs.record import command_line, describe_environment, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laconic.runs.run import Watch

POLL_SECONDS = 3.0
MOST_TRIALS = 4  # without a new round between them; more are no accident
OWN_ERRORS = ("OverBudget", "ValueError", "TypeError", "ConfigError")  # which another trial would only meet again


def begin(server: Path, config: Config, folder: Path, say: Callable[[str], None]) -> None:
    """The folder of a new run, as laconic run makes it."""
    task = read_settings(server, "server").task
    config = keep_budget(config, task, say)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "env.json", describe_environment(command_line()))
    shutil.copy(server / "partition.json", folder)
    write_json(folder / "deployed.json", {"run": uuid.uuid4().hex, "server": str(server.resolve())})
    write_atomically(folder / "config.toml", write_config(config).encode())


def carry_through(folder: Path, watch: Watch, wait_seconds: float) -> dict[str, Any]:
    """The summary at the end of the run, whatever becomes of the SuperLink and the nodes meanwhile."""
    deployed = json.loads((folder / "deployed.json").read_text("utf-8"))
    server, submitted = Path(deployed["server"]), folder / "submitted.json"
    rows, n_trials = show_rows(folder, watch), 0
    last = next(rows)
    while not (folder / "DONE.json").exists():
        run_id = json.loads(submitted.read_text("utf-8")) if submitted.exists() else None
        if run_id is None or has_ended(server, run_id, watch):
            if (folder / "DONE.json").exists():
                break
            n_trials += 1
            if n_trials > MOST_TRIALS:
                raise RuntimeError(
                    f"{MOST_TRIALS} trials brought no new round; see {folder}/events.log and {server}/flower.log"
                )
            (folder / "FAILED.json").unlink(missing_ok=True)
            run_id = submit(server, deployed["run"], folder, wait_seconds)
            write_atomically(submitted, json.dumps(run_id).encode())
            watch.said(f"submitted to the SuperLink as run {run_id}")
        time.sleep(POLL_SECONDS)
        before, last = last, next(rows)
        n_trials = n_trials if last == before else 0
        if (folder / "FAILED.json").exists():
            error = json.loads((folder / "FAILED.json").read_text("utf-8"))["error"]
            if error.partition(":")[0] in OWN_ERRORS:
                raise RuntimeError(f"the run failed: {error}")
    next(rows)
    done: dict[str, Any] = json.loads((folder / "DONE.json").read_text("utf-8"))
    return done


def submit(server: Path, run: str, folder: Path, wait_seconds: float) -> int:
    """Waits for the SuperLink, if need be."""
    experiment = (folder / "config.toml").read_text("utf-8")
    while True:
        try:
            with Control(server) as control:
                nodes = {node.client: node.node_id for node in control.register()}
                write_atomically(folder / "nodes.json", json.dumps(nodes).encode())
                settings = {"run": run, "folder": str(folder.resolve()), "server": str(server)}
                return control.start(settings | {"wait-seconds": float(wait_seconds), "experiment": experiment})
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


def show_rows(folder: Path, watch: Watch) -> Iterator[int]:
    """The last round shown, again and again."""
    last, path = -1, folder / "metrics.jsonl"
    while True:
        text = path.read_text("utf-8") if path.exists() else ""
        for line in text[: text.rfind("\n") + 1].splitlines():  # the last may be under way
            row = json.loads(line)
            if row["round"] > last:
                watch.finished_round(row, 0.0)
                last = row["round"]
        yield last
