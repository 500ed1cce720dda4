"""The runs of one node, in its own folder: what each is, what may be asked, and the model that came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import zstandard

from laconic import wire
from laconic.algorithm import Algorithm, ClientId, Task, steps_of
from laconic.deploy.allowed import read_experiment
from laconic.deploy.examples import read_examples
from laconic.deploy.limits import check_reply
from laconic.deploy.runs import clear_finished
from laconic.deploy.settings import read_settings
from laconic.deploy.thresholds import (
    Thresholds,
    find_preprocessing,
    find_task,
    is_fitted,
    make_bits,
    make_sketch,
    read_thresholds,
    write_thresholds,
)
from laconic.files import write_atomically
from laconic.fleets.frames import END, EVALUATE, SKETCH, Head, read_request, write_reply, write_score
from laconic.fleets.host import Home
from laconic.fleets.node import Node, Stage
from laconic.fleets.remote import evaluate, perform
from laconic.fleets.source import ClientData, Parts
from laconic.models.preprocessing import Preprocessing
from laconic.runs.config import Config, read_config

ID_BYTES, SHORT_BYTES = 16, 4  # of a run's id; of a finished one's
MOST_SETTINGS_BYTES = 1 << 18  # of a run, as text


class Unknown(Exception):
    """The server has to say first what the run is."""


class Unfit(Exception):
    """This node cannot take part in the run."""


# ---------------------------------------------------------------- what a run is, on its way
def write_begin(run: str, finished: list[str], settings: str) -> bytes:
    ids = bytes.fromhex(run) + bytes([len(finished)]) + b"".join(bytes.fromhex(each)[:SHORT_BYTES] for each in finished)
    return ids + zstandard.compress(settings.encode(), 19)


def read_begin(body: bytes) -> tuple[str, list[str], str]:
    """Id of the run, how the ids of finished ones begin, settings as TOML; ValueError for what is none."""
    if len(body) <= ID_BYTES:
        raise ValueError(f"{len(body)} bytes came, more than {ID_BYTES} were expected")
    first = ID_BYTES + 1
    end = first + SHORT_BYTES * body[ID_BYTES]
    finished = [body[at : at + SHORT_BYTES].hex() for at in range(first, end, SHORT_BYTES)]
    try:
        text = zstandard.ZstdDecompressor().decompress(body[end:], max_output_size=MOST_SETTINGS_BYTES)
    except zstandard.ZstdError as error:
        raise ValueError(f"settings that cannot be unpacked: {error}") from None
    return body[:ID_BYTES].hex(), finished, text.decode()


# ---------------------------------------------------------------- at the node
class OwnExamples:
    """Read again when their file has changed."""

    def __init__(self, path: Path, task: Task) -> None:
        self._path, self._task = path, task
        self._written = -1
        self._parts: Parts | None = None

    def read(self) -> Parts:
        """ValueError where they do not fit the task."""
        written = self._path.stat().st_mtime_ns if self._path.exists() else -1
        if self._parts is None or written != self._written:
            self._parts, self._written = read_examples(self._path, self._task), written
        return self._parts


class RunHere(NamedTuple):
    node: Node
    steps: list[str]
    sends_notes: bool


@dataclass
class NodeRuns:
    """By the first two bytes of their ids."""

    folder: Path
    client: ClientId
    own: OwnExamples
    say: Callable[[str], None]

    def begin(self, body: bytes) -> None:
        run, finished, text = read_begin(body)
        runs = self.folder / "runs"
        if not (runs / run / "config.toml").exists():  # for the run's whole life, and for the node's owner to see
            clear_finished(runs, [path.name for path in runs.glob("*") if path.name[: 2 * SHORT_BYTES] in finished])
            write_atomically(runs / run / "config.toml", text.encode())

    def keep_thresholds(self, short: int, body: bytes) -> None:
        values = wire.decode(Thresholds, body).values
        write_thresholds(self.find(short), values)

    def carry_out(self, head: Head, body: bytes) -> bytes:
        """The body of the reply. Unknown, Unfit, or ValueError: there is none, and why."""
        if head.kind == END:
            return b""
        folder = self.find(head.run)
        if head.kind == SKETCH:
            return wire.encode(make_sketch(self._prepare(folder)[1][0].x))
        run, stage = self.open(folder), Stage(head.attempt, head.round - head.lag)
        if head.kind == EVALUATE:
            return write_score(evaluate(run.node, head.round, stage))
        request = read_request(head, body, run.steps, self.client)
        reply = write_reply(*perform(run.node, request, stage, sends_notes=run.sends_notes))
        if run.node.has_repeated:
            self.say(f"run {head.run:04x}, round {head.round}, call {head.call} came again: same reply, nothing done")
        check_reply(reply, run.node.home.algorithm, run.node.home.task)
        return reply

    def find(self, short: int) -> Path:
        """The folder of the run."""
        found = next((self.folder / "runs").glob(f"{short:04x}*/config.toml"), None)
        if found is None:
            raise Unknown
        return found.parent

    def open(self, folder: Path) -> RunHere:
        """Anew for each request: what the owner allows may have changed, and a crash is nothing special then."""
        config, own = self._prepare(folder)
        rule, thresholds = config.data.booleanize, read_thresholds(folder)
        if is_fitted(rule) and thresholds is None:
            raise Unknown
        settings = read_settings(self.folder, "node")
        try:
            task, examples = find_task(settings.task, rule), make_bits(own, rule, thresholds)
        except ValueError as error:
            raise Unfit(str(error)) from error
        source = ClientData(((0, {self.client: examples}),))
        tested, renews = config.data.tested, config.renew_statistics
        home = Home(config.method, task, source, config.seed, tested=tested, renews=renews)
        steps = [step.name for step in steps_of(type(config.method))]
        # a budget is kept by the method's own messages; there is no room for more
        return RunHere(Node(home, self.client, folder), steps, settings.notes and not config.budget)

    def _prepare(self, folder: Path) -> tuple[Config, Parts]:
        try:
            settings = read_settings(self.folder, "node")
            config = read_experiment(folder / "config.toml", settings.methods, settings.models)
            return config, self.own.read()
        except (ValueError, ImportError) as error:
            raise Unfit(str(error)) from error


# ---------------------------------------------------------------- what came of it
class NodeState(NamedTuple):
    """A node's personal model, and all that is needed to use it."""

    method: Algorithm
    task: Task  # as the method sees it
    state: Any  # of the client
    config: Config  # of the run; config.data.booleanize: how examples become bits
    client: ClientId
    preprocessing: Preprocessing  # from examples as the node has them to what the method takes
    folder: Path  # of the run, at the node


def open_node_state(folder: Path) -> NodeState:
    """Of the run that the node of this folder worked on last."""
    settings = read_settings(folder, "node")
    places = sorted(folder.glob("runs/*/round-*"), key=lambda place: place.stat().st_mtime)
    if not places:
        raise ValueError(f"{folder} has no model yet; run something: laconic deploy run SERVER EXP.TOML")
    run = places[-1].parent
    config = read_config(run / "config.toml")
    task = find_task(settings.task, config.data.booleanize)
    home = Home(config.method, task, ClientData(()), config.seed)
    state = Node(home, settings.client, run).read_state()
    rule, shape = config.data.booleanize, settings.task.input_shape
    reading = find_preprocessing(rule, shape, read_thresholds(run))
    return NodeState(config.method, task, state, config, settings.client, reading, run)
