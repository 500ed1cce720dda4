"""What a node keeps of a run in its own files, without Flower."""

from pathlib import Path

import numpy as np
import pytest
from rumour import Board, Rumour

from laconic import wire
from laconic.algorithm import Examples, Task
from laconic.fleets.host import Home, Request
from laconic.fleets.node import Node, Stage
from laconic.fleets.source import ClientData

BITS = np.arange(Rumour().n_bits) % 3 == 0


@pytest.fixture
def open_node(tmp_path: Path):
    examples = Examples(np.zeros((3, 2), np.uint8), np.arange(3))
    source = ClientData(((0, {0: (examples, examples, examples)}),))
    home = Home(Rumour(), Task((2,), 3, 1), source, 0)
    return lambda: Node(home, 0, tmp_path / "run")  # a new one for each message, as a new process would


def ask(round: int, call: int, bits: np.ndarray = BITS) -> Request:
    return Request("guess", 0, round, call, b"\0" + wire.encode(Board(bits)))


def read_state(folder: Path, place: str) -> bytes:
    return (folder / "run" / f"round-{place}" / "client.safetensors").read_bytes()


def test_a_request_that_comes_again_gets_the_same_bytes_and_changes_nothing(open_node, tmp_path: Path) -> None:
    first = open_node().perform(ask(1, 1), Stage(1, 0))
    before = read_state(tmp_path, "000001-0001")
    assert open_node().perform(ask(1, 1), Stage(1, 0)) == first
    assert read_state(tmp_path, "000001-0001") == before
    second = open_node().perform(ask(1, 2), Stage(1, 0))
    assert open_node().perform(ask(1, 1), Stage(1, 0)) == first  # late, but known
    assert open_node().perform(ask(1, 2), Stage(1, 0)) == second


def test_a_request_out_of_turn_or_in_other_words_is_refused(open_node) -> None:
    open_node().perform(ask(2, 2), Stage(1, 0))
    with pytest.raises(ValueError, match="round 2, call 1 comes too late; round 2 is under way"):
        open_node().perform(ask(2, 1), Stage(1, 0))
    with pytest.raises(ValueError, match="was asked for before, in other words"):
        open_node().perform(ask(2, 2, ~BITS), Stage(1, 0))


def test_a_server_that_resumes_finds_the_state_of_its_checkpoint(open_node, tmp_path: Path) -> None:
    open_node().perform(ask(1, 1), Stage(1, -1))
    once = open_node().perform(ask(2, 1), Stage(1, 1))
    after = read_state(tmp_path, "000002-0001")
    open_node().perform(ask(2, 2), Stage(1, 1))
    again = open_node().perform(ask(2, 1), Stage(2, 1))  # the second start, from the checkpoint of round 1
    assert again == once
    assert read_state(tmp_path, "000002-0001") == after
    assert not (tmp_path / "run" / "round-000002-0002").exists()
    other = open_node().perform(ask(2, 1, ~BITS), Stage(3, 1))  # and it need not ask the same
    assert other != once


def test_an_older_start_and_a_lost_checkpoint_are_refused(open_node) -> None:
    open_node().perform(ask(3, 1), Stage(2, 2))
    with pytest.raises(ValueError, match="start 1 of the server asks, but start 2 has asked already"):
        open_node().perform(ask(3, 2), Stage(1, 2))
    with pytest.raises(ValueError, match="goes back to round 1, but states before round 2 are gone"):
        open_node().perform(ask(2, 1), Stage(3, 1))


def test_only_states_that_a_server_may_go_back_to_are_kept(open_node, tmp_path: Path) -> None:
    for number in range(1, 6):
        for call in (1, 2):
            open_node().perform(ask(number, call), Stage(1, number - 1))
    names = sorted(path.name for path in (tmp_path / "run").glob("round-*"))
    assert names == ["round-000004-0002", "round-000005-0001", "round-000005-0002"]


def test_a_step_cut_short_leaves_nothing(open_node, tmp_path: Path) -> None:
    first = open_node().perform(ask(1, 1), Stage(1, 0))
    draft = tmp_path / "run" / "draft"
    draft.mkdir()
    (draft / "client.safetensors").write_bytes(b"half a st")
    assert open_node().perform(ask(1, 1), Stage(1, 0)) == first
    open_node().perform(ask(1, 2), Stage(1, 0))
    assert not draft.exists()
