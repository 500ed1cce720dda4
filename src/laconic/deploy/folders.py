"""The folders of a deployment: DIR/ca.* for its owner, DIR/broker, DIR/server, and DIR/node-000 ... for each node."""

from __future__ import annotations

import os
import secrets
import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from laconic.algorithm import Task
from laconic.deploy.broker import COMMAND, LOOPBACK, write_broker
from laconic.deploy.examples import write_examples
from laconic.deploy.keys import ISSUED, REVOKED, make_authority, make_certificate, make_node_key, revoke, sign_request
from laconic.deploy.settings import (
    LARGEST_BYTES,
    Addressed,
    Settings,
    check_address,
    name_node,
    read_settings,
    write_settings,
)
from laconic.deploy.units import PRIVATE, write_unit
from laconic.fleets.source import ClientData
from laconic.records import SERVER_SETTINGS, Holding, Partition, write
from laconic.runs.prepare import prepare
from laconic.runs.record import describe_partition
from laconic.runs.typed_toml import ConfigError

if TYPE_CHECKING:
    from laconic.runs.config import Config

FLOWER_RESTART_SECONDS = 15  # Flower holds a key for a minute after its node died, and refuses it until then
RESTART_SECONDS = 2


@dataclass(frozen=True)
class Plan(Addressed):
    """What a deployment is to be."""

    address: str
    task: Task
    partition: Partition  # what the records say of the examples
    shares: ClientData | None = None  # examples to hand out, else every node brings its own
    over: str = "mqtt"  # or flower
    broker_authority: Path | None = None  # certificate behind a broker that others run; None: a broker of our own
    largest_bytes: int = LARGEST_BYTES  # that a message may have


def make_deployment(folder: Path, plan: Plan) -> None:
    check_address(plan.address)
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError("E160", f"{folder} is not empty.  Choose another folder")
    before = os.umask(PRIVATE)
    try:
        (folder / "server").mkdir(parents=True)
        make_authority(folder)
        write(folder / "server", plan.partition)
        (_make_server if plan.over == "mqtt" else _make_flower_server)(folder, plan)
        for client in range(plan.task.n_clients):
            _make_node(folder, client, plan)
    finally:
        os.umask(before)


def _make_server(folder: Path, plan: Plan) -> None:
    server = folder / "server"
    make_certificate(folder, server, "server")
    if plan.broker_authority is not None:
        shutil.copy(plan.broker_authority, server / "ca.crt")
        own = ""
    else:
        broker, own = folder / "broker", "../broker"
        broker.mkdir()
        make_certificate(folder, broker, plan.host, [plan.host, *LOOPBACK])
        shutil.copy(folder / REVOKED, broker)
        write_broker(broker, plan.host, plan.port, plan.largest_bytes)
        command = COMMAND.format(mosquitto="mosquitto").replace("$", "$$")  # else systemd reads it
        write_unit(broker, f'/bin/sh -c "{command}"', RESTART_SECONDS)
    write_settings(server / SERVER_SETTINGS, Settings(plan.address, plan.task, "mqtt", own, plan.largest_bytes))
    write_unit(server, "laconic deploy server PLACE", RESTART_SECONDS, beside="broker" if own else "")


def _make_flower_server(folder: Path, plan: Plan) -> None:
    server = folder / "server"
    (server / "nodes").mkdir()
    make_certificate(folder, server, plan.host, [plan.host, *LOOPBACK], "server")
    write_settings(server / SERVER_SETTINGS, Settings(plan.address, plan.task, "flower"))
    write_unit(server, "laconic deploy server PLACE", FLOWER_RESTART_SECONDS)


def _make_node(folder: Path, client: int, plan: Plan) -> None:
    name = name_node(client)
    node = folder / f"node-{name}"
    node.mkdir()
    if plan.over == "mqtt":
        make_certificate(folder, node, name)
    else:
        make_node_key(node / "key", folder / "server" / "nodes" / f"{name}.pub")
    shutil.copy(plan.broker_authority or folder / "ca.crt", node / "ca.crt")
    write_settings(node / "node.toml", Settings(plan.address, plan.task, plan.over, client=client, data="data.npz"))
    restart_seconds = RESTART_SECONDS if plan.over == "mqtt" else FLOWER_RESTART_SECONDS
    write_unit(node, "laconic deploy node PLACE", restart_seconds)
    if plan.shares is not None:
        write_examples(node / "data.npz", plan.shares.at(client, 0))


def share_out(config: Config) -> tuple[Task, ClientData, Partition]:
    """The experiment's data set, cut as its partition says, for trying a deployment out."""
    prepared = prepare(config)
    if prepared.partition.drifted:
        raise ConfigError("E102", "data that drift cannot be handed out; set data.drift_round=0")
    partition = replace(describe_partition(prepared), data=asdict(config.data))
    return prepared.task, prepared.source, partition


def describe_unknown(task: Task) -> Partition:
    """Of examples that only the nodes know; two runs on them are of the same clients, two deployments never are."""
    classes = [str(label) for label in range(task.n_classes)]
    clients = [Holding(client) for client in range(task.n_clients)]
    return Partition(classes=classes, clients=clients, sha256=secrets.token_hex(32))


def revoke_nodes(folder: Path, names: list[str]) -> int:
    """Certificates taken back; a broker of our own hears of it through the list in its folder."""
    if not (folder / ISSUED).is_dir():
        raise ConfigError("E103", f"{folder} has no {ISSUED}; give the folder that laconic deploy init made")
    n_revoked = revoke(folder, names)
    if (folder / "broker").is_dir():
        shutil.copy(folder / REVOKED, folder / "broker")
    return n_revoked


def sign_node(folder: Path, request: Path) -> Path:
    """The certificate for a node that made its own key; its folder here holds no key then."""
    n_clients = read_settings(folder / "server", "server").task.n_clients
    name, certificate = sign_request(folder, request.read_bytes(), [*map(name_node, range(n_clients))])
    node = folder / f"node-{name}"
    (node / "cert.crt").write_bytes(certificate)
    (node / "cert.key").unlink(missing_ok=True)
    return node / "cert.crt"
