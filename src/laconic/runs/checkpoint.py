"""A checkpoint: the server's state, the files that hold the clients', and how long each record was. All or nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from laconic.algorithm import Algorithm, state_type
from laconic.files import write_atomically
from laconic.fleets.base import BaseFleet
from laconic.records import SCHEMA
from laconic.state import freeze, thaw

MANIFEST = "manifest.json"


class Checkpoint(NamedTuple):
    round: int
    server: Any
    lengths: dict[str, int]  # bytes of each record
    seconds: float  # spent so far


def save(folder: Path, fleet: BaseFleet, checkpoint: Checkpoint) -> None:
    """Valid from the moment its manifest has its name; what older ones used goes only then."""
    server_file = f"server-{checkpoint.round:06d}.safetensors"
    write_atomically(folder / server_file, freeze({"server": checkpoint.server}))
    manifest = {
        "schema": SCHEMA,
        "round": checkpoint.round,
        "server": server_file,
        "lengths": checkpoint.lengths,
        "seconds": checkpoint.seconds,
        **fleet.save(),
    }
    write_atomically(folder / MANIFEST, json.dumps(manifest).encode())
    fleet.settle()
    for old in folder.glob("server-*.safetensors"):
        if old.name != server_file:
            old.unlink()


def load(folder: Path, fleet: BaseFleet, algorithm: Algorithm) -> Checkpoint | None:
    """The last one, its clients handed to the fleet; files of a round that was not completed are removed."""
    if not (folder / MANIFEST).exists():
        return None
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        files = {kind: {int(k): str(name) for k, name in manifest[kind].items()} for kind in ("links", "clients")}
        server_file = folder / manifest["server"]
        server = thaw(server_file.read_bytes(), {"server": state_type(type(algorithm), "server")})["server"]
        checkpoint = Checkpoint(manifest["round"], server, manifest["lengths"], manifest["seconds"])
    except (ValueError, KeyError, TypeError, AttributeError, FileNotFoundError) as error:
        raise ValueError(
            f"{folder / MANIFEST} is no sound checkpoint ({error}); restore a copy or start the run anew"
        ) from error
    named = {server_file.name, *(name for kind in files.values() for name in kind.values())}
    if missing := sorted(name for name in named if not (folder / name).exists()):
        raise ValueError(f"{folder} lacks {missing[0]}; restore a copy or start the run anew")
    for stray in folder.iterdir():
        if stray.name != MANIFEST and stray.name not in named:
            stray.unlink()
    fleet.open(files, checkpoint.round)
    return checkpoint
