"""What real nodes over MQTT cost on loopback, with TLS and certificates: bytes on sockets, seconds, recovery, many.

    python benchmarks/mqtt.py exchanges      bytes and seconds of a clausepool run on digits, three nodes
    python benchmarks/mqtt.py wire           round trips of bare frames, staying connected, connecting anew
    python benchmarks/mqtt.py idle           a node that is asked nothing for half an hour
    python benchmarks/mqtt.py faults         kill -9 of broker, server, a node, all three: seconds to two rounds further
    python benchmarks/mqtt.py many 200       that many connections in one process group: a round's transport, the broker

Each adds its figures to docs/results/mqtt.json; python benchmarks/pages.py makes the tables.
"""

import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from laconic.algorithm import Task
from laconic.deploy.broker import broker_command
from laconic.deploy.folders import Plan, describe_unknown, make_deployment
from laconic.deploy.keeper import Keeper
from laconic.deploy.runs import begin
from laconic.deploy.settings import name_node
from laconic.deploy.trying import find_free_port, open_trial
from laconic.deploy.watching import watch_run
from laconic.fleets.frames import Answer, Head, Outcome, Sent
from laconic.fleets.link import Address, Link, Will
from laconic.fleets.mqtt import GONE, HERE
from laconic.runs.config import read_config
from laconic.runs.display import make_display

RESULTS = Path(__file__).parent.parent / "docs" / "results" / "mqtt.json"
SETTINGS = ["method.name=clausepool", "data.clients=3", "evaluate_every=1"]


def record(name: str, **figures: object) -> None:
    found = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    commit = ask_git("describe", "--always", "--abbrev=7")
    changed = [line for line in ask_git("status", "--porcelain", "-uno").splitlines() if RESULTS.name not in line]
    commit += "-dirty" if changed else ""
    found[name] = figures | {"commit": commit, "load": round(os.getloadavg()[0], 1)}
    RESULTS.write_text(json.dumps(found, indent=2) + "\n", "utf-8")
    print(name, json.dumps(found[name], indent=2))


def ask_git(*words: str) -> str:
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout.strip()


def read_lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


# ---------------------------------------------------------------- a run
def run_on(server: Path, out: Path, rounds: int) -> dict[str, list[dict]]:
    begin(server, read_config(None, [*SETTINGS, f"rounds={rounds}"]), out, print)
    with make_display(out, quiet=True) as display:
        watch_run(out, display, 600.0, 60.0)
    return {name: read_lines(out / f"{name}.jsonl") for name in ("sockets", "traffic", "times")}


def add_up(rows: list[dict], way: str) -> int:
    return sum(row[f"{way}_bytes"] for row in rows if row["kind"] == "exchange")


def measure_exchanges() -> None:
    """By the difference of a long run and a short one, so that what is sent once does not count."""
    with tempfile.TemporaryDirectory() as folder:
        config = read_config(None, SETTINGS)
        with open_trial(Path(folder) / "d", config, print) as server:
            short, long = (run_on(server, Path(folder) / f"run-{rounds}", rounds) for rounds in (5, 45))
    figures: dict[str, object] = {}
    answers = [sum(row["kind"] == "exchange" for row in run["sockets"]) for run in (short, long)]
    n_more = answers[1] - answers[0]
    tests = 40 * 3 * 4  # of each test two numbers that the ledger does not know, about four bytes
    for way in ("up", "down"):
        coded = [sum(r["sent_bytes"] for r in run["traffic"] if r["direction"] == way) for run in (short, long)]
        sent = [add_up(run["sockets"], way) for run in (short, long)]
        beyond = sent[1] - sent[0] - (coded[1] - coded[0]) - (tests if way == "up" else 0)
        figures |= {
            f"{way}_beyond_payload": round(beyond / n_more, 1),
            f"{way}_coded": coded[1],
            f"{way}_socket": sent[1],
        }
    first = [row for row in short["sockets"] if row["kind"] == "connect"]
    per_round = {r["round"]: set() for r in long["traffic"]}
    for row in long["traffic"]:
        per_round[row["round"]].add(row["step"])
    exchanges = [t["seconds"] / (len(per_round.get(t["round"], ())) + 1) for t in long["times"] if t["round"] > 5]
    record(
        "exchanges",
        n_exchanges=n_more,
        median_seconds=round(statistics.median(exchanges), 4),
        connecting=[max(row["up_bytes"] for row in first), max(row["down_bytes"] for row in first)] if first else None,
        **figures,
    )


