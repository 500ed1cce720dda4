"""A byte budget is a promise: the method's knob is turned down until its largest round fits, or the run is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from laconic.algorithm import Algorithm, Task, bound_bytes
from laconic.fleets.base import OverBudget
from laconic.runs.config import parse_bytes

if TYPE_CHECKING:
    from laconic.runs.config import Config

NOTCHES = 1000  # of a knob that is a share


def most_bytes(method: Algorithm, task: Task) -> int | None:
    """That a client may send and receive in a round, whatever it learns."""
    messages = method.costliest_round(task)
    return None if messages is None else bound_bytes(messages)


def hand_over(config: Config) -> Config:
    """Tells the budget to a method that keeps it by itself."""
    if not (config.budget and hasattr(config.method, "budget_bytes")):
        return config
    return replace(config, method=replace(config.method, **{"budget_bytes": parse_bytes(config.budget)}))


def keep_budget(config: Config, task: Task, say: Callable[[str], None]) -> Config:
    """The configuration that fits, its knob turned no further than need be; OverBudget names the least that can be."""
    if not config.budget:
        return config
    config = hand_over(config)
    limit, method, knob = parse_bytes(config.budget), config.method, config.method.budget_knob
    most = most_bytes(method, task)
    if most is None:
        raise OverBudget(f"{config.method_name} cannot tell what a round costs at most, so it takes no budget")
    if most <= limit:
        return config
    if not knob:
        raise OverBudget(
            f"budget {config.budget} is below what {config.method_name} may need in a round, {most:,} bytes "
            f"per client; it has no setting to turn down.  Raise the budget to {most} or leave it out"
        )

    value, n_notches = getattr(method, knob), NOTCHES
    if isinstance(value, int):
        n_notches = value

    def turn(notch: int) -> Algorithm:
        return replace(method, **{knob: notch if isinstance(value, int) else value * notch / NOTCHES})

    least = most_bytes(turn(1), task)
    if least is None or least > limit:
        raise OverBudget(
            f"budget {config.budget} is below the least that {config.method_name} can do with, {least:,} bytes per "
            f"client and round ({knob} = {getattr(turn(1), knob)}).  Raise the budget to {least} or leave it out"
        )
    fits, too_much = 1, n_notches
    while too_much - fits > 1:
        middle = (fits + too_much) // 2
        if (most_bytes(turn(middle), task) or 0) <= limit:
            fits = middle
        else:
            too_much = middle
    most = most_bytes(turn(fits), task)
    say(
        f"budget {config.budget}: {knob} {value} -> {getattr(turn(fits), knob)}, at most {most:,} bytes per client "
        "and round"
    )
    return replace(config, method=turn(fits))
