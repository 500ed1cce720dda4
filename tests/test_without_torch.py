"""Without the extra nn: a process in which torch cannot be imported."""

import subprocess
import sys
from pathlib import Path

HIDE = """
import sys

class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NotInstalled())
"""
COMMAND = (
    HIDE
    + """
from laconic.cli import main
main()
"""
)
PYTHON = (
    HIDE
    + """
import numpy as np, laconic
for ask in (lambda: laconic.run("fedavg", data="digits"),
            lambda: laconic.FederatedClassifier("fedavg").fit(np.eye(4), [0, 1, 0, 1])):
    try:
        ask()
    except ValueError as error:
        print(error)
"""
)


def run_laconic(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", COMMAND, *arguments], capture_output=True, text=True, check=False)


def test_tsetlin_methods_run_and_are_reported_without_torch(tmp_path: Path) -> None:
    small = ("--set", "rounds=1", "--set", "data.clients=2", "--set", "method.n_clauses=10")
    done = run_laconic("compare", "local-tm", "fedtm", "clausepool", *small, "--out", str(tmp_path / "runs"))
    assert done.returncode == 0, done.stderr
    assert "clausepool" in done.stdout


def test_a_method_on_networks_says_which_extra_to_install() -> None:
    for command in (("run", "--set", "method.name=fedpurin"), ("bench", "networks", "--rounds", "1")):
        done = run_laconic(*command)
        assert done.returncode == 2, done.stderr
        assert 'pip install "laconic-fl[nn]"' in done.stderr
    assert "fedpurin" in run_laconic("list", "methods").stdout


def test_python_says_so_too() -> None:
    done = subprocess.run([sys.executable, "-c", PYTHON], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('method "fedavg" needs torch, which is not installed.  pip install "laconic-fl[nn]"') == 2
