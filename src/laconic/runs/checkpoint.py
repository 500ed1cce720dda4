"""A checkpoint: the server's state, the files that hold the clients', and how long each record was. All or nothing.

Its manifest has the SHA-256 of all that a run goes on from, and a checksum of its own.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

from laconic.algorithm import Algorithm, ClientId, state_type
from laconic.files import hash_file, write_atomically
from laconic.fleets.base import BaseFleet
from laconic.fleets.session import ClientEnd
from laconic.fleets.store import split_entry
from laconic.records import SCHEMA, Times
from laconic.state import freeze, thaw

FOLDER, MANIFEST = "checkpoints", "manifest.json"  # in a run folder, and in that
SETTINGS = "config.toml"
BEGUN_WITH = (SETTINGS, "partition.npz", "preprocessing.safetensors")  # runs on real nodes have settings alone
REMEDY = "restore a copy or start the run anew"


class Checkpoint(NamedTuple):
    round: int
    server: Any
    lengths: dict[str, int]  # bytes of each record
    seconds: float  # spent so far
    hashes: dict[str, str]  # of each record, and of what the run was begun with


def save(folder: Path, fleet: BaseFleet, reached: Checkpoint) -> None:
    """Valid from the moment its manifest has its name; what older ones used goes only then."""
    home, server_file = folder / FOLDER, f"server-{reached.round:06d}.safetensors"
    state = freeze({"server": reached.server})
    write_atomically(home / server_file, state)
    hashes = reached.hashes | {f"{FOLDER}/{server_file}": hashlib.sha256(state).hexdigest()}
    files: dict[str, dict[int, str]] = {}
    for kind, entries in fleet.save().items():
        parted = {number: split_entry(entry) for number, entry in entries.items()}
        files[kind] = {number: name for number, (_, name) in parted.items()}
        hashes |= {f"{FOLDER}/{name}": digest for digest, name in parted.values() if digest}
    manifest = {
        "schema": SCHEMA,
        "round": reached.round,
        "server": server_file,
        "lengths": reached.lengths,
        "seconds": reached.seconds,
        **files,
        "sha256": hashes,
    }
    _write_manifest(home, manifest)
    fleet.settle()
    for old in home.glob("server-*.safetensors"):
        if old.name != server_file:
            old.unlink()


def load(folder: Path, fleet: BaseFleet, algorithm: Algorithm) -> Checkpoint | None:
    """The last one, its clients handed to the fleet; files of a round that was not completed are removed."""
    home, manifest = folder / FOLDER, _read_manifest(folder / FOLDER)
    if manifest is None:
        return None
    try:
        hashes = manifest.get("sha256", {})
        names = {kind: {int(k): str(name) for k, name in manifest[kind].items()} for kind in ("links", "clients")}
        server_file = home / manifest["server"]
        server = _thaw_server(server_file, algorithm)
        checkpoint = Checkpoint(manifest["round"], server, manifest["lengths"], manifest["seconds"], hashes)
    except (ValueError, KeyError, TypeError, AttributeError, FileNotFoundError) as error:
        raise ValueError(f"{home / MANIFEST} is no sound checkpoint ({error}); {REMEDY}") from error
    named = {server_file.name, *(name for kind in names.values() for name in kind.values())}
    if missing := sorted(name for name in named if not (home / name).exists()):
        raise ValueError(f"{home} lacks {missing[0]}; {REMEDY}")
    for stray in home.iterdir():
        if stray.name != MANIFEST and stray.name not in named:
            stray.unlink()
    entries = {
        kind: {number: f"{hashes.get(f'{FOLDER}/{name}', '')}  {name}" for number, name in some.items()}
        for kind, some in names.items()
    }
    fleet.open(entries, checkpoint.round)
    return checkpoint


def verify(folder: Path, only: str = "") -> None:
    """Refuses what is not as the last checkpoint of the run left it, before any of it is believed. only: that file."""
    manifest = _read_manifest(folder / FOLDER) or {}
    for name, due in manifest.get("sha256", {}).items():  # older ones have none
        if only and name != only:
            continue
        path, accepted, remedy = folder / name, [due], REMEDY
        if name == SETTINGS:
            accepted += manifest.get("prolonged", [])
            remedy = f"{REMEDY}; a run gets more rounds by: laconic run --resume {folder} --set rounds=N"
        if not path.is_file():
            raise ValueError(f"{path} is missing; {remedy}")
        came = hash_file(path, manifest["lengths"].get(name))
        if came not in accepted:
            raise ValueError(f"{path} is not as it was saved: SHA-256 {came[:12]}…, {due[:12]}… was expected; {remedy}")


def read_state(folder: Path, algorithm: Algorithm, client: ClientId) -> Any:
    """A client's, as the last checkpoint has it; None if it has none yet."""
    manifest = _read_manifest(folder / FOLDER) or {"clients": {}}
    name = manifest["clients"].get(str(client))
    if name is None:
        return None
    verify(folder, f"{FOLDER}/{name}")
    return ClientEnd.thaw(type(algorithm), (folder / FOLDER / name).read_bytes()).state


