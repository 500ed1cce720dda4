"""laconic deploy: the commands, which import Flower only when they run."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Annotated

import typer

from laconic.console import explained, show_table, tell
from laconic.signals import find_number

app = typer.Typer(
    help="Real nodes: a server and its nodes on machines of their own, over Flower. Guide: docs/deploy.md",
    no_args_is_help=True,
)
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Above the file, e.g. data.clients=3; repeatable."),
]
Server = Annotated[Path, typer.Argument(metavar="SERVER")]


def need_flower() -> None:
    from laconic.runs.typed_toml import ConfigError

    try:
        import flwr  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            "E140", 'deploy needs flwr, which is not installed.  pip install "laconic-fl[flower]"'
        ) from error
    from laconic.deploy.processes import spare_loopback

    os.environ |= spare_loopback()


def say(line: str) -> None:
    typer.echo(line, err=True)


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR")],
    config: Annotated[Path | None, typer.Argument(metavar="[EXP.TOML]")] = None,
    settings: Settings = None,
    address: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where nodes reach the server.")] = "127.0.0.1:8000",
    nodes: Annotated[int, typer.Option(min=0, help="Nodes with examples of their own; 0: share out EXP's data.")] = 0,
    shape: Annotated[str, typer.Option(help="With --nodes: of one example, e.g. 28,28.")] = "",
    classes: Annotated[int, typer.Option(min=0, help="With --nodes: how many there are.")] = 0,
    debug: Debug = False,
) -> None:
    """Make certificates, keys, settings and systemd units: a folder for the server and one for each node.

    Without --nodes the data set of EXP.TOML is cut as it says, and each node gets its share.
    """
    with explained(debug=debug):
        need_flower()
        from laconic.algorithm import Task
        from laconic.deploy.folders import describe_unknown, make_deployment, share_out
        from laconic.runs.config import read_config

        if nodes:
            lengths = shape.split(",")
            if not all(length.strip().isdigit() for length in lengths) or classes < 2:
                raise typer.BadParameter("with --nodes say also --shape, e.g. 28,28, and --classes, 2 or more")
            task = Task(tuple(map(int, lengths)), classes, nodes)
            make_deployment(folder, address, task, None, describe_unknown(task))
        else:
            task, shares, partition = share_out(read_config(config, settings or ()))
            make_deployment(folder, address, task, shares, partition)
        typer.echo(f"{folder}: a server for {task.n_clients} nodes at {address}, all with keys.")
        typer.echo(f"here:     laconic deploy server {folder}/server  and  laconic deploy node {folder}/node-*")
        typer.echo(f"then:     laconic deploy run {folder}/server EXP.TOML")


def server(folder: Server, debug: Debug = False) -> None:
    """Run the server until Ctrl-C: Flower's SuperLink with TLS and node keys, started again if it ends.

    SERVER: the folder DIR/server that laconic deploy init made.
    """
    with explained(debug=debug):
        need_flower()
        from laconic.deploy.processes import keep_server

        keep_server(folder, say)


def node(folders: Annotated[list[Path], typer.Argument(metavar="NODE...")], debug: Debug = False) -> None:
    """Run nodes until Ctrl-C: a SuperNode for each folder, started again if it ends.

    NODE: folders DIR/node-000 that laconic deploy init made; on a machine of its own just one.
    """
    with explained(debug=debug):
        need_flower()
        from laconic.deploy.processes import keep_nodes

        keep_nodes(folders, say)


def run(
    server: Server,
    config: Annotated[Path | None, typer.Argument(metavar="[EXP.TOML]")] = None,
    settings: Settings = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; given again, it goes on there.")] = None,
    wait: Annotated[float, typer.Option(min=1, help="Seconds for a node to reply; who takes longer is lost.")] = 600.0,
    as_json: Annotated[bool, typer.Option("--json", help="Results as JSON, on the last line of stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")] = False,
    debug: Debug = False,
) -> None:
    """Run an experiment on the nodes, on the server's machine; a SuperLink that dies is waited for.

    SERVER: its folder. Of EXP.TOML the method, rounds, seed, budget and participation count; the data are the nodes'.
    """
    with explained(debug=debug):
        need_flower()
        from laconic.deploy.submit import begin, carry_through
        from laconic.records import Deployed, log_event
        from laconic.runs.config import read_config
        from laconic.runs.display import make_display
        from laconic.runs.plan import check_free, new_folder
        from laconic.runs.run import Interrupted

        if out is not None and (out / Deployed.file).exists():
            folder = out
        else:
            experiment = read_config(config, settings or ())
            folder = out or new_folder(experiment.method_name, [experiment], "nodes")
            check_free(folder)
            begin(server, experiment, folder, say)
            say(f"in {folder}; after a stop, the same command with --out {folder} goes on")
        try:
            with make_display(folder, quiet=quiet) as display:
                summary = carry_through(folder, display, wait)
        except KeyboardInterrupt as stop:
            number = find_number(stop)
            log_event(folder, f"no longer watched: {signal.Signals(number).name}")
            again = f"laconic deploy run {server} --out {folder}"
            words = f"stopped watching; the run goes on at its server.  Watch it again: {again}"
            raise Interrupted(folder, number, words) from None
        tell([folder], [summary], as_json=as_json, as_list=False)


def status(
    server: Server,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Which nodes are there.

    SERVER: its folder.
    """
    with explained(debug=debug):
        need_flower()
        from laconic.deploy.control import UNREACHABLE, Control

        try:
            with Control(server) as control:
                rows = [{"client": n.client, "node": str(n.node_id), "status": n.status} for n in control.nodes()]
        except UNREACHABLE as error:
            raise FileNotFoundError(f"no SuperLink answers here ({error}); laconic deploy server {server}") from None
        if as_json:
            typer.echo(json.dumps(rows))
        else:
            show_table(rows or [{"client": "none is registered"}])


app.command("init", epilog="Example: laconic deploy init try exp.toml --set data.clients=3")(init)
app.command("server", epilog="Example: laconic deploy server try/server")(server)
app.command("node", epilog="Example: laconic deploy node try/node-000")(node)
app.command("run", epilog="Example: laconic deploy run try/server exp.toml --out runs/first")(run)
app.command("status", epilog="Example: laconic deploy status try/server")(status)
