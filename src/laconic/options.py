"""Options that several commands take, and how their values are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

# click 8.5 drops the help of arguments, so the docstrings of the commands say what they are
ConfigFile = Annotated[Path | None, typer.Argument(metavar="EXP.TOML")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Above the file, e.g. data.alpha=0.1; repeatable."),
]
Seeds = Annotated[list[str] | None, typer.Option("--seed", help="One or more: --seed 0 --seed 1, or --seed 0,1.")]
Budget = Annotated[str | None, typer.Option(help="Most bytes per client and round, up and down together, e.g. 5kB.")]
AsJson = Annotated[bool, typer.Option("--json", help="Results as JSON, on the last line of stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def choose(what: str, given: str, valid: Sequence[str]) -> list[str]:
    """The comma-separated names in `given`, spelt as in `valid`, without repeats."""
    spelling = {name.lower(): name for name in valid}
    names = [part.strip() for part in given.split(",")]
    for name in names:
        if name.lower() not in spelling:
            raise typer.BadParameter(f"unknown {what} {name!r}; choose from {', '.join(valid)}")
    return list(dict.fromkeys(spelling[name.lower()] for name in names))
