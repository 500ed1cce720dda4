"""Shared by all tests: the slow twin and the toy methods, a Ray cluster; hypothesis has no deadlines (compiling)."""

import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from ray_nodes import Node, wait_until_alive

for folder in (Path(__file__).parent, Path(__file__).parent / "toys"):
    sys.path.insert(0, str(folder))  # worker processes get it too

signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it is ignored, and by all we start too
if sys.platform != "win32":
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup likewise

settings.register_profile("laconic", deadline=None, derandomize=True)
settings.load_profile("laconic")


@pytest.fixture(scope="session")
def ray_nodes() -> Iterator[list[Node]]:
    """Two on this machine, the same for all tests: to start them takes seconds."""
    ours = pytest.importorskip("laconic.fleets.ray", reason='ray is not installed: pip install "laconic-fl[ray]"')
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:  # Ray wants a short path
        head = Node(Path(folder))
        nodes = [head, Node(Path(folder), head)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("RAY_ADDRESS", head.address)
            ours.connect()
            wait_until_alive(len(nodes))
            yield nodes
        ours.RayFleet.idle.clear()
        ours.ray.shutdown()
        for node in reversed(nodes):
            node.stop()
