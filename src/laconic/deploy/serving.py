"""A server over MQTT: looks after its broker, carries out the runs that were begun, and knows which nodes are there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from laconic import wire
from laconic.deploy.broker import PID, broker_command, is_listening, limit_messages, reload
from laconic.deploy.keeper import POLL_SECONDS, Keeper, stopping
from laconic.deploy.limits import AT_REST_BYTES, ROOM_BYTES, find_limit
from laconic.deploy.node_runs import write_begin
from laconic.deploy.runs import count_attempt, list_finished
from laconic.deploy.settings import name_node, read_settings
from laconic.deploy.thresholds import (
    Sketch,
    Thresholds,
    bound_fit,
    expect_sketch,
    find_task,
    is_fitted,
    merge,
    read_thresholds,
    write_thresholds,
)
from laconic.deploy.watching import KINDS
from laconic.files import lock, write_atomically
from laconic.fleets.frames import BEGIN, SKETCH, THRESHOLDS, Answer, Sent
from laconic.fleets.host import Home
from laconic.fleets.link import Address, Link
from laconic.fleets.mqtt import Board, MqttFleet, Post
from laconic.fleets.source import ClientData
from laconic.records import (
    Deployed,
    Failure,
    Node,
    Nodes,
    SocketKind,
    Sockets,
    Summary,
    append_lines,
    drop_torn_line,
    list_begun,
    log_event,
    read,
    to_line,
)
from laconic.runs.checkpoint import verify
from laconic.runs.config import read_config
from laconic.runs.run import Interrupted, drive, find_conditions
from laconic.simulation import Federation, OnProgress
from laconic.wire import Ledger

BROKER_RESTART_SECONDS = 1.0
KEEPALIVE_SECONDS = 30  # of the server's own connection, which should hear soon that it broke
MOST_NAMED = 8  # finished runs that a node is told of


class Server:
    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self.folder, self._say = folder.resolve(), say
        self.settings = read_settings(folder, "server")
        self.board = Board(self.settings.task.n_clients)
        self.sent: dict[int, dict[str, Sent]] = {}  # by client, then by what they are bytes of
        self._weighed: dict[tuple[int, int, SocketKind], Sent] = {}  # by round and client, not yet written
        address = Address(self.settings.host, self.settings.port)
        self.link = Link(
            address, folder, "server", ["l/+/r", "l/+/s"], self.board.hear, self._tell_run,
            on_up=self._find_broker, on_down=self.board.lose_broker, keepalive_seconds=KEEPALIVE_SECONDS,
        )  # fmt: skip
        self._run: Path | None = None

    def serve(self) -> None:
        """Until SIGTERM or Ctrl-C; runs that were begun go on at the next start."""
        with lock(self.folder), stopping([]), self._keep_broker():
            self.link.open()
            threading.Thread(target=self._keep_status, daemon=True).start()
            try:
                while True:
                    for folder in self.list_due():
                        self.carry(folder)
                    for client in self.board.empty():
                        self._say(f"client {client} answers, though no run is under way; left aside")
                    time.sleep(POLL_SECONDS)
            except Interrupted:
                pass
            finally:
                self.link.close()

    def list_due(self) -> list[Path]:
        """Runs that are neither done nor failed, in the order in which they were begun."""
        folders = [Path(path.read_text("utf-8")) for path in list_begun(self.folder)]
        ends = (Summary.file, Failure.file)
        return [f for f in folders if (f / "config.toml").exists() and not any((f / end).exists() for end in ends)]

    def carry(self, folder: Path) -> None:
        """A run, to its end; what ends it too soon is told in its folder."""
        self._say(f"run in {folder}")
        self._run = folder
        try:
            with lock(folder):
                self._drive(folder)
        except Interrupted:
            raise
        except Exception as error:  # drive has written it down
            self._say(f"run in {folder} failed: {error}")
        finally:
            self._run = None

    def _drive(self, folder: Path) -> None:
        verify(folder)
        drop_torn_line(folder / Sockets.file)
        deployed, config, attempt = read(folder, Deployed), read_config(folder / "config.toml"), count_attempt(folder)
        finished = list_finished(self.folder)[-MOST_NAMED:]
        settings = (folder / "config.toml").read_text("utf-8")
        rule, task = config.data.booleanize, find_task(self.settings.task, config.data.booleanize)

        def describe() -> list[tuple[int, bytes]]:
            """To a node that has not heard of the run."""
            values = read_thresholds(folder) if is_fitted(rule) else None
            fitted = [] if values is None else [(THRESHOLDS, wire.encode(Thresholds(values)))]
            return [(BEGIN, write_begin(deployed.run, finished, settings)), *fitted]

        def fit(fleet: MqttFleet) -> None:
            """Before the method starts: thresholds that all nodes share."""
            if is_fitted(rule):
                raw = self.settings.task
                sketches = fleet.survey(SKETCH, "sketch", Sketch, expect_sketch(raw))
                thresholds = merge([*sketches.values()], raw, rule)
                write_thresholds(folder, thresholds.values)
                fleet.announce(THRESHOLDS, "thresholds", thresholds)

        others = [*bound_fit(self.settings.task, rule), *(len(body) for _, body in describe())]
        most_bytes = min(find_limit(config.method, task, others) or self._most_bytes, self._most_bytes)
        post = Post(
            self.link,
            self.board,
            int(deployed.run[:4], 16),
            attempt,
            describe,
            deployed.wait_seconds,
            deployed.absent_seconds,
            self._tell_run,
            most_bytes,
            self._weigh,
            self._count,
            fit,
        )
        home = Home(config.method, task, ClientData(()), config.seed, folder / "checkpoints")

        @contextmanager
        def open_nodes(on_progress: OnProgress) -> Iterator[Federation]:
            self.link.is_up.wait()  # a broker that is only starting may have read its limit, and hears no signal
            self._limit_messages(most_bytes)
            fleet = MqttFleet(home, find_conditions(config), on_progress, post)
            try:
                yield Federation(config.method, task, fleet)
                fleet.part()
            finally:
                fleet.close()
                self._write_weighed()
                self._limit_messages(AT_REST_BYTES)

        drive(config, folder, open_nodes, None)

    def _weigh(self, number: int, client: int, answer: Answer) -> None:
        """What a node says its socket took: beside what was coded, and apart what connecting and waiting did."""
        kinds: dict[SocketKind, Sent] = {"exchange": answer.exchanged, "connect": answer.linked, "idle": answer.idle}
        for kind, sent in kinds.items():
            self._add(client, kind, sent)
            if any(sent):
                self._weighed[number, client, kind] = self._weighed.get((number, client, kind), Sent()).plus(sent)

    def _write_weighed(self) -> None:
        rows, self._weighed = self._weighed, {}
        if rows and self._run is not None:
            append_lines(self._run / Sockets.file, (to_line(Sockets(*of, *sent)) for of, sent in rows.items()))

    def _count(self, ledger: Ledger) -> None:
        """Beside that: what a round's messages are, coded and by the paper's count; a peer's come up and go down."""
        self._write_weighed()
        for (client, peer, direction), counts in ledger.totals("client", "peer", "direction").items():
            for kind, n_bytes in (("coded", counts.sent_bytes), ("paper", round(counts.paper_bits / 8))):
                self._add(client, kind, Sent(down=n_bytes) if direction == "down" else Sent(up=n_bytes))
                if peer is not None:
                    self._add(peer, kind, Sent(down=n_bytes))

    def _add(self, client: int, kind: str, sent: Sent) -> None:
        total = self.sent.setdefault(client, dict.fromkeys(KINDS, Sent()))
        total[kind] = total[kind].plus(sent)

    # ------------------------------------------------------------ beside the runs
    def _find_broker(self) -> None:
        self.board.find_broker()
        if self.settings.broker and self._run is not None:  # one that was started anew as its limit was raised
            with suppress(OSError):
                reload(self.folder / self.settings.broker)

    @property
    def _most_bytes(self) -> int:
        """That the owner of the broker lets any message have."""
        return self.settings.largest_bytes - ROOM_BYTES

    def _limit_messages(self, most_bytes: int) -> None:
        """At a broker of our own; who runs another sets its limit."""
        if not self.settings.broker:
            return
        folder = (self.folder / self.settings.broker).resolve()
        try:
            trouble = "" if limit_messages(folder, most_bytes) else "the one that is reached was not started there"
        except OSError as error:
            trouble = str(error)
        if trouble and self.link.is_up.is_set():
            self._tell_run(
                f"the broker has not read {folder / 'mosquitto.conf'} again ({trouble}): it goes on with its limit of "
                f"before, not with {most_bytes} B.  Restart it, or send its process SIGHUP as whoever runs it"
            )

    @contextmanager
    def _keep_broker(self) -> Iterator[None]:
        """One of our own, unless something listens there already; again when certificates were taken back."""
        if not self.settings.broker or is_listening("127.0.0.1", self.settings.port):
            yield
            return
        folder, is_over = (self.folder / self.settings.broker).resolve(), threading.Event()
        command = broker_command()
        (folder / PID).unlink(missing_ok=True)  # of one that was killed: its number may be another's by now
        limit_messages(folder, AT_REST_BYTES)
        keeper = Keeper("broker", folder / "broker.log", lambda: command, self._say, BROKER_RESTART_SECONDS)

        def look_after() -> None:
            revoked = folder / "crl.pem"
            known = revoked.stat().st_mtime
            while not is_over.wait(POLL_SECONDS):
                if revoked.stat().st_mtime != known:
                    known = revoked.stat().st_mtime
                    self._say("certificates were taken back: the broker starts anew")
                    keeper.stop()
                keeper.look_after()

        keeper.look_after()
        thread = threading.Thread(target=look_after, daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()
            keeper.stop()
            (folder / PID).unlink(missing_ok=True)
            limit_messages(folder, None)  # who starts it without us has nobody to raise it

    def _keep_status(self) -> None:
        last = ""
        while True:
            nodes = [self._describe(client) for client in range(self.settings.task.n_clients)]
            status = to_line(Nodes(self.link.is_up.is_set(), str(self._run or ""), nodes))
            if status != last:
                with suppress(OSError):
                    write_atomically(self.folder / Nodes.file, status.encode())
                last = status
            time.sleep(1)

    def _describe(self, client: int) -> Node:
        board, state = self.board, "never seen"
        if client in board.here:
            state = "online"
        elif client in board.left:
            state = "asleep" if client in board.asleep else "offline"
        sent = {kind: [*each] for kind, each in self.sent.get(client, {}).items()}
        return Node(client, name_node(client), state, sent)

    def _tell_run(self, line: str) -> None:
        self._say(line)
        if self._run is not None:
            log_event(self._run, line)
