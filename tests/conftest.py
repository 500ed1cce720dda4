"""Shared by all tests: where the slow twin and the toy methods lie; hypothesis has no deadlines (compiling)."""

import sys
from pathlib import Path

from hypothesis import settings

for folder in (Path(__file__).parent, Path(__file__).parent / "toys"):
    sys.path.insert(0, str(folder))  # worker processes get it too

settings.register_profile("laconic", deadline=None, derandomize=True)
settings.load_profile("laconic")
