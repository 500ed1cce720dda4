"""What commands do alike: run what is planned, print results to stdout, explain errors on stderr."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from laconic.files import InUse
from laconic.signals import SIGPIPE, find_number, heeded, hush

if TYPE_CHECKING:
    from rich.table import Table

    from laconic.records import Summary
    from laconic.runs.plan import Plan

PIPED_COLUMNS = 400  # enough for any table of results
LISTED_COLUMNS = 118  # of what is listed in words, where no terminal says how wide it is


@contextmanager
def explained(*, debug: bool) -> Iterator[None]:
    """Ends with one line on stderr and an exit code: 2 for what was asked, 3 for a budget, 128 + a signal's, else 1."""
    try:
        with heeded():
            yield
    except (typer.BadParameter, typer.Exit, typer.Abort):
        raise
    except BrokenPipeError:
        hush()
        raise typer.Exit(128 + SIGPIPE) from None
    except KeyboardInterrupt as stop:
        end(128 + find_number(stop), "stopped")
    except Exception as error:
        if debug:
            import traceback

            traceback.print_exc()
        end(*explain(error))


def end(code: int, line: str) -> NoReturn:
    with suppress(BrokenPipeError):
        typer.echo(line, err=True)
    hush()
    raise typer.Exit(code) from None


def explain(error: Exception) -> tuple[int, str]:
    from laconic.runs.typed_toml import ConfigError

    if isinstance(error, ConfigError):
        return 2, f"error[{error.code}] {error}"
    if isinstance(error, InUse):
        return 2, f"error[E160] {error}"
    if runs := sys.modules.get("laconic.runs.run"):  # slow to import, and without it nothing of it was raised
        if isinstance(error, runs.Interrupted):
            return 128 + error.number, str(error)
        if isinstance(error, runs.OverBudget):
            return 3, f"error[E130] {error}"
    notes = getattr(error, "__notes__", [])
    if isinstance(error, ValueError | FileNotFoundError) and not notes:  # not under way, so it is about what was asked
        return 2, f"error: {error}"
    remedy = "; ".join([*notes, "run again with --debug for the traceback"])
    return 1, f"error: {type(error).__name__}: {error}  ({remedy})"


def carry_out(plan: Plan, *, as_json: bool, quiet: bool, as_list: bool, where: str = "") -> None:
    """Everything planned, one after the other; results to stdout. where: said once it is clear that all can be done."""
    from laconic.runs.display import make_display
    from laconic.runs.plan import check_all, go_on

    if len(plan) > 1:  # one alone is checked where it starts
        check_all(plan)
    if where and not quiet:
        typer.echo(where, err=True)
    summaries: list[Summary] = []
    for folder, config in plan.items():
        with make_display(folder, quiet=quiet) as display:
            summaries.append(go_on(config, folder, display))
    tell(list(plan), summaries, as_json=as_json, as_list=as_list)


def tell(folders: list[Path], summaries: list[Summary], *, as_json: bool, as_list: bool) -> None:
    from laconic.gallery import report
    from laconic.report import compare_table, format_bytes, read_runs, render
    from laconic.report.tables import format_percent

    home = folders[0] if len(folders) == 1 else Path(os.path.commonpath(folders))
    page = home / "report.html"
    runs = read_runs(folders)
    report(runs, page)
    if as_json:
        shown = [summary.to_json() for summary in summaries]
        typer.echo(json.dumps(shown if as_list else shown[0]))
        return
    if as_list:
        print_table(render(compare_table(runs)))
    else:
        done = summaries[0]
        mean, best, p10 = map(format_percent, (done.accuracy_mean, done.accuracy_best, done.accuracy_p10))
        of = "" if done.tested == "test" else f" on {done.tested} examples"
        typer.echo(f"accuracy{of} {mean} % (best {best} %, worst tenth {p10} %) after {done.rounds} rounds")
        up, down = format_bytes(done.upload_bytes), format_bytes(done.download_bytes)
        typer.echo(f"{done.seconds:.0f} s, up {up}, down {down}")
    typer.echo(f"report: {page}")


def find_width() -> int:
    """Columns for what is told in words."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else LISTED_COLUMNS


def show_table(rows: list[dict[str, Any]], piped_columns: int = LISTED_COLUMNS) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in rows[0]:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(escape(str(value)) for value in row.values()))
    print_table(table, piped_columns)


def print_table(table: Table, piped_columns: int = PIPED_COLUMNS) -> None:
    """Folded to fit a terminal, or that many columns when piped."""
    from rich.console import Console

    console = Console(highlight=False, width=None if sys.stdout.isatty() else piped_columns)
    with console.capture() as shown:
        console.print(table)
    typer.echo(shown.get(), nl=False)  # rich has an end of its own for a reader that has gone
