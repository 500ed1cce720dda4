"""Which runs a command makes, and in which folders; a comparison is planned whole before anything runs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from laconic.algorithms import METHODS
from laconic.runs.config import Config, find_method, method_keys, read_config, write_config
from laconic.runs.typed_toml import ConfigError

if TYPE_CHECKING:
    from laconic.runs.run import Summary, Watch

Plan = dict[Path, Config]  # run folder -> what runs there


def plan_seeds(config: Config, seeds: Sequence[int], out: Path | None) -> Plan:
    """One seed runs in `out` itself, several in out/seed-0, ...; without `out`, in a new folder under runs/."""
    return spread(config, seeds, out or new_folder(config.method_name, [config]))


def plan_comparison(
    methods: Sequence[str], path: Path | None, settings: Sequence[str], seeds: Sequence[int], out: Path | None
) -> Plan:
    """Each method in out/METHOD, on the same data, partition and seeds.

    `fedtm.key=value` is for that method alone, `method.key=value` for every method that has the key.
    """
    methods = list(dict.fromkeys(methods))
    for method in methods:
        find_method(method)
    check_settings(methods, settings)
    configs = [read_config(path, settings_for(method, settings)) for method in methods]
    out = out or new_folder("compare", configs)
    return {
        folder: config for base in configs for folder, config in spread(base, seeds, out / base.method_name).items()
    }


def go_on(config: Config, folder: Path, watch: Watch | None) -> Summary:
    """Runs, resumes what was begun in the folder with the same settings, or tells what has finished there."""
    from laconic.runs.run import resume, run

    if not (folder / "config.toml").exists():
        return run(config, folder, watch=watch)
    begun = read_config(folder / "config.toml")
    if begun != turn_down(config, begun):
        raise ConfigError("E160", f"{folder} holds a run with other settings.  Choose another --out, or remove it")
    return resume(folder, watch=watch)


def turn_down(config: Config, begun: Config) -> Config:
    """As a budget may have left it in the run begun: with less of what the method can do with less of."""
    from laconic.runs.budget import hand_over, list_knobs, list_notches

    config = hand_over(config)
    if not config.budget or begun.method_name != config.method_name:
        return config
    left = {knob: getattr(begun.method, knob) for knob in list_knobs(config.method)}
    may_be = {knob: value for knob, value in left.items() if value in list_notches(config.method, knob)}
    return replace(config, method=replace(config.method, **may_be))


def check_free(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise ConfigError("E160", f"--out {folder} is a file.  Choose another --out")
    if (folder / "config.toml").exists():
        raise ConfigError(
            "E160",
            f"--out {folder} already holds a run.  Go on with it: laconic run --resume {folder}, or choose another",
        )
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError("E160", f"--out {folder} is not empty.  Choose another --out")


def spread(config: Config, seeds: Sequence[int], folder: Path) -> Plan:
    if len(seeds) < 2:
        return {folder: replace(config, seed=seeds[0]) if seeds else config}
    return {folder / f"seed-{seed}": replace(config, seed=seed) for seed in seeds}


def new_folder(name: str, configs: Sequence[Config], data: str = "") -> Path:
    """data: what it is called, where the configuration does not know."""
    digest = hashlib.sha256("".join(map(write_config, configs)).encode()).hexdigest()[:4]
    data = data or Path(configs[0].data.name).stem  # it may be a path to an .npz
    return Path("runs") / f"{datetime.now():%Y-%m-%d_%H%M%S}_{name}_{data}_{digest}"


def check_settings(methods: Sequence[str], settings: Sequence[str]) -> None:
    for setting in settings:
        section, _, key = setting.partition("=")[0].strip().partition(".")
        if section in METHODS and section not in methods:
            raise ConfigError("E101", f"{section} is not among the methods: {', '.join(methods)}", f"--set {setting}")
        if section == "method" and not any(key in method_keys(method) for method in methods):
            raise ConfigError(
                "E101",
                f"none of {', '.join(methods)} has a setting {key}  (laconic list {methods[0]})",
                f"--set {setting}",
            )


def settings_for(method: str, settings: Sequence[str]) -> list[str]:
    """As read_config takes them; what names the method comes last and so counts more."""
    for_all, for_one = [f"method.name={method}"], []
    for setting in settings:
        section, _, rest = setting.strip().partition(".")
        if section == method:
            for_one.append(f"method.{rest}")
        elif section not in METHODS and (section != "method" or rest.partition("=")[0].strip() in method_keys(method)):
            for_all.append(setting)
    return for_all + for_one
