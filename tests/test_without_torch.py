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
from laconic.cli import main
main()
"""


def run_laconic(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", HIDE, *arguments], capture_output=True, text=True, check=False)


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
