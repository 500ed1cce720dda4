"""The folders of a deployment: DIR/ca.* for its owner, DIR/server for the server, DIR/node-000 ... for each node."""

from __future__ import annotations

import io
import json
import os
import re
import secrets
import shutil
import sys
import tomllib
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from laconic.algorithm import Examples, Task
from laconic.deploy.keys import make_authority, make_certificate, make_node_key
from laconic.fleets.source import ClientData
from laconic.records import Holding, Mismatch, Partition, write
from laconic.runs.prepare import prepare
from laconic.runs.record import describe_partition
from laconic.runs.typed_toml import ConfigError, toml_value

if TYPE_CHECKING:
    from laconic.runs.config import Config

PARTS = ("train", "val", "test")
INSTALLED_IN = "/opt/laconic"  # where the units look for a folder
REMEDY = "write it anew (docs/deploy.md)"
PRIVATE = 0o077  # as a umask: folders 0700, files 0600
RESTART_SECONDS = 15  # Flower holds a key for a minute after its node died, and refuses it until then


@dataclass(frozen=True)
class Settings:
    """server.toml and node.toml."""

    address: str  # of the server, HOST:PORT
    task: Task
    client: int = -1  # of a node
    data: str = ""  # of a node: file with x_train, y_train, x_val, y_val, x_test and y_test, read anew in each step
    notes: bool = False  # of a node: whether what methods note for the record (losses, say) may leave it

    @property
    def host(self) -> str:
        return self.address.rpartition(":")[0]

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])


def make_deployment(folder: Path, address: str, task: Task, shares: ClientData | None, partition: Partition) -> None:
    """shares: examples to hand out, else every node brings its own; partition: what the records say of them."""
    check_address(address)
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError("E160", f"{folder} is not empty.  Choose another folder")
    before = os.umask(PRIVATE)
    try:
        _make_folders(folder, address, task, shares, partition)
    finally:
        os.umask(before)


def _make_folders(folder: Path, address: str, task: Task, shares: ClientData | None, partition: Partition) -> None:
    server = folder / "server"
    (server / "nodes").mkdir(parents=True)
    make_authority(folder)
    make_certificate(folder, server, address.rpartition(":")[0])
    shutil.copy(folder / "ca.crt", server)
    write_settings(server / "server.toml", Settings(address, task))
    write(server, partition)
    write_unit(server, "server")
    for client in range(task.n_clients):
        node = folder / f"node-{client:03d}"
        node.mkdir()
        make_node_key(node / "key", server / "nodes" / f"{client:03d}.pub")
        shutil.copy(folder / "ca.crt", node)
        write_settings(node / "node.toml", Settings(address, task, client, "data.npz"))
        write_unit(node, "node")
        if shares is not None:
            write_examples(node / "data.npz", shares.at(client, 0))


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


def read_experiment(path: Path) -> Config:
    """What a server asks a node to run: a method that is installed there under a name, no code by its path."""
    from laconic.runs.config import read_config

    settings = tomllib.loads(path.read_text("utf-8"))
    check_named(settings.get("method", {}))
    return read_config(path)


def check_named(settings: Any) -> None:
    """Of a method: neither it nor its models are code by their path."""
    if isinstance(settings, dict | list):
        for value in settings.values() if isinstance(settings, dict) else settings:
            check_named(value)
    elif isinstance(settings, str) and ":" in settings:
        raise ConfigError(
            "E170",
            f'real nodes take methods and models by name, and "{settings}" is a class.  Install it on every node as '
            "an entry point of the group laconic.methods  (docs/new-method.md)",
        )


def check_address(address: str) -> None:
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise ConfigError("E102", f"--address {address}: write HOST:PORT, e.g. 192.168.0.10:8000")


def write_settings(path: Path, settings: Settings) -> None:
    values, task = asdict(settings), asdict(settings.task)
    names = ("address", "client", "data", "notes") if settings.client >= 0 else ("address",)
    lines = [f"{name} = {toml_value(values[name])}" for name in names]
    lines += ["", "[task]", *(f"{name} = {json.dumps(value)}" for name, value in task.items())]
    path.write_text("\n".join(lines) + "\n", "utf-8")


