"""A byte budget is a promise: a method's knobs are turned down until its largest round fits, or the run is refused."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

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
    """The configuration that fits, its knobs turned no further than need be; OverBudget names the least that can be."""
    if not config.budget:
        return config
    config = hand_over(config)
    limit, method, knobs = parse_bytes(config.budget), config.method, list_knobs(config.method)
    most = most_bytes(method, task)
    if most is None:
        raise OverBudget(f"{config.method_name} cannot tell what a round costs at most, so it takes no budget")
    if most <= limit:
        return config
    if not knobs:
        raise OverBudget(
            f"budget {config.budget} is below what {config.method_name} may need in a round, {most:,} bytes "
            f"per client; it has no setting to turn down.  Raise the budget to {most} or leave it out"
        )

    def is_within(method: Algorithm) -> bool:
        return (most_bytes(method, task) or 0) <= limit

    for knob in knobs:
        notches = list_notches(method, knob)
        fits = bisect_left(notches, True, key=lambda notch: is_within(replace(method, **{knob: notch})))
        method = replace(method, **{knob: notches[min(fits, len(notches) - 1)]})
        if fits < len(notches):
            break
    most = most_bytes(method, task)
    turned = {knob: (getattr(config.method, knob), getattr(method, knob)) for knob in knobs}
    if not is_within(method):
        least = ", ".join(f"{knob} = {value}" for knob, (_, value) in turned.items())
        raise OverBudget(
            f"budget {config.budget} is below the least that {config.method_name} can do with, {most:,} bytes per "
            f"client and round ({least}).  Raise the budget to {most} or leave it out"
        )
    changes = ", ".join(f"{knob} {before} -> {after}" for knob, (before, after) in turned.items() if after != before)
    say(f"budget {config.budget}: {changes}, at most {most:,} bytes per client and round")
    return replace(config, method=method)


def list_knobs(method: Algorithm) -> tuple[str, ...]:
    knobs = method.budget_knob
    return tuple(filter(None, [knobs] if isinstance(knobs, str) else knobs))


def list_notches(method: Algorithm, knob: str) -> Sequence[Any]:
    """What a knob may be turned to, from where it is to the least."""
    value = getattr(method, knob)
    if isinstance(value, int):
        return range(value, 0, -1)
    if isinstance(value, float):
        return [value * notch / NOTCHES for notch in range(NOTCHES, 0, -1)]
    choices = get_args(get_type_hints(type(method))[knob])
    return choices[choices.index(value) :]
