"""Every Python block of the README and of the guides runs, in their order, as a reader would run them."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

ROOT = Path(__file__).parent.parent


def write_tumours(path: Path) -> None:
    """A table with an owner for each row, as the README has it."""
    loaded = load_breast_cancer(as_frame=True)
    table = loaded.data.iloc[:, :10].copy()
    table["diagnosis"] = np.where(loaded.target, "benign", "malignant")
    table["clinic"] = np.array(["north", "south", "west"])[np.arange(len(table)) % 3]
    table.to_csv(path, index=False)


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_the_python_blocks_of_a_page_run(page: str, tmp_path: Path) -> None:
    write_tumours(tmp_path / "tumours.csv")
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 2
    for block in blocks:
        done = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{block}\n{done.stderr}"
        assert done.stdout


def test_from_a_csv_to_a_saved_personal_model_takes_at_most_eight_lines() -> None:
    block = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)[0]
    assert "read_csv" in block
    assert ".save(" in block
    assert len([line for line in block.splitlines() if line.strip()]) <= 8
