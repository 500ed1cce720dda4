"""docs/new-method.md, followed to the letter: in an empty folder, and inside a copy of the library."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laconic

GUIDE = (Path(__file__).parent.parent / "docs" / "new-method.md").read_text("utf-8")
FILE, PANELS = re.findall(r"```python\n(.*?)```", GUIDE, re.S)


def call(folder: Path, *arguments: str, **environment: str) -> str:
    command = [sys.executable, "-m", "laconic", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With nothing in it but the guide's file."""
    (tmp_path / "mean_label.py").write_text(FILE)
    return tmp_path


def test_every_command_of_the_guide_works_in_a_folder_with_one_file(folder: Path) -> None:
    (commands,) = re.findall(r"## What you get\n\n```\n(.*?)```", GUIDE, re.S)
    printed = {}
    for line in commands.splitlines():
        _, command, *rest = line.split()
        printed[command, rest[0]] = call(folder, command, *rest)
    assert "method.blend" in printed["list", "mean_label:MeanLabel"]
    assert "after 3 rounds" in printed["run", "--set"]
    assert "after 5 rounds" in printed["run", "--resume"]
    assert {"mean_label:MeanLabel", "local-tm"} <= set(printed["compare", "mean_label:MeanLabel"].split())
    assert (folder / "runs" / "both" / "report.html").exists()
    answers = [line.split()[0] for line in printed["conform", "mean_label:MeanLabel"].splitlines()]
    assert len(answers) >= 14
    assert set(answers) == {"yes"}


def test_settings_of_one_method_of_a_comparison_reach_it_alone(folder: Path) -> None:
    names = ["mean_label:MeanLabel", "local-tm", "--set", "mean_label:MeanLabel.blend=0.25", "--set", "rounds=1"]
    call(folder, "compare", *names, "--out", "both")
    assert "blend = 0.25" in (folder / "both" / "mean_label.MeanLabel" / "config.toml").read_text()


def test_a_prolonged_run_is_the_run_that_was_longer_from_the_start(folder: Path) -> None:
    def run(out: str, *more: str) -> bytes:
        call(folder, "run", *more, "--set", "rounds=4", *(["--out", out] if "--resume" not in more else []))
        return (folder / out / "traffic.jsonl").read_bytes() + (folder / out / "metrics.jsonl").read_bytes()

    settings = ["--set", "method.name=mean_label:MeanLabel", "--set", "fleet.name=process"]
    call(folder, "run", *settings, "--set", "rounds=2", "--out", "short")
    assert run("short", "--resume", "short") == run("long", *settings)


def test_the_guide_shows_the_toy_that_the_conformance_suite_runs() -> None:
    assert (Path(__file__).parent / "toys" / "mean_label.py").read_text() == FILE


def test_a_class_of_ones_own_is_a_scikit_learn_classifier() -> None:
    from mean_label import MeanLabel

    x, y = np.random.default_rng(0).integers(0, 2, (60, 5)), np.arange(60) % 3
    federation = laconic.FederatedClassifier(MeanLabel, rounds=2, random_state=0).fit(x, y, groups=y // 2)
    assert (federation.predict(x[:4], groups=y[:4] // 2) == 1).all()
    with pytest.raises(ValueError, match='"dict" is no method; its class must be'):
        laconic.FederatedClassifier(dict).fit(x, y)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mean_label:MeanLable", "mean_label has no MeanLable; classes in it: "),
        ("mean_label:Verdict", '"mean_label:Verdict" is no method'),
        ("mean_lable:MeanLabel", "there is no module mean_lable"),
        ("mean_label", "One of your own: module:Class"),
        ("half:Half", "it lacks run_round, start_client"),
        ("rude:Rude", "importing rude failed: KeyError: 'NOBODY_SETS_THIS'"),
    ],
)
def test_what_is_no_method_is_refused_in_words(folder: Path, name: str, words: str) -> None:
    half = "class Half(Algorithm):\n    def start_server(self, task, fleet): ...\n"
    (folder / "rude.py").write_text("import os\nos.environ['NOBODY_SETS_THIS']\n")
    (folder / "half.py").write_text(f"from laconic.algorithm import Algorithm\n{half}")
    command = [sys.executable, "-m", "laconic", "run", "--set", f"method.name={name}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert words in done.stderr
    assert not (folder / "runs").exists()


def test_a_method_of_another_package_has_the_name_of_its_entry_point(folder: Path) -> None:
    about = folder / "my_package-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[laconic.methods]\nmean-label = mean_label:MeanLabel\n")
    listed = {row["name"]: row for row in json.loads(call(folder, "list", "--json", PYTHONPATH=str(folder)))}
    assert listed["mean-label"]["family"] == "other"
    assert listed["mean-label"]["travels"].startswith("up: a mean and how many")
    out = call(folder, "run", "--set", "method.name=mean-label", "--set", "rounds=2", "--json", PYTHONPATH=str(folder))
    assert json.loads(out.splitlines()[-1])["rounds"] == 2


def test_inside_the_library_a_file_is_enough(tmp_path: Path) -> None:
    library = shutil.copytree(Path(laconic.__file__).parent, tmp_path / "laconic")
    inside = FILE.replace("class MeanLabel(Algorithm):\n", 'class MeanLabel(Algorithm):\n    name = "mean-label"\n\n')
    (library / "algorithms" / "tsetlin" / "mean_label.py").write_text(inside)
    listed = json.loads(call(tmp_path, "list", "--json", PYTHONPATH=str(tmp_path)))
    assert "mean-label" in {method["name"] for method in listed}
    settings = ["--set", "method.name=mean-label", "--set", "rounds=2"]
    summary = json.loads(call(tmp_path, "run", *settings, "--json", PYTHONPATH=str(tmp_path)).splitlines()[-1])
    assert 0 < summary["upload_bytes"] < 2 * 10 * 20  # a float and a number, from 10 clients in each of two rounds


def test_what_the_guide_says_of_panels_declares_some() -> None:
    said: dict[str, Any] = {}
    exec(PANELS, said)
    assert [panel.kind for panel in said["panels"]] == ["lines", "models"]
