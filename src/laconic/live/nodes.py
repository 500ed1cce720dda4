"""Who is there of the nodes of a deployment, as its server writes it down."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from laconic.files import is_in_use
from laconic.live.run import find_change
from laconic.records import SERVER_SETTINGS, Mismatch, Nodes, fault, list_begun, read_record


class FollowedServer:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._changed = -1
        self._shown: dict[str, Any] = {}

    def look(self) -> dict[str, Any] | None:
        """All of it if anything is new."""
        before, changed, is_running = self._shown, find_change(self.folder / Nodes.file), is_in_use(self.folder)
        if changed != self._changed or is_running != before.get("is_running"):
            self._changed = changed
            self._shown = {"folder": str(self.folder), "is_running": is_running} | self._read()
        return None if self._shown == before else self._shown

    def show(self) -> dict[str, Any]:
        return self._shown

    def _read(self) -> dict[str, Any]:
        """words: why nothing is known."""
        path = self.folder / Nodes.file
        try:
            found = read_record(Nodes, json.loads(path.read_text("utf-8")))
        except FileNotFoundError:
            return {
                "words": "who is there is known once a server over MQTT has run; over Flower: laconic deploy status"
            }
        except Mismatch as error:
            return {"words": str(fault(path, error))}
        except (ValueError, OSError) as error:
            return {"words": f"{path}: {error}"}
        nodes = []
        for node in found.nodes:
            up, down = (sum(pair[way] for pair in node.sent.values() if len(pair) == 2) for way in (0, 1))
            nodes.append((node.client, node.node, node.status, up, down))
        return {"words": "", "has_broker": found.broker, "nodes": nodes}


def find_server(folder: Path) -> Path | None:
    """Of a deployment, by its own folder or that of its server."""
    return next((place for place in (folder, folder / "server") if find_change(place / SERVER_SETTINGS)), None)


def find_begun(server: Path) -> list[Path]:
    """Folders of the runs that were begun on it."""
    with suppress(OSError):  # the server of another user is not for us to look at
        return [Path(path.read_text("utf-8")) for path in list_begun(server)]
    return []
