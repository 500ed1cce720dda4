"""Where a federation runs: the one list of fleets."""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from laconic.fleets.base import BaseFleet, Conditions
    from laconic.fleets.host import Home

FLEETS = {"local": "LocalFleet", "process": "ProcessFleet", "ray": "RayFleet"}
REMOTE = {"mqtt": "MqttFleet"}  # of real nodes, which deploy/ puts together: they are reached by an address


def load_fleet(name: str) -> "type[BaseFleet]":
    """Imports a fleet of FLEETS or REMOTE; what it needs beside the core is the extra of its name."""
    found: type[BaseFleet] = getattr(import_module(f"laconic.fleets.{name}"), (FLEETS | REMOTE)[name])
    return found


def open_fleet(
    name: str, home: "Home", conditions: "Conditions", on_progress: Callable[[str, int, int], None], workers: int
) -> "BaseFleet":
    """A fleet that is ready to be asked; close it when done. Workers 0: one per core, of all machines it runs on."""
    kind: Callable[..., BaseFleet] = load_fleet(name)
    return kind(home, conditions, on_progress, workers)
