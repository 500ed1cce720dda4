"""What a Ray fleet survives, and how it is reached; the conformance suite compares what comes out of it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from laconic.fleets import load_fleet
from laconic.records import Round
from laconic.runs.config import read_config
from laconic.runs.run import run
from ray_nodes import Node, find_children, wait_until_alive

SETTINGS = [
    "method.name=cs-pfedtm",
    "method.n_clauses=10",
    "data.clients=4",
    "rounds=4",
    "checkpoint_every=2",
    "fleet.workers=2",
]


class Mischief:
    """Does it once, in the middle of a round."""

    def __init__(self, do: Callable[[], None]) -> None:
        self.do, self.is_done, self.lines = do, False, []

    def started(self, title: str, rounds: int, first_round: int) -> None: ...

    def progressed(self, round: int, done: int, total: int, what: str) -> None:
        if round == 2 and what == "install" and done and not self.is_done:
            self.is_done = True
            self.do()

    def finished_round(self, row: Round, seconds: float) -> None: ...

    def said(self, line: str) -> None:
        self.lines.append(line)


def read_all(folder: Path) -> dict[str, bytes]:
    files = [folder / f"{name}.jsonl" for name in ("metrics", "clients", "traffic")]
    files += (folder / "checkpoints").glob("*.safetensors")
    return {file.name: file.read_bytes() for file in files}


@pytest.fixture
def second(ray_nodes: list[Node]) -> Iterator[Node]:
    """A node that may be lost; another takes its place for the tests to come."""
    idle, node = load_fleet("ray").idle, ray_nodes[1]
    while idle:  # so that a fleet of two has an actor on each node
        idle.pop().end()
    yield node
    if not find_children(node.process.pid, "/raylet "):
        node.process.wait()
        ray_nodes[1] = Node(node.log.parent, ray_nodes[0])
        wait_until_alive(2)


@pytest.mark.parametrize(("what", "state"), [("actor", "memory"), ("node", "disk")])
def test_an_actor_or_node_killed_in_a_round_changes_nothing(
    what: str, state: str, second: Node, tmp_path: Path
) -> None:
    settings = [*SETTINGS, "fleet.workers=2", f"fleet.state={state}"]
    run(read_config(None, settings), tmp_path / "calm")
    watch = Mischief(second.kill if what == "node" else second.kill_actor)
    run(read_config(None, [*settings, "fleet.name=ray"]), tmp_path / "hit", watch=watch)
    assert watch.is_done
    assert "back to the last checkpoint" in " ".join(watch.lines)
    assert read_all(tmp_path / "hit") == read_all(tmp_path / "calm")


def test_a_run_on_no_shared_file_system_is_refused(
    second: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "touch", lambda path: None)  # as seen from a machine that has another disk
    with pytest.raises(ValueError, match="put runs on a file system that all nodes of the Ray cluster share"):
        run(read_config(None, [*SETTINGS, "fleet.name=ray"]), tmp_path / "run")
