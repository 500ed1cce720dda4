"""Where a federation runs: the one list of fleets."""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from laconic.fleets.base import BaseFleet, Conditions
    from laconic.fleets.host import Home

FLEETS = {"local": "LocalFleet", "process": "ProcessFleet"}


def open_fleet(
    name: str, home: "Home", conditions: "Conditions", on_progress: Callable[[str, int, int], None], workers: int
) -> "BaseFleet":
    """A fleet that is ready to be asked; close it when done."""
    fleet: BaseFleet = getattr(import_module(f"laconic.fleets.{name}"), FLEETS[name])(
        home, conditions, on_progress, workers
    )
    return fleet
