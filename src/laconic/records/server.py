"""What the folder of a deployment's server holds, for those who write it and those who show it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from laconic.records.schema import Count

SERVER_SETTINGS = "server.toml"
BEGUN = "begun"  # a file for each run, called as it is, with the path of its folder


@dataclass(frozen=True)
class Node:
    client: Count
    node: str
    status: str  # online, asleep, offline or never seen
    sent: dict[str, list[Count]]  # bytes up and down since the server started, by what for


@dataclass(frozen=True)
class Nodes:
    """Who is there, as a server over MQTT knows it."""

    file: ClassVar[str] = "nodes.json"

    broker: bool  # whether the server is connected to it
    run: str  # that it carries out; "": none
    nodes: list[Node]


def list_begun(server: Path) -> list[Path]:
    """A file for each run, in the order in which they were begun."""
    files = [path for path in (server / BEGUN).glob("*") if path.suffix != ".draft"]
    return sorted(files, key=lambda path: path.stat().st_mtime)
