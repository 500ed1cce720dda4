"""server.toml and node.toml: what a machine of a deployment knows."""

from __future__ import annotations

import json
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path

from laconic.algorithm import Task
from laconic.runs.typed_toml import ConfigError, toml_value

LARGEST_BYTES = 1 << 20
OF_A_SERVER = ("over", "address", "broker", "largest_bytes")
OF_A_NODE = ("over", "address", "client", "data", "notes", "methods", "models")


class Addressed:
    """What is reached at an address, HOST:PORT."""

    address: str

    @property
    def host(self) -> str:
        return self.address.rpartition(":")[0]

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])


@dataclass(frozen=True)
class Settings(Addressed):
    address: str  # where the broker, or Flower's server, is reached: HOST:PORT
    task: Task
    over: str = "flower"  # or mqtt; folders of before have no such line
    broker: str = ""  # of a server: folder of the broker that it starts; "": one that others run
    largest_bytes: int = LARGEST_BYTES  # of a server: longest message that the broker lets pass
    client: int = -1  # of a node
    data: str = ""  # of a node: file with x_train, y_train, x_val, y_val, x_test and y_test, read again when it changes
    notes: bool = False  # of a node: whether what methods note for the record (losses, say) may leave it
    # of a node: what it may be asked to run, * for any that has a name; a class as module:Class only if it stands here
    methods: tuple[str, ...] = ("*",)
    models: tuple[str, ...] = ("*",)


def name_node(client: int) -> str:
    """As its certificate, its topics and its folder have it."""
    return f"{client:03d}"


def check_address(address: str) -> None:
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise ConfigError("E102", f"--address {address}: write HOST:PORT, e.g. 192.168.0.10:8883")


def write_settings(path: Path, settings: Settings) -> None:
    values, task = asdict(settings), asdict(settings.task)
    names: tuple[str, ...] = OF_A_NODE if settings.client >= 0 else OF_A_SERVER
    if settings.over == "flower":
        names = tuple(name for name in names if name not in ("over", "broker", "largest_bytes"))
    lines = [f"{name} = {toml_value(values[name])}" for name in names]
    lines += ["", "[task]", *(f"{name} = {json.dumps(value)}" for name, value in task.items())]
    path.write_text("\n".join(lines) + "\n", "utf-8")


def read_settings(folder: Path, kind: str) -> Settings:
    path = folder / f"{kind}.toml"
    try:
        found = tomllib.loads(path.read_text("utf-8"))
        task = found.pop("task")
        found |= {name: _read_list(found[name]) for name in ("methods", "models") if name in found}
        settings = Settings(**found, task=Task(**task | {"input_shape": tuple(task["input_shape"])}))
    except FileNotFoundError:
        raise ConfigError("E103", f"{path} does not exist.  Make a deployment: laconic deploy init") from None
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise ConfigError("E103", f"{path} is no sound {kind}.toml: {error}") from None
    if not isinstance(settings.notes, bool):  # "false" would be true
        raise ConfigError("E103", f"{path}: notes = {settings.notes!r:.40}; true or false was expected")
    check_address(settings.address)
    return settings


def _read_list(found: object) -> tuple[str, ...]:
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise TypeError(f'{found!r:.60} came, a list of names was expected, e.g. ["fedtm", "clausepool"]')
    return tuple(found)
