"""The libraries we measure against, each installed once into a virtual environment of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

VERSIONS = {"pyTsetlinMachineParallel": "0.2.1", "pyTsetlinMachine": "0.6.6", "tmu": "0.8.3", "green-tsetlin": "1.1.0"}
WITH_COALESCED = ("tmu",)
FLAT_ONLY = ("green-tsetlin",)


def find_python() -> str:
    """An interpreter that NumPy 1.26 has builds for; all peers need NumPy below 2."""
    names = [] if sys.version_info < (3, 13) else ["python3.12", "python3.11"]
    found = next(filter(None, map(shutil.which, names)), None) if names else sys.executable
    if found is None:
        raise RuntimeError(f"the peers need Python 3.11 or 3.12 (NumPy below 2); none of {', '.join(names)} is on PATH")
    return found


def ensure_environment(name: str, say: Callable[[str], None]) -> Path:
    """The peer's own Python, its environment made at first use under LACONIC_CACHE, else ~/.cache/laconic."""
    cache = Path(os.environ.get("LACONIC_CACHE") or Path.home() / ".cache" / "laconic")
    package = f"{name}=={VERSIONS[name]}"
    folder = cache / "peers" / f"{name}-{VERSIONS[name]}"
    python, marker, log = folder / "bin" / "python", folder / "installed", folder.parent / f"{folder.name}.log"
    if marker.exists():
        return python
    say(f"installing {package} into {folder} (once; log: {log})")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as output:
        for command in (
            [find_python(), "-m", "venv", "--clear", str(folder)],
            [str(python), "-m", "pip", "install", "--disable-pip-version-check", "numpy<2", package],
        ):
            if subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False).returncode:
                raise RuntimeError(
                    f"installing {package} failed (it needs a C compiler and a package index); see {log}, "
                    "or leave it out with --against"
                )
    marker.touch()
    return python