# ---------------------------------------------------------------- bare frames
@contextlib.contextmanager
def open_broker(n_nodes: int) -> Iterator[tuple[Path, Address, Keeper]]:
    with tempfile.TemporaryDirectory() as name:
        folder, address = Path(name) / "d", Address("127.0.0.1", find_free_port())
        task = Task((2,), 2, n_nodes)
        make_deployment(folder, Plan(str(address), task, describe_unknown(task)))
        command = broker_command()
        keeper = Keeper("broker", folder / "broker" / "broker.log", lambda: command, print, 1.0)
        keeper.look_after()
        try:
            yield folder, address, keeper
        finally:
            keeper.stop()


def open_node(folder: Path, address: Address, client: int, reply: bytes) -> Link:
    """Answers every request with these bytes."""
    name = name_node(client)

    def hear(topic: str, payload: bytes) -> None:
        head, _ = Head.read(payload)
        link.publish(f"l/{name}/r", Answer(*head.place, Outcome.DONE, Sent(140, 140), reply).write())

    will = Will(f"l/{name}/s", HERE, GONE)
    link = Link(address, folder / f"node-{name}", name, [f"l/{name}/q"], hear, print, will=will)
    link.open()
    return link


def open_server(folder: Path, address: Address, hear: Callable[[str, bytes], object]) -> Link:
    link = Link(address, folder / "server", "server", ["l/+/r"], hear, print)
    link.open()
    assert link.is_up.wait(60)
    return link


def measure_wire() -> None:
    with open_broker(2) as (folder, address, _):
        arrived = threading.Event()
        server = open_server(folder, address, lambda topic, payload: arrived.set())
        rows = []
        for n_bytes in (0, 70, 5000):
            node = open_node(folder, address, 0, bytes(n_bytes))
            assert node.is_up.wait(60)
            before, seconds = node.count(), []
            for number in range(200):
                started = time.perf_counter()
                server.publish("l/000/q", Head(7, 9, 1, number, 1, 1).write() + bytes(n_bytes))
                assert arrived.wait(60)
                arrived.clear()
                seconds.append(time.perf_counter() - started)
            time.sleep(0.5)
            sent = node.count().minus(before)
            rows.append(
                {"payload": n_bytes, "up": sent.up / 200, "down": sent.down / 200,
                 "median_ms": round(1000 * statistics.median(seconds), 2),
                 "p90_ms": round(1000 * statistics.quantiles(seconds, n=10)[8], 2)}
            )  # fmt: skip
            node.close()
        node = open_node(folder, address, 1, b"")
        assert node.is_up.wait(60)
        first, connects = node.linked, []
        for _ in range(5):
            node.close()
            before = node.linked
            node.open()
            assert node.is_up.wait(60)
            connects.append(node.linked.minus(before))
        node.close()
        server.close()
    record(
        "wire",
        rows=rows,
        connect_first=first,
        connect_again=[
            statistics.median(each.up for each in connects),
            statistics.median(each.down for each in connects),
        ],
    )


def measure_idle(seconds: int = 1830) -> None:
    """As nodes stay connected, at their own pace: one ping in five minutes."""
    with open_broker(1) as (folder, address, _):
        node = open_node(folder, address, 0, b"")
        assert node.is_up.wait(60)
        time.sleep(1)  # what follows a handshake has come
        before = node.count()
        time.sleep(seconds)
        idle, told = node.count().minus(before), node.idle
        node.close()
    record(
        "idle",
        seconds=seconds,
        up=idle.up,
        down=idle.down,
        told_as_idle=told,
        bytes_a_day=round((idle.up + idle.down) * 86400 / seconds),
    )


# ---------------------------------------------------------------- faults
def find_process(folder: Path, program: str) -> int:
    """That runs in this folder."""
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            is_named = (path / "comm").read_text().strip().startswith(program)
            if is_named and (path / "cwd").resolve() == folder.resolve():
                return int(path.name)
    raise LookupError(f"no {program} in {folder}")


