"""The command line. Commands import what they need when they run, so that help is instant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from laconic.bench import peers
from laconic.bench.jobs import JOBS

app = typer.Typer(
    help="Personalised federated learning in few bytes.",
    epilog="Example: laconic demo",
    no_args_is_help=True,
    add_completion=False,
)
bench_app = typer.Typer(
    help="Measure ours against other libraries, on this machine.",
    epilog="Example: laconic bench tsetlin --jobs A,E --against tmu --seeds 5 --json",
    no_args_is_help=True,
)


def choose(what: str, given: str, valid: Sequence[str]) -> list[str]:
    """The comma-separated names in `given`, spelt as in `valid`, without repeats."""
    spelling = {name.lower(): name for name in valid}
    names = [part.strip() for part in given.split(",")]
    for name in names:
        if name.lower() not in spelling:
            raise typer.BadParameter(f"unknown {what} {name!r}; choose from {', '.join(valid)}")
    return list(dict.fromkeys(spelling[name.lower()] for name in names))


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
    import json

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


def demo() -> None:
    """Train a Tsetlin Machine on embedded images of digits and show what it learnt; needs no download."""
    from laconic.demo import demo

    demo()


# The table of commands: one line each.
app.command("demo", epilog="Example: laconic demo")(demo)
app.add_typer(bench_app, name="bench")
bench_app.command("tsetlin", epilog="Example: laconic bench tsetlin --jobs A,E --against tmu --seeds 5 --json")(
    bench_tsetlin
)


def main() -> None:
    app()