def find_round(folder: Path) -> int:
    """That the last checkpoint was made after."""
    return int((_read_manifest(folder / FOLDER) or {"round": 0})["round"])


def read_server(folder: Path, algorithm: Algorithm) -> Any:
    """As the last checkpoint has it; None if there is none yet."""
    manifest = _read_manifest(folder / FOLDER)
    if manifest is None:
        return None
    verify(folder, f"{FOLDER}/{manifest['server']}")
    return _thaw_server(folder / FOLDER / manifest["server"], algorithm)


def _thaw_server(path: Path, algorithm: Algorithm) -> Any:
    return thaw(path.read_bytes(), {"server": state_type(type(algorithm), "server")})["server"]


def find_digest(folder: Path) -> str:
    """Of all that came of the run but how long it took: the same for the same states and records."""
    hashes = (_read_manifest(folder / FOLDER) or {}).get("sha256", {})
    lines = [f"{digest}  {name}" for name, digest in sorted(hashes.items()) if name != Times.file]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def accept_settings(folder: Path, text: bytes) -> None:
    """Before a run that is prolonged gets its new config.toml: whichever of both a crash leaves there is right."""
    if manifest := _read_manifest(folder / FOLDER):
        known = manifest.get("prolonged", [])
        _write_manifest(folder / FOLDER, manifest | {"prolonged": [*known, hashlib.sha256(text).hexdigest()]})


def hash_begun_with(folder: Path) -> dict[str, str]:
    """Once for each start: hashed anew for each checkpoint, damage would be taken for the truth."""
    return {name: hash_file(folder / name) for name in BEGUN_WITH if (folder / name).exists()}


def _write_manifest(home: Path, manifest: dict[str, Any]) -> None:
    write_atomically(home / MANIFEST, json.dumps(manifest | {"checksum": _sum_up(manifest)}).encode())


def _read_manifest(home: Path) -> dict[str, Any] | None:
    path = home / MANIFEST
    if not path.exists():
        return None
    try:
        manifest = json.loads(path.read_text("utf-8"))
        checksum, schema = manifest.pop("checksum", None), manifest["schema"]
        is_sound = checksum == _sum_up(manifest) if checksum or "sha256" in manifest else True
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is no sound checkpoint ({error}); {REMEDY}") from None
    if not is_sound:
        raise ValueError(f"{path} is not as it was saved: its checksum does not fit what is in it; {REMEDY}")
    if type(schema) is not int or schema > SCHEMA:
        raise ValueError(f"{path}: its schema is {schema}, this laconic reads up to {SCHEMA}; upgrade laconic")
    found: dict[str, Any] = manifest
    return found


def _sum_up(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest).encode()).hexdigest()
