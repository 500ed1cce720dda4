"""Runs what figures need, one after the other, and enters each as soon as its runs have ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from laconic.files import lock
from laconic.records import Environment, Summary, read
from laconic.reproduce.measures import mean_bytes, read_figure
from laconic.reproduce.page import refresh
from laconic.reproduce.published import Figure, read_figures
from laconic.reproduce.recipe import Recipe, Scale
from laconic.reproduce.scoreboard import Measured, enter, list_rows, read_measured, write
from laconic.reproduce.ways import find_way
from laconic.runs.config import Config, DataSettings, read_config
from laconic.runs.display import make_display
from laconic.runs.plan import go_on
from laconic.runs.prepare import load_for
from laconic.runs.typed_toml import ConfigError

if TYPE_CHECKING:
    from laconic.runs.plan import Plan

ENTERING_SECONDS = 60.0  # that another command may take to enter what it found


@dataclass(frozen=True)
class Series:
    """Runs of one recipe that differ in the seed, and the figures that they tell."""

    rows: tuple[tuple[Figure, Recipe], ...]
    scale: Scale
    plan: Plan
    out: Path  # where all runs lie

    @property
    def data(self) -> DataSettings:
        return next(iter(self.plan.values())).data

    @property
    def has_ended(self) -> bool:
        return all((folder / Summary.file).exists() for folder in self.plan)


def plan_series(figures: Sequence[Figure], scale: Scale, seeds: Sequence[int], out: Path, workers: int) -> list[Series]:
    """What these figures need; runs are entered for all the rows that they serve, asked for or not."""
    every = group_by_runs(read_figures())
    return [
        Series(tuple(every[run]), scale, plan_seeds(every[run][0][1], scale, seeds, out, workers), out)
        for run in group_by_runs(figures)
    ]


def group_by_runs(figures: Sequence[Figure]) -> dict[str, list[tuple[Figure, Recipe]]]:
    """Those that can be run, by name of the runs, which rows may share."""
    groups: dict[str, list[tuple[Figure, Recipe]]] = {}
    for figure in figures:
        recipe = find_way(figure)
        if isinstance(recipe, Recipe):
            groups.setdefault(recipe.run, []).append((figure, recipe))
    return groups


def plan_seeds(recipe: Recipe, scale: Scale, seeds: Sequence[int], out: Path, workers: int) -> Plan:
    config = read_config(None, [*recipe.settings_at(scale), f"fleet.workers={workers}"])
    return {out / scale / recipe.run / f"seed-{seed}": replace(config, seed=seed) for seed in seeds}


def check_free(planned: Iterable[Series]) -> None:
    """Finished runs are used again; what was begun goes on only if that is asked for."""
    for folder in (folder for series in planned for folder in series.plan):
        if (folder / "config.toml").exists() and not (folder / Summary.file).exists():
            raise ConfigError("E160", f"{folder} holds a run that was begun.  Go on with it: --resume")


def leave_out(planned: Sequence[Series], *, download: bool) -> tuple[list[Series], list[str]]:
    """Those whose data are there, and a line for each data set that is not. If that is all, it is an error."""
    lacking = find_lacking([series for series in planned if not series.has_ended], download=download)
    without = [series for series in planned if series.data.name in lacking and not series.has_ended]
    if lacking and len(without) == len(planned):
        raise next(iter(lacking.values()))
    told = []
    for name, why in lacking.items():
        n_rows = sum(len(series.rows) for series in without if series.data.name == name)
        told.append(f"left out ({n_rows} row{'s' * (n_rows > 1)}): {why}")
    return [series for series in planned if series not in without], told


def find_lacking(planned: Iterable[Series], *, download: bool) -> dict[str, ConfigError]:
    """By name of the data set, why it cannot be had."""
    lacking: dict[str, ConfigError] = {}
    for name, data in {series.data.name: series.data for series in planned}.items():
        try:
            load_for(replace(data, download=download))
        except ConfigError as error:
            lacking[name] = error
    return lacking


def carry_out(series: Series, scoreboard: Path, *, quiet: bool) -> None:
    """Runs what has not ended, and enters what all of them tell."""
    for folder, config in series.plan.items():
        with make_display(folder, quiet=quiet) as display:
            go_on(as_begun(config, folder), folder, display)
    found = [(figure, measure(recipe, series)) for figure, recipe in series.rows]
    with lock(series.out, ENTERING_SECONDS):  # others may run beside, and enter theirs
        measured = read_measured(scoreboard)
        for figure, each in found:
            enter(measured, figure, each)
        write(scoreboard, measured)
        refresh(scoreboard.with_suffix(".md"), [asdict(row) for row in list_rows(read_figures(), measured)])


def measure(recipe: Recipe, series: Series) -> Measured:
    folders = [*series.plan]
    return Measured(
        values=tuple(read_figure(folder, recipe.measure) for folder in folders),
        seeds=tuple(config.seed for config in series.plan.values()),
        scale=series.scale,
        rounds=read(folders[0], Summary).rounds,
        bytes_sent=fmean(mean_bytes(folder) for folder in folders),
        commit=(read(folders[0], Environment).git or "")[:7],
    )


def as_begun(config: Config, folder: Path) -> Config:
    """On how many workers is no matter of the figure."""
    if not (folder / "config.toml").exists():
        return config
    return replace(config, fleet=replace(config.fleet, workers=read_config(folder / "config.toml").fleet.workers))
