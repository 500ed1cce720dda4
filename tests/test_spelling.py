"""Spelling: known slips anywhere, and in prose every word is in the dictionary or in docs/words.txt."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from laconic.algorithms import METHODS
from markdown_pages import PRESENT, ROOT, read_prose

WORDS = ROOT / "docs" / "words.txt"
WORD = re.compile(r"(?<![\w.\-/:@])[^\W\d_]+(?:[’'][^\W\d_]+)*(?![\w(=/@]|[.:]\w)")


def test_no_slip_that_codespell_knows_is_anywhere() -> None:
    pytest.importorskip("codespell_lib", reason="codespell is not installed")
    places = [*ROOT.glob("*.md"), *(ROOT / name for name in ("docs", "src", "benchmarks", "experiments"))]
    command = [sys.executable, "-m", "codespell_lib", *map(str, places)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def list_docstrings() -> Iterator[str]:
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = ast.get_docstring(node) or ""
                yield re.sub(r"^ {4,}.*$|`[^`]*`|\S*[_=\[\]{}]\S*", " ", text, flags=re.MULTILINE)


def list_words(text: str) -> set[str]:
    """Without names, which begin with a capital letter or have one within."""
    found = {re.sub(r"[’']s?$", "", word) for word in WORD.findall(text) if word.islower()}
    return {word for word in found if len(word) > 2 and word.isascii()}


def test_every_word_of_pages_and_docstrings_is_in_a_dictionary() -> None:
    dictionary = pytest.importorskip("spellchecker", reason="pyspellchecker is not installed").SpellChecker("en")
    ours = WORDS.read_text("utf-8").split()
    said = list_words(" ".join([*map(read_prose, PRESENT), *list_docstrings()]))
    unknown = dictionary.unknown(said) - {*ours} - {*METHODS}
    assert sorted(unknown) == [], "mend them, or add to docs/words.txt what is right"
    assert ours == sorted(ours)
