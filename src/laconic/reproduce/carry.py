"""Runs what figures need, one after the other, and enters each as soon as its runs have ended."""

from __future__ import annotations

from collections.abc import Sequence
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
) -> None:
    planned = plan_figures(figures)
    plans = {run: plan_seeds(rows[0][1], scale, seeds, out, workers) for run, rows in planned.items()}
    if not resume:
        for plan in plans.values():
            check_free(plan)
    for run, rows in planned.items():
        for folder, config in plans[run].items():
            with make_display(folder, quiet=quiet) as display:
                go_on(as_begun(config, folder), folder, display)
        measured = read_measured(scoreboard)
        for figure, recipe in rows:
            enter(measured, figure, measure(recipe, list(plans[run]), seeds, scale))
        write(scoreboard, measured)
        refresh(scoreboard.with_suffix(".md"), [asdict(row) for row in list_rows(read_figures(), measured)])


def measure(recipe: Recipe, folders: Sequence[Path], seeds: Sequence[int], scale: Scale) -> Measured:
    return Measured(
        values=tuple(read_figure(folder, recipe.measure) for folder in folders),
        seeds=tuple(seeds),
        scale=scale,
        rounds=read(folders[0], Summary).rounds,
        bytes_sent=fmean(mean_bytes(folder) for folder in folders),
        commit=(read(folders[0], Environment).git or "")[:7],
    )


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
