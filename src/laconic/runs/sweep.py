"""One experiment for each choice of some settings: `--over method.rate=0.01,0.03`, each in a folder named by it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from laconic.runs.config import read_config
from laconic.runs.plan import Plan, new_folder, spread
from laconic.runs.typed_toml import ConfigError


def plan_sweep(
    path: Path | None, settings: Sequence[str], over: Sequence[str], seeds: Sequence[int], out: Path | None
) -> Plan:
    """Every choice of the values of `over`, above the settings, which are above the file."""
    axes = [read_axis(each) for each in over]
    if not axes:
        raise ConfigError("E102", "a sweep needs something to go over: --over method.rate=0.01,0.03")
    choices = {name_choice(choice): read_config(path, [*settings, *choice]) for choice in product(*axes)}
    out = out or new_folder("sweep", [*choices.values()])
    return {run: one for name, config in choices.items() for run, one in spread(config, seeds, out / name).items()}


def read_axis(text: str) -> list[str]:
    """`data.alpha=0.1,1` as data.alpha=0.1 and data.alpha=1; commas in [ ] are part of a value."""
    key, equals, values = text.partition("=")
    parts = [part.strip() for part in re.split(r",(?![^\[]*\])", values)]
    if not (key.strip() and equals and all(parts)):
        raise ConfigError("E102", f"--over {text} must be key=value,value, e.g. --over data.alpha=0.05,0.1")
    return [f"{key.strip()}={part}" for part in dict.fromkeys(parts)]


def name_choice(choice: Sequence[str]) -> str:
    """A folder's name that any system takes."""
    keys = [setting.partition("=")[0].rpartition(".")[2] for setting in choice]
    values = [setting.partition("=")[2] for setting in choice]
    return "_".join(re.sub(r"[^\w.+-]", "-", f"{key}-{value}") for key, value in zip(keys, values, strict=True))
