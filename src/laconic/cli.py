"""The command line. Commands import what they need when they run, so that help and lists are instant."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from laconic import __version__
from laconic.bench import peers
from laconic.bench.jobs import JOBS, NETWORK_JOBS, NETWORK_OTHERS
from laconic.console import carry_out, explained, find_width, show_table
from laconic.deploy import commands as deploy
from laconic.fleets import FLEETS
from laconic.reproduce.recipe import SCALES, Scale

app = typer.Typer(
    help="Personalised federated learning in few bytes.",
    epilog="Example: laconic demo",
    no_args_is_help=True,
)
bench_app = typer.Typer(
    help="Measure ours against other libraries, on this machine.",
    epilog="Example: laconic bench tsetlin --jobs A,E --against tmu --seeds 5 --json",
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
WhichClient = Annotated[str | None, typer.Option("--client", help="Number or name of a client of the run.")]
OwnCode = Annotated[
    str, typer.Option(metavar="MODULE:CLASS", help="A network of your own that a model file may have imported.")
]
FORMS = ("model", "c", "onnx", "rules")


def choose(what: str, given: str, valid: Sequence[str]) -> list[str]:
    """The comma-separated names in `given`, spelt as in `valid`, without repeats."""
    spelling = {name.lower(): name for name in valid}
    names = [part.strip() for part in given.split(",")]
    for name in names:
        if name.lower() not in spelling:
            raise typer.BadParameter(f"unknown {what} {name!r}; choose from {', '.join(valid)}")
    return list(dict.fromkeys(spelling[name.lower()] for name in names))


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
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list instead of a page, one object per run.")] = False,
    debug: Debug = False,
) -> None:
    """Write runs as one self-contained page: accuracy against bytes, clients, fields, settings.

    RUN: folders that laconic run or compare made; of a comparison or several seeds, the folder that holds them all.
    """
    with explained(debug=debug):
        from laconic.records import find_runs
        from laconic.report import describe, read_run, write_report

        if as_json:
            typer.echo(json.dumps([describe(read_run(run)) for folder in runs for run in find_runs(folder)]))
            return
        if out is None and len(runs) > 1:
            raise typer.BadParameter("say where several folders go: -o report.html")
        page = out or runs[0] / "report.html"
        write_report(runs, page)
        typer.echo(f"report: {page}")


def export(
    source: Annotated[Path, typer.Argument(metavar="RUN|NODE|MODEL")],
    client: WhichClient = None,
    to: Annotated[str, typer.Option("--to", help="As what, one of: " + ", ".join(FORMS) + ".")] = "model",
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="The file; else named after method and client.")
    ] = None,
    name: Annotated[str, typer.Option(help="What functions and tables in C begin with.")] = "model",
    evidence: Annotated[
        bool, typer.Option(help="A model takes along how often its rules fired on training examples.")
    ] = True,
    own_code: OwnCode = "",
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Take a client's model out of its run: as a file for laconic, a C header, an ONNX graph, or rules in words.

    RUN: a run folder (with --client). NODE: the folder of a node, for its own model. MODEL: a file exported before.
    What is written as C or ONNX is first compared with Python, on all test examples of the client where they are at
    hand, else on random rows; what differs is not written.
    """
    (form,) = choose("form", to, list(FORMS))
    with explained(debug=debug):
        from laconic.exporting import export_model
        from laconic.opening import find_test_rows, open_model

        model = open_model(source, client, own_code=own_code)
        rows = find_test_rows(source, model) if form in ("c", "onnx") else None
        written, lines = export_model(model, form, out, name=name, rows=rows, evidence=evidence)
        typer.echo(json.dumps(written) if as_json else "\n".join(lines))


