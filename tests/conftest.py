"""Shared by all tests: where the slow twin lies, and hypothesis without deadlines (the first example compiles)."""

import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

settings.register_profile("laconic", deadline=None, derandomize=True)
settings.load_profile("laconic")
