"""What the README says of a table of one's own, carried out."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from clinics import write_clinics

README = (Path(__file__).parent.parent / "README.md").read_text("utf-8")
PART = README.split("## Your own table\n")[1].split("\n## ")[0]
FEW = ["--set", "rounds=2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("own")
    write_clinics(home / "clinics.csv", 200)
    write_clinics(home / "new.csv", 5, seed=1)
    return home


def test_three_commands_lead_from_a_table_to_rules_and_predictions(folder: Path) -> None:
    commands = [shlex.split(line) for line in re.findall(r"^laconic .*$", PART, re.MULTILINE)]
    assert len(commands) == 3
    said = []
    for _, *words in commands:
        line = [sys.executable, "-m", "laconic", *words, *(FEW if words[0] == "compare" else [])]
        done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert (folder / "clinics" / "report.html").exists()
    assert "clausepool" in said[0]
    rules = (folder / "north.txt").read_text("utf-8")
    assert re.search(r"\b(dose|age) (>|<=) |eyes is ", rules)
    assert {*said[2].split()} <= {"ill", "well"}
    assert len(said[2].split()) == 6


def test_so_do_eight_lines_of_python(folder: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PART, re.DOTALL)
    assert len([line for line in code.splitlines() if line]) <= 8
    short = code.replace('out="from_python"', 'out="from_python", rounds=2')
    done = subprocess.run([sys.executable, "-c", short], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"\b(dose|age) (>|<=) |eyes is ", done.stdout)
    assert re.search(r"'(ill|well)'", done.stdout)
