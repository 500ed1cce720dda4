"""laconic deploy: the commands, which import what they need only when they run."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laconic.console import explained, show_table, tell
from laconic.options import Debug, Settings
from laconic.signals import find_number

if TYPE_CHECKING:
    from laconic.algorithm import Task

app = typer.Typer(
    help="Real nodes: a server and its nodes on machines of their own, over MQTT or Flower. Guide: docs/deploy.md",
    no_args_is_help=True,
)
Server = Annotated[Path, typer.Argument(metavar="SERVER")]


def need(over: str) -> None:
    """ConfigError where what carries the messages is not installed."""
    from laconic.runs.typed_toml import ConfigError

    try:
        import_module("flwr" if over == "flower" else "paho.mqtt.client")
        import_module("cryptography")
    except ImportError as error:
        words = f'deploy over {over} needs {error.name}, which is not installed.  pip install "laconic-fl[{over}]"'
        raise ConfigError("E140", words) from error
    if over == "flower":
        from laconic.deploy.processes import spare_loopback

        os.environ |= spare_loopback()


def read_over(folder: Path, kind: str) -> str:
    """What carries the messages of this server's or node's deployment, which is there."""
    from laconic.deploy.settings import read_settings

    over = read_settings(folder, kind).over
    need(over)
    return over


def say(line: str) -> None:
    typer.echo(line, err=True)


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR")],
    config: Annotated[Path | None, typer.Argument(metavar="[EXP.TOML]")] = None,
    settings: Settings = None,
    address: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where the broker is reached.")] = "127.0.0.1:8883",
    nodes: Annotated[int, typer.Option(min=0, help="Nodes with examples of their own; 0: share out EXP's data.")] = 0,
    shape: Annotated[str, typer.Option(help="With --nodes: of one example, e.g. 28,28.")] = "",
    classes: Annotated[int, typer.Option(min=0, help="With --nodes: how many there are.")] = 0,
    over: Annotated[str, typer.Option(metavar="mqtt|flower", help="What carries the messages.")] = "mqtt",
    authority: Annotated[
        Path | None, typer.Option("--broker-ca", help="A broker runs there already, with a certificate of this one.")
    ] = None,
    largest: Annotated[str, typer.Option(help="Longest message that a broker of ours lets pass in any run.")] = "1MiB",
    debug: Debug = False,
) -> None:
    """Make certificates, keys, settings, units: a folder for broker and server each, and one for every node.

    Without --nodes the data set of EXP.TOML is cut as it says, and each node gets its share.
    """
    with explained(debug=debug):
        if over not in ("mqtt", "flower"):
            raise typer.BadParameter(f"--over {over}: mqtt or flower was expected")
        need(over)
        from laconic.deploy.folders import Plan, describe_unknown, make_deployment, share_out
        from laconic.deploy.limits import LEAST_BYTES
        from laconic.runs.config import parse_bytes, read_config

        if parse_bytes(largest) < LEAST_BYTES:
            raise typer.BadParameter(f"--largest {largest}: settings and words of {LEAST_BYTES} B have to pass")
        if nodes:
            task = read_task(shape, classes, nodes)
            plan = Plan(address, task, describe_unknown(task))
        else:
            task, shares, partition = share_out(read_config(config, settings or ()))
            plan = Plan(address, task, partition, shares)
        plan = replace(plan, over=over, broker_authority=authority, largest_bytes=parse_bytes(largest))
        make_deployment(folder, plan)
        typer.echo(f"{folder}: a server for {task.n_clients} nodes at {address}, all with keys.")
        typer.echo(f"here:     laconic deploy server {folder}/server  and  laconic deploy node {folder}/node-*")
        typer.echo(f"then:     laconic deploy run {folder}/server EXP.TOML")


def read_task(shape: str, classes: int, nodes: int) -> Task:
    from laconic.algorithm import Task

    lengths = [length.strip() for length in shape.split(",")]
    if not all(length.isdigit() and int(length) > 0 for length in lengths):
        came = f"--shape {shape} has" if shape else "there is no --shape, or one that has"
        raise typer.BadParameter(f"{came} no whole numbers from 1 up; write e.g. --shape 28,28, or --shape 20")
    if classes < 2:
        came = f"--classes {classes} came" if classes else "--classes is missing"
        raise typer.BadParameter(f"{came}; with --nodes say how many there are, 2 or more")
    return Task(tuple(map(int, lengths)), classes, nodes)


def server(folder: Server, debug: Debug = False) -> None:
    """Run the server until Ctrl-C: it starts its broker, waits for nodes, and carries out the runs begun on it.

    SERVER: the folder DIR/server that laconic deploy init made.
    """
    with explained(debug=debug):
        if read_over(folder, "server") == "flower":
            from laconic.deploy.processes import keep_server

            keep_server(folder, say)
        else:
            from laconic.deploy.serving import Server as MqttServer

            MqttServer(folder, say).serve()


def node(
    folders: Annotated[list[Path], typer.Argument(metavar="NODE...")],
    duty: Annotated[str, typer.Option(metavar="10m", help="Connect, work, then sleep for so long: 90s, 10m, 6h.")] = "",
    debug: Debug = False,
) -> None:
    """Run nodes until Ctrl-C; several are processes of their own, started again if they end.

    NODE: folders DIR/node-000 that laconic deploy init made; on a machine of its own just one.
    """
    with explained(debug=debug):
        if read_over(folders[0], "node") == "flower":
            from laconic.deploy.processes import keep_nodes

            keep_nodes(folders, say)
        else:
            from laconic.deploy.station import keep_several, keep_station

            duty_seconds = parse_seconds(duty) if duty else 0.0
            if len(folders) == 1:
                keep_station(folders[0], duty_seconds, say)
            else:
                keep_several(folders, duty, say)


def parse_seconds(text: str) -> float:
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    if not text[:-1].isdigit() or text[-1] not in units or int(text[:-1]) < 1:
        raise typer.BadParameter(f"{text} is no time; write e.g. 90s, 10m or 6h")
    return float(int(text[:-1]) * units[text[-1]])


def run(
    server: Server,
    config: Annotated[Path | None, typer.Argument(metavar="[EXP.TOML]")] = None,
    settings: Settings = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; given again, it goes on there.")] = None,
    wait: Annotated[float, typer.Option(min=1, help="Seconds for a node to reply; who takes longer is lost.")] = 600.0,
    absent: Annotated[float, typer.Option(min=0, help="Seconds for a node that has left to return.")] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="Results as JSON, on the last line of stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")] = False,
    debug: Debug = False,
) -> None:
    """Run an experiment on the nodes, on the server's machine; the run goes on at the server whoever watches.

    SERVER: its folder. Of EXP.TOML the method, rounds, seed, budget and participation count; the data are the nodes'.
    """
    with explained(debug=debug):
        over = read_over(server, "server")
        from laconic.deploy.runs import begin
        from laconic.records import Deployed, Summary, log_event
        from laconic.runs.config import read_config
        from laconic.runs.display import Lines, make_display
        from laconic.runs.plan import check_free, new_folder
        from laconic.runs.run import Interrupted

        if over == "mqtt":
            from laconic.deploy.watching import check_server

            check_server(server)
        if out is not None and (out / Deployed.file).exists():
            folder = out
        else:
            experiment = read_config(config, settings or ())
            folder = out or new_folder(experiment.method_name, [experiment], "nodes")
            check_free(folder)
            begin(server, experiment, folder, say)
            say(f"in {folder}; after a stop, the same command with --out {folder} goes on")

        def watch(display: Lines) -> Summary:
            if over == "flower":
                from laconic.deploy.submit import carry_through

                return carry_through(folder, display, wait)
            from laconic.deploy.watching import watch_run

            return watch_run(folder, display, wait, absent)

        try:
            with make_display(folder, quiet=quiet) as display:
                summary = watch(display)
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
    """Which nodes are there, and bytes up and down since the server started.

    SERVER: its folder. coded: messages as Laconic writes them; paper: as papers count them; on the node's socket, TLS
    and all: exchange (those messages), connect (TLS, also anew), idle (staying connected).
    """
    with explained(debug=debug):
        if read_over(server, "server") == "flower":
            rows = list_flower_nodes(server)
        else:
            from laconic.deploy.watching import check_server, read_status

            check_server(server)
            rows = read_status(server)
        if as_json:
            typer.echo(json.dumps(rows))
        else:
            show_table(rows or [{"client": "none is registered"}])


def list_flower_nodes(server: Path) -> list[dict[str, Any]]:
    from laconic.deploy.control import UNREACHABLE, Control

    try:
        with Control(server) as control:
            return [{"client": n.client, "node": str(n.node_id), "status": n.status} for n in control.nodes()]
    except UNREACHABLE as error:
        raise FileNotFoundError(f"no SuperLink answers here ({error}); laconic deploy server {server}") from None


def revoke(
    folder: Annotated[Path, typer.Argument(metavar="DIR")],
    names: Annotated[list[str], typer.Argument(metavar="NODE...")],
    debug: Debug = False,
) -> None:
    """Take back the certificates of nodes, e.g. 002: the broker lets them in no more.

    DIR: the folder that laconic deploy init made, with ca.key.
    """
    with explained(debug=debug):
        need("mqtt")
        from laconic.deploy.folders import revoke_nodes

        n_revoked = revoke_nodes(folder, [name.removeprefix("node-") for name in names])
        typer.echo(f"{n_revoked} certificates are taken back; a server of {folder} starts its broker anew by itself,")
        typer.echo(f"elsewhere copy {folder}/crl.pem to the broker and start it anew")


def sign(
    folder: Annotated[Path, typer.Argument(metavar="DIR")],
    request: Annotated[Path, typer.Argument(metavar="REQUEST.CSR")],
    debug: Debug = False,
) -> None:
    """Sign the request of a node that made its own key, which then is nowhere but there.

    DIR: the folder that laconic deploy init made, with ca.key.
    """
    with explained(debug=debug):
        need("mqtt")
        from laconic.deploy.folders import sign_node

        typer.echo(f"{sign_node(folder, request)}: copy it to the node, beside its cert.key")


def try_out(
    config: Annotated[Path | None, typer.Argument(metavar="[EXP.TOML]")] = None,
    settings: Settings = None,
    nodes: Annotated[int, typer.Option(min=1, help="How many; above the data.clients of EXP.TOML.")] = 3,
    out: Annotated[
        Path | None, typer.Option(help="Run folder; keys, logs and nodes go into it, under deployment.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Results as JSON, on the last line of stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")] = False,
    debug: Debug = False,
) -> None:
    """Try it out on this machine: a broker, a server, nodes, a run and its report, over TLS; it ends by itself."""
    with explained(debug=debug):
        need("mqtt")
        from laconic.deploy.runs import begin
        from laconic.deploy.trying import add_sockets, open_trial
        from laconic.deploy.watching import watch_run
        from laconic.records import write
        from laconic.runs.config import read_config
        from laconic.runs.display import make_display
        from laconic.runs.plan import check_free, new_folder

        experiment = read_config(config, [f"data.clients={nodes}", *(settings or ())])
        folder = out or new_folder(experiment.method_name, [experiment], "tried")
        check_free(folder)
        deployment = folder / "deployment"
        with make_display(folder, quiet=quiet) as display:
            with open_trial(deployment, experiment, display.said) as server:
                begin(server, experiment, folder, display.said)
                done = watch_run(folder, display, 600.0, 60.0)
            sent = add_sockets(deployment)  # now that they have taken leave
            done = replace(done, socket_upload_bytes=sent.up, socket_download_bytes=sent.down)
            write(folder, done)
        tell([folder], [done], as_json=as_json, as_list=False)


def predict(
    node: Annotated[Path, typer.Argument(metavar="NODE")],
    rows: Annotated[Path, typer.Argument(metavar="ROWS")],
    as_json: Annotated[bool, typer.Option("--json", help="Results as JSON, on the last line of stdout.")] = False,
    debug: Debug = False,
) -> None:
    """Predict rows by the model that a node trained, on the node and offline: a class on each line of stdout.

    NODE: its folder. ROWS: an .npz or a .csv, as raw as the node's own examples. The model as a file, in C or ONNX:
    laconic export NODE.
    """
    with explained(debug=debug):
        from laconic.opening import predict_file

        typer.echo(predict_file(node, rows, as_json=as_json))


app.command("try", epilog="Example: laconic deploy try --set method.name=clausepool --set rounds=3")(try_out)
app.command("init", epilog="Example: laconic deploy init lab --nodes 2 --shape 28,28 --classes 10")(init)
app.command("server", epilog="Example: laconic deploy server lab/server")(server)
app.command("node", epilog="Example: laconic deploy node lab/node-000 --duty 10m")(node)
app.command("run", epilog="Example: laconic deploy run lab/server exp.toml --out runs/first")(run)
app.command("status", epilog="Example: laconic deploy status lab/server")(status)
app.command("predict", epilog="Example: laconic deploy predict lab/node-000 rows.csv")(predict)
app.command("revoke", epilog="Example: laconic deploy revoke lab 001")(revoke)
app.command("sign", epilog="Example: laconic deploy sign lab 001.csr")(sign)
