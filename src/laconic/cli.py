"""The command line. Commands import what they need when they run, so that help and lists are instant."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from laconic import __version__
from laconic.bench import commands as bench
from laconic.console import carry_out, end, explained, show_table
from laconic.deploy import commands as deploy
from laconic.fleets import FLEETS
from laconic.model_commands import explain, export, predict
from laconic.options import AsJson, Budget, ConfigFile, Debug, Quiet, Seeds, Settings, choose
from laconic.reproduce.recipe import SCALES, Scale

app = typer.Typer(
    help="Personalised federated learning in few bytes.",
    epilog="Example: laconic demo",
    no_args_is_help=True,
)


def show_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"laconic {__version__}")
        raise typer.Exit


@app.callback()
def describe_self(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=show_version, is_eager=True)
    ] = False,
) -> None:
    """What stands before any command."""


def read_seeds(given: Sequence[str] | None) -> list[int]:
    parts = [part.strip() for text in given or () for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise typer.BadParameter(f"--seed {','.join(parts)}: give whole numbers from 0 up, e.g. --seed 0,1,2")
    return list(dict.fromkeys(map(int, parts)))


def read_settings(settings: Sequence[str] | None, budget: str | None) -> list[str]:
    return [*(settings or ()), *([] if budget is None else [f"budget={budget}"])]


def run(
    config: ConfigFile = None,
    settings: Settings = None,
    seeds: Seeds = None,
    budget: Budget = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; several seeds: its parent. Else runs/TIME_...")] = None,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Go on with a stopped run; --set rounds=50 prolongs one."),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run one experiment and record every byte; Ctrl-C leaves a checkpoint to go on from.

    EXP.TOML: a file made by laconic init; without it everything is at its default.
    """
    numbers = read_seeds(seeds)
    if resume is not None and (config or seeds or budget is not None or out):
        raise typer.BadParameter(
            "--resume goes on with the settings of its run; give it alone, or with --set rounds=50"
        )
    with explained(debug=debug):
        from laconic.runs.config import read_config
        from laconic.runs.plan import check_free, plan_resumption, plan_seeds

        if resume is not None:
            plan = plan_resumption(resume, settings or ())
        else:
            plan = plan_seeds(read_config(config, read_settings(settings, budget)), numbers, out)
            for folder in plan:
                check_free(folder)
        carry_out(plan, as_json=as_json, quiet=quiet, as_list=len(plan) > 1)


