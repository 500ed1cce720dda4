"""laconic bench: the commands, which import what they need only when they run."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from laconic.bench import peers
from laconic.bench.jobs import JOBS, NETWORK_JOBS, NETWORK_OTHERS
from laconic.console import explained
from laconic.options import Debug, choose

app = typer.Typer(
    help="Measure ours against other libraries, on this machine.",
    epilog="Example: laconic bench tsetlin --jobs A,E --against tmu --seeds 5 --json",
    no_args_is_help=True,
)


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


app.command("tsetlin", epilog="Example: laconic bench tsetlin --jobs A,E --against tmu --seeds 5 --json")(bench_tsetlin)
app.command("networks", epilog="Example: laconic bench networks --jobs fedavg --rounds 20 --json")(bench_networks)
