"""What people install: a wheel and an sdist, whole, into an environment that has nothing else."""

import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from laconic import __version__

ROOT = Path(__file__).parent.parent


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


def test_the_wheel_alone_gives_the_command(built: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "empty", with_pip=True)
    home = tmp_path / "empty" / ("Scripts" if sys.platform == "win32" else "bin")
    (wheel,) = built.glob("*.whl")
    install = [home / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel]
    subprocess.run(install, check=True, capture_output=True)
    said = subprocess.run([home / "laconic", "--version"], check=True, capture_output=True, text=True)
    assert said.stdout == f"laconic {__version__}\n"
    shown = subprocess.run([home / "laconic", "list", "methods"], check=True, capture_output=True, text=True)
    assert "fedtm" in shown.stdout


def test_the_core_is_free_of_the_caps_of_extras() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert not [each for each in project["dependencies"] if "<" in each]
    assert "version" in project["dynamic"]