def read_settings(folder: Path, kind: str) -> Settings:
    path = folder / f"{kind}.toml"
    try:
        found = tomllib.loads(path.read_text("utf-8"))
        task = found.pop("task")
        settings = Settings(**found, task=Task(**task | {"input_shape": tuple(task["input_shape"])}))
    except FileNotFoundError:
        raise ConfigError("E103", f"{path} does not exist.  Make a deployment: laconic deploy init") from None
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise ConfigError("E103", f"{path} is no sound {kind}.toml: {error}") from None
    if not isinstance(settings.notes, bool):  # "false" would be true
        raise ConfigError("E103", f"{path}: notes = {settings.notes!r:.40}; true or false was expected")
    check_address(settings.address)
    return settings


def write_examples(path: Path, parts: Sequence[Examples]) -> None:
    arrays: dict[str, NDArray[Any]] = {}
    for part, examples in zip(PARTS, parts, strict=True):
        arrays |= {f"x_{part}": examples.x, f"y_{part}": examples.y}
    np.savez_compressed(path, allow_pickle=False, **arrays)


def read_examples(path: Path, task: Task) -> tuple[Examples, Examples, Examples]:
    """A node's own; ValueError where they do not fit the task."""
    arrays = _read_arrays(path)
    try:
        train, val, test = (_check_part(part, arrays[f"x_{part}"], arrays[f"y_{part}"], task) for part in PARTS)
    except Mismatch as error:
        raise ValueError(f"{path}: {error}; {REMEDY}") from None
    return train, val, test


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    names = [f"{axis}_{part}" for part in PARTS for axis in "xy"]
    try:
        archive = np.load(io.BytesIO(path.read_bytes()), allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise ValueError
        with archive:
            found, arrays = archive.files, {name: archive[name] for name in names if name in archive.files}
    except FileNotFoundError:
        raise ValueError(f"{path} does not exist; an .npz of {', '.join(names)} was expected; {REMEDY}") from None
    except (ValueError, EOFError, RuntimeError, io.UnsupportedOperation, zipfile.BadZipFile, zlib.error):
        # what NumPy says of Python objects is how to load them unsafely
        wrong = "is damaged, cut short, or of Python objects, which are never unpickled"
        raise ValueError(f"{path} {wrong}; an .npz of {', '.join(names)} was expected; {REMEDY}") from None
    if missing := [name for name in names if name not in arrays]:
        came = f"has {', '.join(found) or 'nothing'}, and not {', '.join(missing)}"
        raise ValueError(f"{path} {came}; an .npz of {', '.join(names)} was expected; {REMEDY}")
    return arrays


def _check_part(part: str, x: NDArray[Any], y: NDArray[Any], task: Task) -> Examples:
    if y.ndim != 1 or y.dtype.kind not in "biuf":
        raise Mismatch(f"y_{part} is {y.dtype} {y.shape}", "one class for each example")
    if len(odd := y[y != np.floor(y)]):  # NaN too, which is equal to nothing
        raise Mismatch(f"y_{part} has {odd[0]}", "a whole number")
    if x.shape != (len(y), *task.input_shape):
        raise Mismatch(f"x_{part} has shape {x.shape}", str((len(y), *task.input_shape)))
    if x.dtype.kind not in "biuf" or not np.isfinite(x).all():
        raise Mismatch(f"x_{part} is {x.dtype}, and not all of it finite", "a finite number for each value")
    if len(y) and not 0 <= y.min() <= y.max() < task.n_classes:
        raise Mismatch(f"y_{part} reaches from {y.min():g} to {y.max():g}", f"0 to {task.n_classes - 1}")
    return Examples(x, y.astype(np.int64))


def clear_finished(runs: Path, finished: Sequence[str]) -> None:
    """As a new run begins at a node: of those that the server calls finished the last one's states stay, no others."""
    done = [runs / name for name in finished if re.fullmatch(r"[0-9a-f]{8,64}", name) and (runs / name).is_dir()]
    for states in sorted(done, key=lambda states: states.stat().st_mtime)[:-1]:
        shutil.rmtree(states)


def write_unit(folder: Path, kind: str) -> None:
    place = f"{INSTALLED_IN}/{folder.name}"
    unit = f"""\
[Unit]
Description=Laconic {kind}, {folder.name}
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
User=laconic
UMask={PRIVATE:04o}
WorkingDirectory={place}
ExecStart={Path(sys.executable).parent / "laconic"} deploy {kind} {place}
Environment=NUMBA_CACHE_DIR={place}/cache
Restart=always
RestartSec={RESTART_SECONDS}
NoNewPrivileges=true
PrivateTmp=true
ProtectHome=true
ProtectSystem=strict
ReadWritePaths={place}

[Install]
WantedBy=multi-user.target
"""
    (folder / f"laconic-{folder.name}.service").write_text(unit, "utf-8")
