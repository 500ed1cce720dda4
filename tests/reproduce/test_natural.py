"""Experiments on natural partitions name methods and settings that there are, of every family."""

import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from laconic.algorithms import METHODS
from laconic.runs.plan import plan_comparison

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


@pytest.mark.parametrize("name", ["natural-speech", "natural-femnist"])
def test_one_table_has_every_family(name: str, tmp_path: Path) -> None:
    path = EXPERIMENTS / f"{name}.toml"
    comments = "\n".join(re.findall(r"^#(.*)$", path.read_text("utf-8"), re.MULTILINE))
    command = re.search(r"laconic compare (.*\\\n)*.*", comments)
    assert command
    words = shlex.split(command[0].replace("\\\n", " "))
    methods = words[2 : words.index("--config")]
    settings = [after for word, after in pairwise(words) if word == "--set"]
    plan = plan_comparison(methods, path, settings, [0], tmp_path)
    assert len(plan) == len(methods)
    assert {METHODS[method].family for method in methods} == {kind.family for kind in METHODS.values()}
