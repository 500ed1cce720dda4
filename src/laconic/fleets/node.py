"""One client on a machine of its own. Every step leaves a folder, named by round and call, with the state after it and
the reply: a request that comes again gets the same bytes, and a server that resumes finds the state it remembers.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from laconic.algorithm import ClientId
from laconic.files import sync_folder, write_atomically
from laconic.fleets.host import Home, Host, Reply, Request, Score
from laconic.state import freeze
from laconic.wire import Encoded

Place = tuple[int, int]  # round and call


class Stage(NamedTuple):
    """How far the server is."""

    attempt: int  # how often it has started: a later start takes back what came after its checkpoint
    settled: int  # the last round that it will never take back; -1: none


class Node:
    """A client's states of one run, in files of its own."""

    def __init__(self, home: Home, client: ClientId, folder: Path) -> None:
        self.home, self.client, self.folder = home, client, folder
        self.has_repeated = False  # whether a request had been carried out before

    def perform(self, request: Request, stage: Stage) -> Reply:
        """ValueError for a request that comes too late, or differs from one already carried out."""
        self._catch_up(stage)
        place, digest = (request.round, request.call), _digest(request)
        done = self._places()
        if place in done:
            about = json.loads((self._path(place) / "about.json").read_text("utf-8"))
            if about["digest"] != digest:
                raise ValueError(f"round {place[0]}, call {place[1]} was asked for before, in other words")
            self.has_repeated = True
            data = (self._path(place) / "reply").read_bytes()
            return Reply(self.client, Encoded(data, {}), about["notes"])
        if done and done[-1] > place:
            raise ValueError(f"round {place[0]}, call {place[1]} comes too late; round {done[-1][0]} is under way")
        host = self._open(done)
        reply = host.perform(request)
        self._keep(place, host.dump(self.client), reply, digest)
        return Reply(self.client, Encoded(reply.encoded.data, {}), reply.notes)

    def evaluate(self, round: int, stage: Stage) -> Score:
        self._catch_up(stage)
        return self._open(self._places()).evaluate(self.client, round)

    def read_state(self) -> Any:
        """The client's, after its last step."""
        return self._open(self._places()).state(self.client)

    # ------------------------------------------------------------ files
    def _catch_up(self, stage: Stage) -> None:
        """A newer start goes back to its checkpoint; states that nobody can go back to are removed."""
        path = self.folder / "stage.json"
        known = Stage(**json.loads(path.read_text("utf-8"))) if path.exists() else Stage(0, -1)
        if stage.attempt < known.attempt:
            raise ValueError(f"start {stage.attempt} of the server asks, but start {known.attempt} has asked already")
        if stage.settled < known.settled:
            raise ValueError(
                f"the server goes back to round {stage.settled}, but states before round {known.settled} are gone here"
            )
        places = self._places()
        if stage.attempt > known.attempt:
            for place in reversed([place for place in places if place[0] > stage.settled]):
                shutil.rmtree(self._path(place))
        if stage != known:
            write_atomically(path, json.dumps(stage._asdict()).encode())
        for place in [place for place in places if place[0] <= stage.settled][:-1]:
            shutil.rmtree(self._path(place))

    def _places(self) -> list[Place]:
        names = sorted(path.name for path in self.folder.glob("round-*")) if self.folder.exists() else []
        return [(int(name[6:12]), int(name[13:])) for name in names]

    def _path(self, place: Place) -> Path:
        return self.folder / f"round-{place[0]:06d}-{place[1]:04d}"

    def _open(self, done: list[Place]) -> Host:
        host = Host(self.home)
        if done:
            host.load(self.client, (self._path(done[-1]) / "client.safetensors").read_bytes())
        return host

    def _keep(self, place: Place, state: bytes, reply: Reply, digest: str) -> None:
        """All of it or nothing."""
        draft = self.folder / "draft"
        shutil.rmtree(draft, ignore_errors=True)
        write_atomically(draft / "client.safetensors", state)
        write_atomically(draft / "reply", reply.encoded.data)
        write_atomically(draft / "about.json", json.dumps({"digest": digest, "notes": reply.notes}).encode())
        draft.rename(self._path(place))
        sync_folder(self.folder)  # else the name may be lost with the power, though the reply was sent


def _digest(request: Request) -> str:
    values: dict[str, Any] = request._asdict() | {"frame": request.frame.hex()}
    if request.heard is not None:
        values["heard"] = {sender: frame.hex() for sender, frame in request.heard.items()}
    return hashlib.sha256(freeze(values)).hexdigest()