def measure_faults() -> None:
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with open_trial(folder / "d", read_config(None, SETTINGS), print) as server:
            deployment = server.parent
            places = {"broker": "mosquitto", "server": "python", "node-001": "python"}
            for victims in (["broker"], ["server"], ["node-001"], [*places]):
                out = folder / f"run-{len(rows)}"
                begin(server, read_config(None, [*SETTINGS, "rounds=60"]), out, print)
                metrics = out / "metrics.jsonl"

                def count(path: Path = metrics) -> int:
                    return path.read_bytes().count(b"\n") if path.exists() else 0

                while count() < 9:
                    time.sleep(0.01)
                for pid in [find_process(deployment / victim, places[victim]) for victim in victims]:
                    os.kill(pid, signal.SIGKILL)
                started, reached = time.perf_counter(), count()
                while count() < reached + 2:
                    time.sleep(0.01)
                rows.append({"killed": " and ".join(victims), "seconds": round(time.perf_counter() - started, 1)})
                print(rows[-1])
                with make_display(out, quiet=True) as display:
                    watch_run(out, display, 600.0, 60.0)
                numbers = [row["round"] for row in read_lines(metrics)]
                assert numbers == [*range(61)], "each round once"
    record("faults", rows=rows)


# ---------------------------------------------------------------- many
# paho waits by select(), which knows descriptors below 1,024 alone, and a connection has three: at most 340 a process
MOST_PLAYED = 200
N_EXCHANGES = 30


def read_memory(pid: int) -> float:
    """MB that are resident."""
    text = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS")) / 1024


def read_processor(pid: int) -> float:
    """Seconds that it used."""
    return sum(map(int, Path(f"/proc/{pid}/stat").read_text().split()[13:15])) / os.sysconf("SC_CLK_TCK")


def play(folder: str, port: str, first: str, end: str) -> None:
    """In a process of the group: so many nodes, until its stdin is closed."""
    address = Address("127.0.0.1", int(port))
    nodes = [open_node(Path(folder), address, client, bytes(70)) for client in range(int(first), int(end))]
    assert all(node.is_up.wait(300) for node in nodes)
    print("all are there", flush=True)
    sys.stdin.read()
    for node in nodes:
        node.close()


@contextlib.contextmanager
def open_many(folder: Path, address: Address, n_nodes: int) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes whose nodes are all there."""
    group = []
    for first in range(0, n_nodes, MOST_PLAYED):
        words = ["play", folder, address.port, first, min(first + MOST_PLAYED, n_nodes)]
        command = [sys.executable, __file__, *map(str, words)]
        group.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    try:
        for process in group:
            assert process.stdout is not None
            assert any(line == "all are there\n" for line in process.stdout), "not all nodes came up"
        yield group
    finally:
        for process in group:
            process.communicate()


def measure_many(n_nodes: int) -> None:
    with open_broker(n_nodes) as (folder, address, _):
        waiting, arrived = set(range(n_nodes)), threading.Event()

        def hear(topic: str, payload: bytes) -> None:
            waiting.discard(int(topic.split("/")[1]))
            if not waiting:
                arrived.set()

        server = open_server(folder, address, hear)
        pid = find_process(folder / "broker", "mosquitto")
        before, started = read_memory(pid), time.perf_counter()
        with open_many(folder, address, n_nodes) as group:
            connected, after, connecting = time.perf_counter() - started, read_memory(pid), read_processor(pid)
            seconds, spent = [], sum(read_processor(process.pid) for process in group)
            for number in range(N_EXCHANGES):
                waiting |= set(range(n_nodes))
                arrived.clear()
                began = time.perf_counter()
                for client in range(n_nodes):
                    server.publish(f"l/{name_node(client)}/q", Head(7, 9, 1, number, 1, 1).write() + bytes(70))
                assert arrived.wait(300)
                seconds.append(time.perf_counter() - began)
            busy, exchanging = read_memory(pid), read_processor(pid) - connecting
            spent = sum(read_processor(process.pid) for process in group) - spent
        server.close()
    record(
        f"many_{n_nodes}",
        nodes=n_nodes,
        processes=len(group),
        connect_seconds=round(connected, 2),
        median_round_seconds=round(statistics.median(seconds), 3),
        slowest_round_seconds=round(max(seconds), 3),
        broker_mb_before=round(before, 1),
        broker_mb_connected=round(after, 1),
        broker_mb_after_rounds=round(busy, 1),
        broker_cpu_seconds_connecting=round(connecting, 2),
        broker_cpu_seconds_a_round=round(exchanging / N_EXCHANGES, 4),
        nodes_cpu_seconds_a_round=round(spent / N_EXCHANGES, 3),
    )


MEASUREMENTS = {
    "exchanges": measure_exchanges,
    "wire": measure_wire,
    "idle": measure_idle,
    "faults": measure_faults,
}

if __name__ == "__main__":
    what, *numbers = sys.argv[1:] or ["wire"]
    if what == "many":
        measure_many(int(*numbers))
    elif what == "play":
        play(*numbers)
    else:
        MEASUREMENTS[what]()
