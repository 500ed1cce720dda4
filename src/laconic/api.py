"""Laconic in Python, in the words of the TOML file: run, compare, check, load_run."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from laconic.results import Comparison, Run
from laconic.runs.config import Config, read_config
from laconic.runs.keywords import in_python, read_keywords
from laconic.runs.plan import check_all, go_on, plan_comparison, plan_seeds
from laconic.runs.run import MADE_HERE
from laconic.runs.typed_toml import ConfigError, toml_value

if TYPE_CHECKING:
    from laconic.records import Round

OnRound = Callable[["Round"], object]


def run(
    method: str = "fedtm",
    *,
    data: Any = None,
    clients: int | None = None,
    alpha: float | None = None,
    partition: str | None = None,
    rounds: int | None = None,
    seed: int | None = None,
    budget: str | int | None = None,
    out: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    on_round: OnRound | None = None,
    label: str | None = None,
    group: str | None = None,
    config: str | Path | None = None,
    **more: Any,
) -> Run:
    """One experiment, as `laconic run` does it and with the same files; called again with the same out, it goes on.

        run = laconic.run("clausepool", data="digits", clients=10, alpha=0.1, rounds=10, seed=0)
        run.accuracy, run.client(7).predict(rows)

    data: the name or path of a data set (as data.name in a file), a frame, (x, y), (x, y, owners), a set of Hugging
    Face's or partitions of flwr-datasets; what is at hand is kept in the run's folder, so that it can go on and be
    looked at again. Of tables: label= names the column to predict, group= the one that says who owns a row, features=
    those to learn from, test= the share of rows for the test.
    settings: of the method, {"training.rate": 0.1}. more: anything else the TOML file has: evaluate_every=5,
    booleanize="quantile:8", participation=0.5, workers=2. config: a file that all this stands above.
    on_round: told of each round's record as it ends.
    """
    if isinstance(seed, Sequence):
        raise ValueError(f"seed is {seed}; a run has one, laconic.compare([{method!r}], seed={seed}) makes several")
    words = {"clients": clients, "alpha": alpha, "partition": partition, "rounds": rounds, "seed": seed}
    words |= {"label": label, "group": group, "budget": write_budget(budget)}
    with in_python():
        here, words = choose_data(data, words | more)
        given = read_keywords([method], words, settings)
        plan = plan_seeds(
            read_config(as_path(config), [f"method.name={method}", *here.settings, *given]), [], as_path(out)
        )
        ((folder, planned),) = plan.items()
        planned = here.keep(folder, planned)
        go_on(planned, folder, Teller(on_round))
    return Run(folder)


def compare(
    methods: Sequence[str],
    *,
    data: Any = None,
    seed: int | Sequence[int] = (),
    budget: str | int | None = None,
    out: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    on_round: OnRound | None = None,
    label: str | None = None,
    group: str | None = None,
    config: str | Path | None = None,
    **more: Any,
) -> Comparison:
    """Several methods on one partition, as `laconic compare` does it.

        laconic.compare(["local-tm", "fedtm"], data="digits", alpha=0.1, rounds=20, seed=[0, 1, 2])

    settings: {"fedtm.epochs": 5} for one method, {"epochs": 5} for all that have it. The rest: as for laconic.run.
    """
    seeds = [seed] if isinstance(seed, int) else list(seed)
    with in_python():
        if isinstance(methods, str) or not methods:
            raise ConfigError("E110", f"methods is {methods!r}; a list of names was expected, ['local-tm', 'fedtm']")
        words = {"label": label, "group": group, "budget": write_budget(budget)} | more
        here, words = choose_data(data, words)
        given = read_keywords(methods, words, settings)
        plan = plan_comparison(methods, as_path(config), [*here.settings, *given], seeds, as_path(out))
        home = next(iter(plan)).parents[0 if len(seeds) < 2 else 1]
        plan = {folder: here.keep(home, planned) for folder, planned in plan.items()}
        check_all(plan)
        for folder, planned in plan.items():
            go_on(planned, folder, Teller(on_round))
    return Comparison(home, [Run(folder) for folder in plan])


def check(method: str = "fedtm", *, data: str | Path | None = None, **words: Any) -> dict[str, Any]:
    """What a run would cost in bytes, memory and time, as `laconic check` tells it; nothing is written."""
    from laconic.runs.check import check

    settings, config = words.pop("settings", None), words.pop("config", None)
    words["budget"] = write_budget(words.get("budget"))
    with in_python():
        given = read_keywords([method], {"data": data} | words, settings)
        return check(read_config(as_path(config), [f"method.name={method}", *given]))


def load_run(folder: str | Path) -> Run:
    """A run that was made before, finished or not."""
    found = Run(Path(folder))
    found.summary  # noqa: B018  # a folder that holds no run is refused here and now
    return found


class Teller:
    """Hands on what happens in a run to who wants to know; see runs.run.Watch."""

    def __init__(self, on_round: OnRound | None) -> None:
        self.on_round = on_round

    def started(self, title: str, rounds: int, first_round: int) -> None: ...

    def progressed(self, round: int, done: int, total: int, what: str) -> None: ...

    def said(self, line: str) -> None: ...

    def finished_round(self, row: Round, seconds: float) -> None:
        if self.on_round is not None and row.round:
            self.on_round(row)


class Chosen:
    """A data set by name, or one at hand that is yet to get a file of its own."""

    def __init__(self, settings: list[str], arrays: bytes | None = None) -> None:
        self.settings, self.arrays = settings, arrays

    def keep(self, folder: Path, config: Config) -> Config:
        """Writes what was at hand beside the runs; the configuration then names that file."""
        if self.arrays is None:
            return config
        from dataclasses import replace

        from laconic.files import make_folder, write_atomically

        path = (folder / MADE_HERE).resolve()
        if path.exists() and path.read_bytes() != self.arrays:
            raise ConfigError("E160", f"{path} holds other data.  Choose another out")
        make_folder(folder)
        write_atomically(path, self.arrays)
        return replace(config, data=replace(config.data, name=str(path)))


def choose_data(data: Any, words: Mapping[str, Any]) -> tuple[Chosen, dict[str, Any]]:
    """And the words that are left for the configuration: what is at hand is read here and now."""
    if data is None or isinstance(data, str | Path):
        return Chosen([] if data is None else [f"data.name={toml_value(str(data))}"]), dict(words)
    import numpy as np

    from laconic.data.datasets import to_arrays
    from laconic.data.hub import OWNER
    from laconic.data.memory import from_memory
    from laconic.data.reading import Reading

    read = {key: words[key] for key in ("label", "group", "features", "test", "size") if words.get(key) is not None}
    dataset, archive = from_memory(data, Reading(**read)), io.BytesIO()
    np.savez_compressed(archive, **to_arrays(dataset))  # type: ignore[arg-type]
    left = {key: value for key, value in words.items() if key not in read or key == "group"}
    if OWNER in dataset.groups and left.get("group") is None and left.get("partition") is None:
        left["group"] = OWNER
    return Chosen([f"data.name={MADE_HERE}"], archive.getvalue()), left


def write_budget(budget: str | int | None) -> str | None:
    return str(budget) if budget is not None else None


def as_path(given: str | Path | None) -> Path | None:
    return None if given is None else Path(given)
