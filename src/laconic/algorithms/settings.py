"""Checks that the settings of many methods need; a method calls them in its __post_init__."""

import math
from typing import Any


def check_at_least(settings: Any, **least: float) -> None:
    for name, bound in least.items():
        value = getattr(settings, name)
        if value is not None and not bound <= value < math.inf:
            raise ValueError(f"method.{name} = {value} must be at least {bound}")


def check_share(settings: Any, *names: str) -> None:
    for name in names:
        if not 0 <= getattr(settings, name) <= 1:
            raise ValueError(f"method.{name} = {getattr(settings, name)} must be from 0 to 1")