def predict(
    source: Annotated[Path, typer.Argument(metavar="MODEL|RUN|NODE")],
    rows: Annotated[Path, typer.Argument(metavar="ROWS")],
    client: WhichClient = None,
    own_code: OwnCode = "",
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Predict rows by a client's model: a class name on each line of stdout.

    MODEL: a file that laconic export wrote. RUN: a run folder (with --client). NODE: the folder of a node.
    ROWS: a .csv, with names of columns on top or in the order of training, a .parquet, or an .npz with an array called
    rows; as raw as the data set was, for the model brings its preprocessing.
    """
    with explained(debug=debug):
        from laconic.opening import open_model
        from laconic.rows import read_rows

        model = open_model(source, client, own_code=own_code)
        about, has_text = model.about, bool(model.preprocessing.text_columns)
        predicted = model.predict(read_rows(rows, about.features, as_text=has_text)).tolist()
        typer.echo(json.dumps({"client": model.about.client, "labels": predicted}) if as_json else "\n".join(predicted))


def explain(
    source: Annotated[Path, typer.Argument(metavar="RUN|MODEL")],
    client: WhichClient = None,
    label: Annotated[str | None, typer.Option("--class", help="Of this class alone.")] = None,
    row: Annotated[int | None, typer.Option(help="What decides about this row, from 0 up.")] = None,
    rows: Annotated[
        Path | None, typer.Option(metavar="FILE", help="An .npz or .csv that the row is of; else the client's tests.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Rules shown of each class, clauses shown of a row.")] = 5,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="One self-contained page instead of text.")] = None,
    own_code: OwnCode = "",
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show the rules of a client's model in words and pictures, or with --row what decides about one row.

    RUN: a run folder (with --client). MODEL: a file that laconic export wrote.
    """
    with explained(debug=debug):
        from laconic.explaining import explain_client
        from laconic.opening import open_model

        model = open_model(source, client, own_code=own_code)
        found = explain_client(model, source, label=label, row=row, file=rows)
        if out is not None:
            from laconic.explain.page import write_page

            write_page(found, out, top=top)
        if as_json:
            typer.echo(json.dumps(found.to_json()))
        elif out is not None:
            typer.echo(f"explanation: {out}")
        else:
            from laconic.explain.text import as_text

            typer.echo(as_text(found, width=find_width(), top=top))


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


def bench_tsetlin(
    jobs: Annotated[str, typer.Option(help="Which jobs, by comma: " + ", ".join(JOBS) + ".")] = ",".join(JOBS),
    against: Annotated[
        str, typer.Option(help="Which peers, by comma: " + ", ".join(peers.VERSIONS) + " (any case).")
    ] = ",".join(peers.VERSIONS),
    threads: Annotated[int, typer.Option(min=1, help="Threads per engine; 1 measures CPU time, more wall time.")] = 1,
    seeds: Annotated[int, typer.Option(min=1, help="Machines per engine; accuracies are means over them.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list, one object per job.")] = False,
) -> None:
    """Train and predict with our Tsetlin Machine and its peers in turns; print speeds, accuracy and memory.

    The peers are installed at first use, each into its own environment (needs pip and a C compiler).
    """
    names, chosen = choose("job", jobs, list(JOBS)), choose("peer", against, list(peers.VERSIONS))
    from rich.console import Console

    from laconic.bench import tsetlin

    for name in names:
        if not tsetlin.select_peers(JOBS[name], chosen):
            raise typer.BadParameter(f"job {name} has no peer in --against; add {', '.join(peers.WITH_COALESCED)}")
    try:
        rows = list(
            tsetlin.run(names, chosen, threads=threads, seeds=seeds, say=lambda line: typer.echo(line, err=True))
        )
    except (FileNotFoundError, RuntimeError, ValueError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from error
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
    else:
        Console().print(tsetlin.table(rows))


def bench_networks(
    jobs: Annotated[str, typer.Option(help="Which methods, by comma: " + ", ".join(NETWORK_JOBS) + ".")] = ",".join(
        NETWORK_JOBS
    ),
    against: Annotated[str, typer.Option(help="Which others, by comma: " + ", ".join(NETWORK_OTHERS) + ".")] = ",".join(
        NETWORK_OTHERS
    ),
    rounds: Annotated[int, typer.Option(min=1, help="Rounds that are timed, after one that is not.")] = 10,
    examples: Annotated[int, typer.Option(min=1, help="Examples of each of the 100 clients.")] = 600,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list, one object per job.")] = False,
    debug: Debug = False,
) -> None:
    """Train a convolutional network by rounds of ours and of others in turns; print speeds.

    The others: a bare loop of two processes, one client after the other on two threads, and Flower's simulator where it
    and Ray are installed.
    """
    names, others = choose("job", jobs, list(NETWORK_JOBS)), choose("peer", against, list(NETWORK_OTHERS))
    with explained(debug=debug):
        from laconic.runs.config import find_method

        for name in names:
            find_method(name)
        from rich.console import Console

        from laconic.bench import networks

        def say(line: str) -> None:
            typer.echo(line, err=True)

        rows = networks.run(names, others, rounds=rounds, n_examples=examples, say=say)
        if as_json:
            typer.echo(json.dumps(rows, indent=2))
        else:
            Console().print(networks.table(rows))


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

        file, figures = scoreboard or find_file(), select(what)
        if not is_list:
            if not what:
                raise typer.BadParameter("say what: PAPER, PAPER:TABLE or PAPER:TABLE:ROW; --list shows what there is")
            from laconic.reproduce.carry import reproduce

            reproduce(figures, chosen, range(seeds), out, file, resume=resume, workers=workers, quiet=quiet)
        show_rows(figures, file, as_json=as_json)


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
app.command("report", epilog="Example: laconic report runs/first")(report)
app.command(
    "reproduce", epilog="Example: laconic reproduce cs-pfedtm:9:personalisation-only/cifar10/0.1 --scale small"
)(reproduce)
app.command("export", epilog="Example: laconic export runs/first --client 7 --to c -o model.h")(export)
app.command("explain", epilog="Example: laconic explain runs/first --client 7 --row 0 -o page.html")(explain)
app.command("predict", epilog="Example: laconic predict model.safetensors rows.csv")(predict)
app.add_typer(deploy.app, name="deploy")
app.add_typer(bench_app, name="bench")
bench_app.command("tsetlin", epilog="Example: laconic bench tsetlin --jobs A,E --against tmu --seeds 5 --json")(
    bench_tsetlin
)
bench_app.command("networks", epilog="Example: laconic bench networks --jobs fedavg --rounds 20 --json")(bench_networks)


def main() -> None:
    app()
