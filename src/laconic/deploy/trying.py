"""Everything on this machine, for trying out: a broker, a server, nodes and one run, which end by themselves."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from laconic.deploy.broker import broker_command
from laconic.deploy.folders import Plan, make_deployment, share_out
from laconic.deploy.keeper import POLL_SECONDS, Keeper, end_all
from laconic.deploy.settings import name_node
from laconic.deploy.station import SOCKETS
from laconic.fleets.frames import Sent
from laconic.records import Nodes
from laconic.runs.config import Config

RESTART_SECONDS, PARTING_SECONDS, PATIENCE_SECONDS = 2.0, 20.0, 120.0


def laconic_command(*words: object) -> list[str]:
    return [sys.executable, "-m", "laconic", *map(str, words)]


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def open_trial(folder: Path, config: Config, say: Callable[[str], None]) -> Iterator[Path]:
    """The server's folder, while it and its nodes run; their processes end with the block."""
    broker_command()  # first, for without it all is in vain
    task, shares, partition = share_out(config)
    make_deployment(folder, Plan(f"127.0.0.1:{find_free_port()}", task, partition, shares))
    server = folder.resolve() / "server"
    keepers = [
        Keeper(
            "server", server / "server.log", lambda: laconic_command("deploy", "server", server), say, RESTART_SECONDS
        )
    ]
    for client in range(task.n_clients):
        node = folder.resolve() / f"node-{name_node(client)}"
        command = laconic_command("deploy", "node", node)
        keepers.append(Keeper(node.name, node / "node.log", partial(list, command), say, RESTART_SECONDS))
    is_over = threading.Event()

    def look_after() -> None:
        while not is_over.wait(POLL_SECONDS):
            for keeper in keepers:
                keeper.look_after()

    thread = threading.Thread(target=look_after, daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_complete(server):
            if time.monotonic() > deadline:
                raise RuntimeError(f"after {PATIENCE_SECONDS:g} s not all nodes are there; see the logs in {folder}")
            time.sleep(POLL_SECONDS)
        yield server
    finally:
        is_over.set()
        thread.join()
        end_all(keepers[1:], PARTING_SECONDS)
        end_all(keepers[:1], PARTING_SECONDS)  # the server last, with its broker


def is_complete(server: Path) -> bool:
    path = server / Nodes.file
    nodes = json.loads(path.read_text("utf-8"))["nodes"] if path.exists() else [{"status": "never seen"}]
    return all(node["status"] == "online" for node in nodes)


def add_sockets(folder: Path) -> Sent:
    """Of all nodes that have ended: every byte of their connections."""
    total = Sent()
    for path in folder.glob(f"node-*/{SOCKETS}"):
        total = total.plus(Sent(**json.loads(path.read_text("utf-8"))))
    return total
