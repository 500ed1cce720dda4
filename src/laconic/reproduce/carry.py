"""Runs what figures need, one after the other, and enters each as soon as its runs have ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from laconic.records import Environment, Summary, read
from laconic.reproduce.measures import mean_bytes, read_figure
from laconic.reproduce.page import refresh
from laconic.reproduce.published import Figure, read_figures
from laconic.reproduce.recipe import Recipe, Scale
from laconic.reproduce.scoreboard import Measured, enter, list_rows, read_measured, write
from laconic.reproduce.ways import find_way
from laconic.runs.config import Config, read_config
from laconic.runs.display import make_display
from laconic.runs.plan import go_on
from laconic.runs.prepare import load_for
from laconic.runs.typed_toml import ConfigError

if TYPE_CHECKING:
    from laconic.runs.plan import Plan


Planned = dict[str, list[tuple[Figure, Recipe]]]  # by name of the runs, which rows may share


def plan_figures(figures: Sequence[Figure]) -> Planned:
    """Those that can be run."""
    planned: Planned = {}
    for figure in figures:
        recipe = find_way(figure)
        if isinstance(recipe, Recipe):
            planned.setdefault(recipe.run, []).append((figure, recipe))
    return planned


def plan_seeds(recipe: Recipe, scale: Scale, seeds: Sequence[int], out: Path, workers: int) -> Plan:
    config = read_config(None, [*recipe.settings_at(scale), f"fleet.workers={workers}"])
    return {out / scale / recipe.run / f"seed-{seed}": replace(config, seed=seed) for seed in seeds}


def reproduce(
    figures: Sequence[Figure],
    scale: Scale,
    seeds: Sequence[int],
    out: Path,
    scoreboard: Path,
    *,
    resume: bool,
    workers: int,
    quiet: bool,
    download: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> bool:
    """Whether all could be run; what is left out for want of data is said before hours are spent on the rest."""
    every = plan_figures(read_figures())
    planned = {run: every[run] for run in plan_figures(figures)}  # a run tells of all rows that it serves
    plans = {run: plan_seeds(rows[0][1], scale, seeds, out, workers) for run, rows in planned.items()}
    if not resume:
        for plan in plans.values():
            check_free(plan)
    left_out = leave_out(planned, plans, download=download)
    for line in left_out:
        say(line)
    for run, rows in planned.items():
        for folder, config in plans[run].items():
            with make_display(folder, quiet=quiet) as display:
                go_on(as_begun(config, folder), folder, display)
        measured = read_measured(scoreboard)
        for figure, recipe in rows:
            enter(measured, figure, measure(recipe, list(plans[run]), seeds, scale))
        write(scoreboard, measured)
        refresh(scoreboard.with_suffix(".md"), [asdict(row) for row in list_rows(read_figures(), measured)])
    return not left_out


def leave_out(planned: Planned, plans: dict[str, Plan], *, download: bool) -> list[str]:
    """Takes away what needs data that are not there: a line for each such data set. If that is all, it is an error."""
    needed = {run: next(iter(plan.values())).data for run, plan in plans.items() if not has_ended(plan)}
    lacking = dict[str, ConfigError]()
    for name, data in {data.name: data for data in needed.values()}.items():
        try:
            load_for(replace(data, download=download))
        except ConfigError as error:
            lacking[name] = error
    told = []
    for name, why in lacking.items():
        n_rows = sum(len(planned.pop(run)) for run, data in needed.items() if data.name == name)
        told.append(f"left out ({n_rows} row{'s' * (n_rows > 1)}): {why}")
    if told and not planned:
        raise next(iter(lacking.values()))
    return told


def measure(recipe: Recipe, folders: Sequence[Path], seeds: Sequence[int], scale: Scale) -> Measured:
    return Measured(
        values=tuple(read_figure(folder, recipe.measure) for folder in folders),
        seeds=tuple(seeds),
        scale=scale,
        rounds=read(folders[0], Summary).rounds,
        bytes_sent=fmean(mean_bytes(folder) for folder in folders),
        commit=(read(folders[0], Environment).git or "")[:7],
    )


def has_ended(plan: Plan) -> bool:
    return all((folder / Summary.file).exists() for folder in plan)


def check_free(plan: Plan) -> None:
    """Finished runs are used again; what was begun goes on only if that is asked for."""
    for folder in plan:
        if (folder / "config.toml").exists() and not (folder / Summary.file).exists():
            raise ConfigError("E160", f"{folder} holds a run that was begun.  Go on with it: --resume")


def as_begun(config: Config, folder: Path) -> Config:
    """On how many workers is no matter of the figure."""
    if not (folder / "config.toml").exists():
        return config
    return replace(config, fleet=replace(config.fleet, workers=read_config(folder / "config.toml").fleet.workers))
