"""What Flower starts: the server's loop in its ServerApp, a client's step in its ClientApp."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from flwr.app import Context, Message
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from laconic.deploy.allowed import read_experiment
from laconic.deploy.examples import read_examples
from laconic.deploy.runs import clear_finished, count_attempt
from laconic.deploy.settings import read_settings
from laconic.deploy.thresholds import find_task, make_bits
from laconic.deploy.units import PRIVATE
from laconic.files import lock, write_atomically
from laconic.fleets.flower import FlowerFleet, Post, answer
from laconic.fleets.host import Home
from laconic.fleets.source import ClientData
from laconic.records import Letters, append_lines, log_event, to_line
from laconic.runs.checkpoint import verify
from laconic.runs.config import read_config
from laconic.runs.run import drive, find_conditions
from laconic.simulation import Federation, OnProgress

GATHER_SECONDS = 120.0  # for all nodes to be there; then the run begins with those that are
LOCK_SECONDS = 120.0  # for a ServerApp that lost its SuperLink to end

server_app, client_app = ServerApp(), ClientApp()


def serve(grid: Grid, context: Context) -> None:
    folder, server = (Path(str(context.run_config[name])) for name in ("folder", "server"))
    with lock(folder, LOCK_SECONDS):  # one that lost its SuperLink may still be about
        verify(folder)
        attempt = count_attempt(folder)
        config = read_config(folder / "config.toml")
        task = find_task(read_settings(server, "server").task, config.data.booleanize)
        nodes = {int(k): n for k, n in json.loads((folder / "nodes.json").read_text("utf-8")).items()}
        post = Post(
            grid,
            nodes,
            attempt,
            float(context.run_config["wait-seconds"]),
            lambda line: log_event(folder, line),
            lambda row: append_lines(folder / Letters.file, [to_line(Letters(**row))]),
        )
        gather(post)
        home = Home(config.method, task, ClientData(()), config.seed, folder / "checkpoints")

        @contextmanager
        def open_nodes(on_progress: OnProgress) -> Iterator[Federation]:
            with closing(FlowerFleet(home, find_conditions(config), on_progress, post)) as fleet:
                yield Federation(config.method, task, fleet)

        drive(config, folder, open_nodes, None)


def gather(post: Post) -> None:
    deadline, wanted = time.monotonic() + GATHER_SECONDS, set(post.nodes.values())
    while wanted - set(post.grid.get_node_ids()) and time.monotonic() < deadline:
        time.sleep(1)
    if missing := wanted - set(post.grid.get_node_ids()):
        post.say(f"{len(missing)} of {len(wanted)} nodes are not there; the run begins without them")


def step(letter: Message, context: Context) -> Message:
    os.umask(PRIVATE)  # this process does no more than this step
    folder = Path(str(context.node_config["folder"]))
    settings, run = read_settings(folder, "node"), str(context.run_config["run"])
    if not re.fullmatch(r"[0-9a-f]{8,64}", run):  # it names a folder
        raise ValueError(f"run is {run!r:.80}; hexadecimal digits were expected")
    states = folder / "runs" / run
    if not (states / "config.toml").exists():  # for the run's whole life, and for the node's owner to see
        clear_finished(folder / "runs", str(context.run_config.get("finished", "")).split())
        write_atomically(states / "config.toml", str(context.run_config["experiment"]).encode())
    config = read_experiment(states / "config.toml", settings.methods, settings.models)
    own = make_bits(read_examples(folder / settings.data, settings.task), config.data.booleanize, None)
    source = ClientData(((0, {settings.client: own}),))
    task = find_task(settings.task, config.data.booleanize)
    home = Home(config.method, task, source, config.seed, tested=config.data.tested, renews=config.renew_statistics)
    # a budget is kept by the method's own messages; there is no room for more
    return answer(letter, home, settings.client, states, sends_notes=settings.notes and not config.budget)


server_app.main()(serve)
client_app.train()(step)
client_app.evaluate()(step)