def compare(
    methods: Annotated[list[str], typer.Argument(metavar="METHOD...")],
    config: Annotated[
        Path | None, typer.Option(metavar="EXP.TOML", help="Made by laconic init; else defaults.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="fedtm.KEY for one method, method.KEY for all that have it."),
    ] = None,
    seeds: Seeds = None,
    budget: Budget = None,
    out: Annotated[Path | None, typer.Option(help="Folder for all runs; given again, it goes on there.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run several methods on one and the same partition, print a table and write one report.

    METHOD: names out of laconic list methods.
    """
    numbers = read_seeds(seeds)
    with explained(debug=debug):
        from laconic.runs.plan import plan_comparison

        plan = plan_comparison(methods, config, read_settings(settings, budget), numbers, out)
        folder = next(iter(plan)).parents[0 if len(numbers) < 2 else 1]
        where = f"in {folder}; after a stop, the same command with --out {folder} goes on" if out is None else ""
        carry_out(plan, as_json=as_json, quiet=quiet, as_list=True, where=where)


def sweep(
    words: Annotated[list[str], typer.Argument(metavar="[EXP.TOML] KEY=A,B...")],
    over: Annotated[list[str] | None, typer.Option("--over", metavar="KEY=A,B", help="The same; repeatable.")] = None,
    settings: Settings = None,
    seeds: Seeds = None,
    budget: Budget = None,
    out: Annotated[Path | None, typer.Option(help="Folder for all runs; given again, it goes on there.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run an experiment once for every choice of some settings' values, print a table and write one report.

    EXP.TOML: a file made by laconic init; without it everything is at its default. KEY=A,B: values to go over; choose
    among them by --set data.tested=validation, never by the test.
    """
    numbers = read_seeds(seeds)
    files = [word for word in words if "=" not in word]
    if len(files) > 1:
        raise typer.BadParameter(f"{', '.join(files)} are several files; give one, and KEY=A,B for what to go over")
    with explained(debug=debug):
        from laconic.runs.sweep import plan_sweep

        axes = [*(over or ()), *(word for word in words if "=" in word)]
        plan = plan_sweep(Path(files[0]) if files else None, read_settings(settings, budget), axes, numbers, out)
        carry_out(plan, as_json=as_json, quiet=quiet, as_list=True)


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...")],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="The page; default report.html in the one folder given.")
    ] = None,
    png: Annotated[bool, typer.Option("--png", help="Figures for a paper too, in the folder figures.")] = False,
    pdf: Annotated[bool, typer.Option("--pdf", help="The same as PDF.")] = False,
    svg: Annotated[bool, typer.Option("--svg", help="The same as SVG.")] = False,
    clauses_of: Annotated[
        str | None,
        typer.Option(metavar="CLIENTS", help="Whose clauses are shown, by comma; none: nobody's. Else three clients'."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list instead of a page, one object per run.")] = False,
    debug: Debug = False,
) -> None:
    """Write runs as one self-contained page: accuracy against bytes, clients, fairness, time on the air, clauses.

    RUN: folders that laconic run or compare made; of a comparison or several seeds, the folder that holds them all.
    """
    kinds = [kind for kind, is_wanted in (("png", png), ("pdf", pdf), ("svg", svg)) if is_wanted]
    if as_json and (out or kinds or clauses_of is not None):
        raise typer.BadParameter("--json goes to stdout, and nothing else is written; give it alone")
    clients = None if clauses_of is None else [] if clauses_of == "none" else clauses_of.split(",")
    with explained(debug=debug):
        from laconic.gallery import report as write_page
        from laconic.report import describe, read_runs
        from laconic.report.paper import check_installed, write_figures

        check_installed(kinds)
        if as_json:
            typer.echo(json.dumps([describe(run) for run in read_runs(runs)]))
            return
        if out is None and len(runs) > 1:
            raise typer.BadParameter("say where several folders go: -o report.html")
        page = out or runs[0] / "report.html"
        found = read_runs(runs)
        write_page(found, page, clients)
        typer.echo(f"report: {page}")
        for figure in write_figures(found, page.parent / "figures", kinds):
            typer.echo(f"figure: {figure}")


def live(
    run: Annotated[Path | None, typer.Argument(metavar="RUN")] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; others than this machine see the page then.")
    ] = "127.0.0.1",
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Else the first free one from 8470 on.")] = None,
    debug: Debug = False,
) -> None:
    """Follow runs as they go, on a page in the browser: rounds, accuracy, bytes, budget, clients, nodes.

    RUN: a run folder, one of a comparison or sweep, or a deployment; without it, all that is under runs/.
    """
    with explained(debug=debug):
        from laconic.runs.typed_toml import lacking

        try:
            from laconic.live.server import follow
        except ImportError as error:
            raise lacking("laconic live", "web", error) from error
        follow(run, host, port, lambda line: typer.echo(line, err=True), typer.echo)


def check(
    config: ConfigFile = None,
    settings: Settings = None,
    budget: Budget = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Validate an experiment and estimate bytes, memory and time, from two rounds that train next to nothing.

    EXP.TOML: a file made by laconic init; without it everything is at its default.
    """
    with explained(debug=debug):
        from laconic.runs.check import check
        from laconic.runs.config import read_config

        found = check(read_config(config, read_settings(settings, budget)), lambda line: typer.echo(line, err=True))
        if as_json:
            typer.echo(json.dumps(found))
            return
        from laconic.report import format_bytes
        from laconic.runs.display import format_seconds

        for name, value in found.items():
            is_bytes, is_seconds = "bytes" in name, name.startswith("seconds")
            shown = format_bytes(value) if is_bytes else format_seconds(value) if is_seconds else value
            typer.echo(f"{name.replace('_', ' '):24} {shown}")


def list_(
    what: Annotated[str, typer.Argument()] = "methods",
    travels: Annotated[bool, typer.Option("--travels", help="Of a method, only what travels.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """What there is: methods, datasets, partitions, or the settings of one method and what travels.

    WHAT: methods, datasets, partitions, or the name of a method.
    """
    with explained(debug=debug):
        from laconic.catalogue import LISTS, list_rows
        from laconic.runs.typed_toml import toml_value

        rows = list_rows(what, travels=travels)
        if as_json:
            typer.echo(json.dumps(rows))
            return
        if travels:
            show_travels(rows)
            return
        shown = [row | {"default": toml_value(row["default"])} if "default" in row else row for row in rows]
        if what == "methods":  # of papers a table would be too wide
            shown = [{key: row[key] for key in ("name", "family", "travels")} for row in rows]
        if shown:
            show_table(shown)
        if what not in LISTS:
            typer.echo("\nWhat travels")
            show_travels(list_rows(what, travels=True))


def show_travels(rows: list[dict[str, Any]]) -> None:
    if rows:
        show_table([row | {"optional": "yes" if row["optional"] else ""} for row in rows])
    else:
        typer.echo("nothing")


def conform(
    methods: Annotated[list[str], typer.Argument(metavar="METHOD...")],
    fleets: Annotated[
        str, typer.Option("--fleets", help="Which fleets, by comma: " + ", ".join(FLEETS) + ".")
    ] = "local",
    debug: Debug = False,
) -> None:
    """Try on a method what every method keeps: same bits anywhere, resumed, with replies lost, every byte counted.

    METHOD: names out of laconic list methods, or module:Class of your own.
    """
    names = choose("fleet", fleets, list(FLEETS))
    with explained(debug=debug):
        from laconic.conformance import try_claims
        from laconic.runs.config import find_method

        for method in methods:
            find_method(method)
        n_broken = 0
        for method in methods:
            for line, holds in try_claims(method, names):
                typer.echo(line)
                n_broken += not holds
        if n_broken:
            typer.echo(f"{n_broken} of these claims do not hold", err=True)
            raise typer.Exit(1)


def init(
    path: Annotated[Path, typer.Argument(metavar="EXP.TOML")] = Path("exp.toml"),
    method: Annotated[str, typer.Option(help="See laconic list methods.")] = "fedtm",
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    debug: Debug = False,
) -> None:
    """Write an experiment file with every setting, its default and what it means."""
    with explained(debug=debug):
        from laconic.runs.config import commented_template
        from laconic.runs.typed_toml import ConfigError

        text = commented_template(method)
        if path.exists() and not force:
            raise ConfigError("E160", f"{path} exists.  Choose another name, or overwrite it with --force")
        path.write_text(text, encoding="utf-8")
        typer.echo(f"{path}: edit it, then  laconic check {path}  and  laconic run {path}")


def reproduce(
    what: Annotated[str, typer.Argument(metavar="[PAPER[:TABLE[:ROW]]]")] = "",
    scale: Annotated[str, typer.Option(help="One of: " + ", ".join(SCALES) + ".")] = "small",
    seeds: Annotated[int, typer.Option(min=1, help="How many, from 0 on.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with runs that were begun.")] = False,
    is_list: Annotated[bool, typer.Option("--list", help="Run nothing; show rows, commands, hours, verdicts.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for the runs, kept by scale.")] = Path("runs/reproduce"),
    scoreboard: Annotated[
        Path | None, typer.Option(help="Where results are entered; else the one in docs/results of the source.")
    ] = None,
    workers: Annotated[int, typer.Option(min=0, help="Clients at once; 0: one per core.")] = 0,
    download: Annotated[
        bool, typer.Option("--download", help="Fetch data sets that are not there; else their rows are left out.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Measure published figures again, with their papers' settings, and enter what came of it.

    PAPER: cs-pfedtm, fedpurin, pbfl, fedtm or pfed1bs; TABLE as printed; ROW: method/data/alpha, or how it begins.
    """
    chosen = cast(Scale, choose("scale", scale, list(SCALES))[0])
    with explained(debug=debug):
        from laconic.reproduce.listing import show_rows
        from laconic.reproduce.published import select
        from laconic.reproduce.scoreboard import find_file

        file, figures, left_out = scoreboard or find_file(), select(what), list[str]()
        if not is_list:
            if not what:
                raise typer.BadParameter("say what: PAPER, PAPER:TABLE or PAPER:TABLE:ROW; --list shows what there is")
            from laconic.reproduce.carry import carry_out, check_free, leave_out, plan_series
            from laconic.runs.run import Interrupted
            from laconic.signals import find_number

            planned = plan_series(figures, chosen, range(seeds), out, workers)
            if not resume:
                check_free(planned)
            try:
                due, left_out = leave_out(planned, download=download)  # before hours are spent on the rest
                for line in left_out:
                    typer.echo(line, err=True)
                for series in due:
                    carry_out(series, file, quiet=quiet)
            except (Interrupted, KeyboardInterrupt) as stop:  # a run that went on by itself would not be entered
                number = stop.number if isinstance(stop, Interrupted) else find_number(stop)
                end(128 + number, "stopped, with all finished rounds safe.  Go on with the same command and --resume")
        show_rows(figures, file, as_json=as_json)
        if left_out:
            raise typer.Exit(1)


def demo(debug: Debug = False) -> None:
    """Compare a federated method with learning alone on embedded images of digits; needs no download."""
    with explained(debug=debug):
        from laconic.demo import demo

        demo()


# The table of commands: one line each.
app.command("demo", epilog="Example: laconic demo")(demo)
app.command("list", epilog="Example: laconic list fedtm")(list_)
app.command("init", epilog="Example: laconic init exp.toml --method fedtm")(init)
app.command("check", epilog="Example: laconic check exp.toml --set data.clients=100")(check)
app.command("conform", epilog="Example: laconic conform my_method:MyMethod --fleets local,process")(conform)
app.command("run", epilog="Example: laconic run exp.toml --set data.alpha=0.1 --seed 0,1,2 --budget 5kB")(run)
app.command("compare", epilog="Example: laconic compare local-tm fedtm --set rounds=5 --out runs/first")(compare)
app.command("sweep", epilog="Example: laconic sweep exp.toml --over data.alpha=0.05,0.1 method.epochs=1,5")(sweep)
app.command("live", epilog="Example: laconic live runs/first")(live)
app.command("report", epilog="Example: laconic report runs/first --pdf")(report)
app.command(
    "reproduce", epilog="Example: laconic reproduce cs-pfedtm:9:personalisation-only/cifar10/0.1 --scale small"
)(reproduce)
app.command("export", epilog="Example: laconic export runs/first --client 7 --to c -o model.h")(export)
app.command("explain", epilog="Example: laconic explain runs/first --client 7 --row 0 -o page.html")(explain)
app.command("predict", epilog="Example: laconic predict model.safetensors rows.csv")(predict)
app.add_typer(deploy.app, name="deploy")
app.add_typer(bench.app, name="bench")


def main() -> None:
    app()
