"""The Python of the guides runs, in their order, as a reader would run it."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from markdown_pages import list_blocks

READER = """
import sys
for block in sys.argv[1:]:
    exec(block, {"__name__": "__main__"})
"""


def list_python(page: str) -> list[str]:
    return [block.code for block in list_blocks(page) if block.language == "python" and not block.fragment]


def write_tumours(path: Path) -> None:
    """A table with an owner for each row, as docs/python.md has it."""
    loaded = load_breast_cancer(as_frame=True)
    table = loaded.data.iloc[:, :10].copy()
    table["diagnosis"] = np.where(loaded.target, "benign", "malignant")
    table["clinic"] = np.array(["north", "south", "west"])[np.arange(len(table)) % 3]
    table.to_csv(path, index=False)


@pytest.mark.parametrize("page", ["docs/export.md", "docs/python.md", "docs/tsetlin.md", "docs/wire.md"])
def test_the_python_of_a_page_runs_and_prints(page: str, tmp_path: Path) -> None:
    write_tumours(tmp_path / "tumours.csv")
    blocks = [f"{code}\nprint('done')" for code in list_python(page)]
    command = [sys.executable, "-c", READER, *blocks]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = done.stdout.split("done\n")
    assert all(said[:-1])
    assert len(said) == len(blocks) + 1


def test_from_a_csv_to_a_saved_personal_model_takes_at_most_eight_lines() -> None:
    (block,) = (code for code in list_python("docs/python.md") if "tumours.csv" in code)
    assert "read_csv" in block
    assert ".save(" in block
    assert len([line for line in block.splitlines() if line.strip()]) <= 8
