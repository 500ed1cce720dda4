"""Which runs a command makes, and in which folders; a comparison is planned whole before anything runs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from laconic.algorithms import METHODS
from laconic.data.sources import name_source
from laconic.runs.config import Config, find_method, method_keys, read_config, write_config
from laconic.runs.typed_toml import ConfigError

if TYPE_CHECKING:
    from laconic.algorithm import Task
    from laconic.runs.config import DataSettings
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
    configs = [read_config(path, settings_for(method, methods, settings)) for method in methods]
    out = out or new_folder("compare", configs)
    folders = {out / name_folder(config.method_name): config for config in configs}
    if len(folders) < len(configs):
        raise ConfigError("E160", f"two of {', '.join(methods)} would run in one folder.  Compare them apart")
    return {run: one for folder, config in folders.items() for run, one in spread(config, seeds, folder).items()}


def plan_resumption(folder: Path, settings: Sequence[str]) -> Plan:
    """The run in the folder, or those of its seeds; of settings only the number of rounds can be another."""
    from laconic.runs.checkpoint import verify

    files = [folder / "config.toml"] if (folder / "config.toml").exists() else sorted(folder.glob("seed-*/config.toml"))
    if not files:
        raise ConfigError("E160", f"{folder} holds no run; a run folder has a config.toml  (ls runs)")
    if strangers := [setting for setting in settings if setting.partition("=")[0].strip() != "rounds"]:
        raise ConfigError("E101", "a run goes on as it was begun; only rounds can be set anew", f"--set {strangers[0]}")
    for file in files:
        verify(file.parent, file.name)
    return {file.parent: read_config(file, settings) for file in files}


def check_all(plan: Plan) -> None:
    """Refuses what cannot be done before any of it is: settings begun otherwise, tasks and budgets that do not fit."""
    from laconic.runs.budget import keep_budget
    from laconic.runs.prepare import prepare
    from laconic.runs.run import find_device

    tasks: dict[tuple[DataSettings, str, int], Task] = {}
    for folder, config in plan.items():
        if (folder / "config.toml").exists():
            check_begun(config, folder)
            continue
        check_free(folder)
        find_device(config)
        key = (config.data, config.method.takes, config.seed)
        task = tasks[key] = tasks.get(key) or prepare(config).task
        config.method.check_task(task)
        keep_budget(config, task, lambda line: None)


def go_on(config: Config, folder: Path, watch: Watch | None) -> Summary:
    """Runs, resumes what was begun in the folder with the same settings, or tells what has finished there."""
    from laconic.runs.run import resume, run

    if not (folder / "config.toml").exists():
        return run(config, folder, watch=watch)
    check_begun(config, folder)
    return resume(folder, watch=watch, rounds=config.rounds)


def check_begun(config: Config, folder: Path) -> None:
    """A run may get more rounds than it was begun with; all else must be the same."""
    from laconic.runs.checkpoint import SETTINGS, verify

    verify(folder, SETTINGS)
    begun = read_config(folder / "config.toml")
    if config.rounds < begun.rounds:
        raise ConfigError(
            "E160", f"{folder} holds a run of {begun.rounds} rounds; it can get more, not as few as {config.rounds}"
        )
    if replace(begun, rounds=config.rounds) != turn_down(config, begun):
        raise ConfigError("E160", f"{folder} holds a run with other settings.  Choose another --out, or remove it")


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
    from laconic.runs.run import check_empty

    try:
        check_empty(folder)
    except ValueError:
        raise ConfigError("E160", f"--out {folder} is not empty.  Choose another --out") from None


def spread(config: Config, seeds: Sequence[int], folder: Path) -> Plan:
    if len(seeds) < 2:
        return {folder: replace(config, seed=seeds[0]) if seeds else config}
    return {folder / f"seed-{seed}": replace(config, seed=seed) for seed in seeds}


def new_folder(name: str, configs: Sequence[Config], data: str = "") -> Path:
    """data: what it is called, where the configuration does not know."""
    digest = hashlib.sha256("".join(map(write_config, configs)).encode()).hexdigest()[:4]
    data = data or name_source(configs[0].data.name)
    return Path("runs") / f"{datetime.now():%Y-%m-%d_%H%M%S}_{name_folder(name)}_{data}_{digest}"


def name_folder(method: str) -> str:
    """Not every system takes a colon."""
    return method.replace(":", ".")


def check_settings(methods: Sequence[str], settings: Sequence[str]) -> None:
    for setting in settings:
        owner, key = split_setting(setting, methods)
        if owner in METHODS and owner not in methods:
            raise ConfigError("E101", f"{owner} is not among the methods: {', '.join(methods)}", f"--set {setting}")
        if owner == "method" and not any(key in method_keys(method) for method in methods):
            raise ConfigError(
                "E101",
                f"none of {', '.join(methods)} has a setting {key}  (laconic list {methods[0]})",
                f"--set {setting}",
            )


def settings_for(method: str, methods: Sequence[str], settings: Sequence[str]) -> list[str]:
    """As read_config takes them; what names the method comes last and so counts more."""
    for_all, for_one = [f"method.name={method}"], []
    for setting in settings:
        owner, key = split_setting(setting, methods)
        if owner == method:
            for_one.append(f"method.{setting.strip().removeprefix(f'{method}.')}")
        elif owner not in {*METHODS, *methods} and (owner != "method" or key in method_keys(method)):
            for_all.append(setting)
    return for_all + for_one


def split_setting(setting: str, methods: Sequence[str]) -> tuple[str, str]:
    """`fedtm.epochs=5` as fedtm and epochs; the name of a method from elsewhere may have dots in it."""
    key = setting.partition("=")[0].strip()
    owner = next((method for method in methods if key.startswith(f"{method}.")), key.partition(".")[0])
    return owner, key.removeprefix(f"{owner}.")
