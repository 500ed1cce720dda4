"""What people install: a wheel and an sdist, whole, into an environment that has nothing else."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from laconic import __version__

ROOT = Path(__file__).parent.parent
MODULES = packages_distributions()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("build")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def test_wheel_and_sdist_have_the_version_of_the_package_and_all_of_its_files(built: Path) -> None:
    (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
    assert wheel.name.startswith(f"laconic_fl-{__version__}-")
    ours = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*") if path.is_file()}
    ours = {path for path in ours if "__pycache__" not in path}
    assert ours <= {*zipfile.ZipFile(wheel).namelist()}
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{path}" for path in ours} <= inside


def test_the_wheel_alone_gives_the_command_and_its_demo_a_table_and_a_report(built: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "empty", with_pip=True)
    home = tmp_path / "empty" / ("Scripts" if sys.platform == "win32" else "bin")
    (wheel,) = built.glob("*.whl")
    install = [home / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel]
    subprocess.run(install, check=True, capture_output=True)
    # nothing of what runs this test: neither its path nor its cache
    clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "NUMBA_CACHE_DIR")}

    def call(*words: str) -> str:
        done = subprocess.run(
            [home / "laconic", *words], cwd=tmp_path, env=clean, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert call("--version") == f"laconic {__version__}\n"
    assert "fedtm" in call("list", "methods")
    table = call("demo")
    assert "local-tm" in table
    (page,) = tmp_path.rglob("report.html")
    assert "<svg" in page.read_text("utf-8")


# extra -> what of ours it is for
USES = {
    "nn": "laconic.networks",
    "ray": "laconic.fleets.ray",
    "mqtt": "laconic.fleets.mqtt",
    "flower": "laconic.fleets.flower",
    "export": "laconic.export.onnx",
    "tables": "laconic.data.sources",
    "loggers": "laconic.loggers",
    "images": "laconic.data.images",
    "hf": "laconic.data.hub",
    "web": "laconic.live.server",
    "plots": "laconic.report.paper",
}
ALONE = """
import importlib, sys

class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

HIDDEN = {*sys.argv[2].split(",")}
sys.meta_path.insert(0, NotInstalled())
import laconic.cli
from laconic import FederatedClassifier
importlib.import_module(sys.argv[1])
sys.argv = ["laconic", "--help"]
laconic.cli.main()
"""


@cache
def needs(extra: str) -> set[str]:
    """Modules of all that the core and an extra bring along, as installed here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    todo = [*project["dependencies"], *project["optional-dependencies"].get(extra, [])]
    seen: set[tuple[str, str]] = set()
    while todo:
        wanted = Requirement(todo.pop())
        for of_extra in wanted.extras or {""}:
            if (wanted.name, of_extra) not in seen and find_installed(wanted.name):
                seen.add((wanted.name, of_extra))
                lines = [Requirement(line) for line in requires(wanted.name) or []]
                todo += [str(one) for one in lines if not one.marker or one.marker.evaluate({"extra": of_extra})]
    names = {normal(name) for name, _ in seen}
    return {module for module, homes in MODULES.items() if names & {*map(normal, homes)}}


def find_installed(name: str) -> bool:
    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("extra", USES)
def test_each_extra_alone_is_enough_for_import_and_help(extra: str) -> None:
    if not needs(extra) - needs(""):
        pytest.skip(f"{extra} is not installed")
    others = set().union(*(needs(each) for each in USES)) - needs(extra)
    command = [sys.executable, "-c", ALONE, USES[extra], ",".join(sorted(others))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Example: laconic demo" in done.stdout


def test_every_extra_for_users_is_tried_alone_here_and_in_the_workflow() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = {*project["optional-dependencies"]} - {"dev", "docs"}
    assert extras == {*USES}
    workflow = (ROOT / ".github" / "workflows" / "systems.yml").read_text("utf-8")
    (listed,) = re.findall(r"extra: \[(.*)\]", workflow)
    assert {*listed.split(", ")} == {*USES}


def test_pages_about_the_release_name_its_version() -> None:
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\n## {__version__} – " in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_the_core_is_free_of_the_caps_of_extras() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert not [each for each in project["dependencies"] if "<" in each]
    assert "version" in project["dynamic"]
