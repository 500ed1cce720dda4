"""docs/new-method.md, followed to the letter in a copy of the library."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import laconic

GUIDE = Path(__file__).parent.parent / "docs" / "new-method.md"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A library with the guide's file and line added, found before the installed one."""
    (file,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.S)
    (line,) = re.findall(r"```\n( +Method.*?)```", GUIDE.read_text(), re.S)
    library = shutil.copytree(Path(laconic.__file__).parent, tmp_path / "laconic")
    (library / "algorithms" / "mean_label.py").write_text(file)
    registry = library / "algorithms" / "__init__.py"
    before = registry.read_text()
    registry.write_text(before.replace("    for method in (\n", "    for method in (\n" + line))
    assert registry.read_text() != before
    return os.environ | {"PYTHONPATH": str(tmp_path)}


def laconic_command(environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "-c", "from laconic.cli import main; main()", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_one_file_and_one_line_make_a_method(environment: dict[str, str], tmp_path: Path) -> None:
    listed = json.loads(laconic_command(environment, "list", "--json"))
    assert "mean-label" in {method["name"] for method in listed}
    settings = [part for setting in ("method.blend=0.2", "rounds=2") for part in ("--set", setting)]
    out = laconic_command(
        environment, "run", "--set", "method.name=mean-label", *settings, "--out", str(tmp_path / "run"), "--json"
    )
    summary = json.loads(out.splitlines()[-1])
    assert summary["rounds"] == 2
    assert 0 < summary["upload_bytes"] < 2 * 10 * 20  # a float and a number, from 10 clients in each of two rounds


def test_the_guide_shows_the_toy_that_the_conformance_suite_runs() -> None:
    (file,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.S)
    assert file == (Path(__file__).parent / "toys" / "mean_label.py").read_text()
