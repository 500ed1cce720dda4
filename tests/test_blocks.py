"""Commands, settings, files and extras that pages name are there: every block of code, and commands within a line."""

import json
import re
import shlex
import tomllib
import warnings
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import click
import pytest

from laconic.runs.config import Config, read_config
from laconic.runs.typed_toml import ConfigError
from markdown_pages import PRESENT, ROOT, list_blocks, list_spans

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
TARGETS = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
LANGUAGES = ("", "python", "toml", "json", "c")  # without one: commands, and what they print
ELSEWHERE = {  # pages whose Python is run by tests that also look at what comes of it
    "README.md": "tests/test_own_table.py",
    "docs/explain.md": "tests/explain/test_explain_command.py",
    "docs/export-onnx.md": "tests/export/test_onnx.py",
    "docs/new-method.md": "tests/test_new_method.py",
}
HERE = "tests/test_guides.py"
OPEN = re.compile(r"^data\.name=|=([A-Z]+|n)?$|^[^=]+$")  # settings for a reader to fill in, or of files of theirs
each_page = pytest.mark.parametrize("page", PRESENT)


def list_lines(page: str) -> Iterator[str]:
    """Of blocks without a language, and spans that begin with a program's name."""
    for block in list_blocks(page):
        if not block.language:
            code = block.code.replace("\\\n", " ")
            for name, value in re.findall(r"^(\w+)='(.*)'$", code, re.MULTILINE):
                code = code.replace(f"${name}", value.replace('"', '\\"'))  # as the shell keeps them
            yield from code.splitlines()
    yield from (span.replace("\n", " ") for span in list_spans(page))


def list_commands(page: str) -> Iterator[list[str]]:
    """Words after `laconic`, up to what is put behind by the shell."""
    for line in list_lines(page):
        found = re.match(r"\s*(?:\$ )?(?:\w+=\S+ )*(?:python -m )?laconic(?: (?=[a-z-])|$)(.*)", line)
        if found:
            words = shlex.split(re.sub(r"…|\.\.\.|\[(?=[A-Z])|(?<=[A-Z])\]", "", found[1]), comments=True)
            yield [*words[: next((k for k, word in enumerate(words) if word in ("|", "&&", "2>&1")), None)]]


@cache
def open_program() -> click.Command:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # typer's own
        import typer

        from laconic.cli import app
    return typer.main.get_command(app)


def look_up(words: list[str]) -> None:
    """click.UsageError for a command or an option that is not there; what is required may be left out."""
    command = open_program()
    while True:
        context = command.make_context("laconic", [], resilient_parsing=True)
        context.resilient_parsing = False
        if not isinstance(command, click.Group) or not words or words[0].startswith("-"):
            command.make_parser(context).parse_args(list(words))
            return
        _, found, words = command.resolve_command(context, words)
        assert found
        command = found


@each_page
def test_commands_of_a_page_and_their_options_are_there(page: str) -> None:
    for words in list_commands(page):
        is_cut = bool(words) and words[-1] in ("--resume", "--set", "--budget")  # a span that names an option alone
        try:
            look_up([*words, "VALUE"] if is_cut else words)
        except click.UsageError as error:
            pytest.fail(f"laconic {shlex.join(words)}: {error.format_message()}")


def read_settings(words: list[str], settings: list[str]) -> Config:
    """By the command's own experiment where that is in the repository, else by some method that has them."""
    files = [ROOT / word for word in words if word.endswith(".toml") and (ROOT / word).exists()]
    config = files[0] if files else None
    named = bool(files) or any(setting.startswith("method.name=") for setting in settings)
    tried = [[]] if named else [[f"method.name={name}"] for name in ("fedtm", "clausepool", "fedavg", "fedproto")]
    for first in tried:
        try:
            return read_config(config, [*first, *settings])
        except ConfigError as error:
            refused = error
    raise refused


@each_page
def test_settings_that_a_page_gives_by_command_are_read(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "toys"))
    for words in list_commands(page):
        settings = [after for word, after in pairwise(words) if word == "--set" and not OPEN.search(after)]
        if settings and words[0] in ("run", "check", "deploy"):
            try:
                assert read_settings(words, settings)
            except ConfigError as error:
                pytest.fail(f"laconic {shlex.join(words)}: {error}")


@each_page
def test_experiments_scripts_targets_and_extras_that_a_page_names_are_there(page: str) -> None:
    for line in list_lines(page):
        for path in re.findall(r"\b(?:experiments|benchmarks|tests)/[\w./-]+\.(?:toml|py)\b", line):
            assert (ROOT / path).exists(), f"{path} in: {line}"
        for target in re.findall(r"(?:^\s*|\$ )make ([a-z][\w-]*)", line):
            assert target in TARGETS, line
        for extras in re.findall(r"laconic-fl\[([\w,]+)\]", line):
            assert {*extras.split(",")} <= {*EXTRAS}, line


@each_page
def test_blocks_are_of_a_language_that_is_tested(page: str, tmp_path: Path) -> None:
    for block in list_blocks(page):
        assert block.language in LANGUAGES, block
        if block.fragment:
            continue
        if block.language == "toml":
            (tmp_path / "exp.toml").write_text(block.code, "utf-8")
            assert read_config(tmp_path / "exp.toml", [])
        if block.language == "json":
            assert json.loads(block.code)


@each_page
def test_python_of_a_page_is_run_by_a_test(page: str) -> None:
    if any(block.language == "python" and not block.fragment for block in list_blocks(page)):
        text = (ROOT / ELSEWHERE.get(page, HERE)).read_text("utf-8")
        assert Path(page).name in text


def test_every_command_is_on_the_page_of_commands() -> None:
    program = open_program()
    assert isinstance(program, click.Group)
    told = {words[0] for words in list_commands("docs/commands.md") if words}
    assert {*program.commands} <= told


def test_a_command_that_is_not_there_is_found() -> None:
    for line in (
        "laconic runn exp.toml",
        "laconic run --sett a=1",
        "laconic deploy tri",
        "laconic report --set a=1 RUN",
    ):
        with pytest.raises(click.UsageError):
            look_up(shlex.split(line)[1:])
