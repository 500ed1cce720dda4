"""The server's own door to Flower's SuperLink: nodes are registered and runs are started through it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

import httpx
from flwr.cli.build import build_fab_from_disk
from flwr.common.serde import fab_to_proto, user_config_to_proto
from flwr.proto.control_pb2 import ListNodesRequest, ListRunsRequest, RegisterNodeRequest, StartRunRequest
from flwr.supercore.control import ControlHttpClient
from flwr.supercore.fab import Fab
from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor

from laconic import __version__
from laconic.deploy.keys import read_public_key
from laconic.deploy.settings import read_settings

PROJECT = f"""\
[project]
name = "laconic-app"
version = "{__version__.partition(".dev")[0]}"
description = "Laconic as a Flower app: the code is what is installed on each machine"
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "laconic"

[tool.flwr.app.components]
serverapp = "app:server_app"
clientapp = "app:client_app"

[tool.flwr.app.config]
run = ""
folder = ""
server = ""
wait-seconds = 600.0
experiment = ""
finished = ""
"""
UNREACHABLE = httpx.TransportError  # what a SuperLink that is down or starting raises


class NodeState(NamedTuple):
    client: int
    node_id: int
    status: str


class RunState(NamedTuple):
    status: str  # e.g. running, finished:completed, finished:failed
    details: str


class Control:
    def __init__(self, server: Path) -> None:
        self.server, settings = server, read_settings(server, "server")
        self._client = ControlHttpClient.from_server_address(
            server_address=f"127.0.0.1:{settings.port}",
            insecure=False,
            root_certificates=(server / "ca.crt").read_bytes(),
            interceptors=[RuntimeVersionHttpInterceptor(component_name="laconic")],
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def register(self) -> list[NodeState]:
        """Every node whose public key lies in server/nodes, registered now if it was not."""
        known = {node.public_key: node.node_id for node in self._list()}
        for path in sorted((self.server / "nodes").glob("*.pub")):
            key = read_public_key(path)
            if key not in known:
                reply = self._client.RegisterNode(RegisterNodeRequest(public_key=key, name=f"client-{path.stem}"))
                known[key] = reply.node_id
        return self.nodes()

    def nodes(self) -> list[NodeState]:
        clients = {read_public_key(path): int(path.stem) for path in (self.server / "nodes").glob("*.pub")}
        found = [NodeState(clients[n.public_key], n.node_id, n.status) for n in self._list() if n.public_key in clients]
        return sorted(found)

    def start(self, config: Mapping[str, object]) -> int:
        """The id of a new run of our app with these settings."""
        app = self.server / "app"
        app.mkdir(exist_ok=True)
        (app / "pyproject.toml").write_text(PROJECT, "utf-8")
        (app / "app.py").write_text("from laconic.deploy.app import client_app, server_app\n", "utf-8")
        bundle = build_fab_from_disk(app)
        fab = Fab(hashlib.sha256(bundle).hexdigest(), bundle, {})
        request = StartRunRequest(fab=fab_to_proto(fab), override_config=user_config_to_proto(config))
        return int(self._client.StartRun(request).run_id)

    def find_run(self, run_id: int) -> RunState | None:
        """None: the SuperLink knows of none."""
        try:
            run = self._client.ListRuns(ListRunsRequest(run_id=run_id)).run_dict[run_id]
        except (httpx.HTTPStatusError, KeyError):
            return None
        status = ":".join(part for part in (run.status.status, run.status.sub_status) if part)
        return RunState(status, run.status.details)

    def _list(self) -> list[Any]:
        return list(self._client.ListNodes(ListNodesRequest()).nodes_info)
