"""Pages of results say first what holds, and their tables are what their JSON gives."""

import importlib
import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from laconic.runs.config import read_config
from laconic.runs.plan import plan_comparison

ROOT = Path(__file__).parent.parent
with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(ROOT / "benchmarks"))
    pages = importlib.import_module("pages")

INDEX = (pages.RESULTS / "README.md").read_text("utf-8")
PAGES = {path.stem: path.read_text("utf-8") for path in sorted(pages.RESULTS.glob("*.md")) if path.name != "README.md"}
PARTS = ("Figures", "Command", "Limits", "History")  # below the verdict
MAX_COLUMNS = 120

each_page = pytest.mark.parametrize("page", PAGES)


def part(page: str, heading: str) -> str:
    return PAGES[page].split(f"\n## {heading}\n")[1].split("\n## ")[0]


def commands(page: str) -> list[list[str]]:
    """Words of each `laconic run` and `laconic compare`."""
    code = "\n".join(line.strip() for line in part(page, "Command").splitlines() if line.startswith("    "))
    for name, value in re.findall(r"^(\w+)='(.*)'$", code, re.MULTILINE):
        code = code.replace(f"${name}", value.replace('"', '\\"'))
    lines = [shlex.split(line, comments=True) for line in code.replace("\\\n", "").splitlines()]
    return [words[1:] for words in lines if words[0] == "laconic" and words[1] in ("run", "compare")]


@each_page
def test_a_page_opens_with_a_verdict_of_three_lines_at_most(page: str) -> None:
    title, empty, *rest = PAGES[page].splitlines()
    verdict = rest[: rest.index("")]
    assert title.startswith("# ")
    assert not empty
    assert 1 <= len(verdict) <= 3
    assert max(map(len, verdict)) <= MAX_COLUMNS
    assert re.search(r"\d", " ".join(verdict)), "a verdict has figures"


@each_page
def test_a_page_has_figures_a_command_limits_and_history_in_this_order(page: str) -> None:
    assert tuple(re.findall(r"^## (.+)$", PAGES[page], re.MULTILINE)) == PARTS
    assert "<!-- table: " in part(page, "Figures")
    assert re.search(r"^    \S", part(page, "Command"), re.MULTILINE)
    assert re.search(r"^- ", part(page, "Limits"), re.MULTILINE)
    assert f"(history/{page}.md)" in part(page, "History")


@each_page
def test_tables_are_what_the_json_gives(page: str) -> None:
    assert pages.refresh(PAGES[page]) == PAGES[page], "run make tables"


@each_page
def test_no_table_of_a_page_is_written_by_hand(page: str) -> None:
    assert "\n|" not in pages.TABLE.sub("", PAGES[page])


@each_page
def test_the_index_has_a_line_for_every_page(page: str) -> None:
    assert INDEX.count(f"| [{page}]({page}.md) | ") == 1


@each_page
def test_commands_of_a_page_name_settings_that_there_are(page: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    for what, *words in commands(page):
        settings = [after for word, after in pairwise(words) if word == "--set"]
        if what == "run":
            assert read_config(Path(words[0]), settings).rounds
        else:
            methods = words[: words.index("--config")]
            assert plan_comparison(methods, Path(words[words.index("--config") + 1]), settings, [0], tmp_path)


def test_every_table_stands_on_one_page() -> None:
    texts = [path.read_text("utf-8") for path in pages.list_pages()]
    placed = [found[2] for text in texts for found in pages.TABLE.finditer(text)]
    assert sorted(placed) == sorted(pages.TABLES)


def test_every_file_of_figures_is_linked_from_a_page() -> None:
    text = "".join(path.read_text("utf-8") for path in pages.RESULTS.rglob("*.md"))
    files = [path.name for path in pages.RESULTS.iterdir() if path.suffix in (".json", ".svg")]
    assert [name for name in files if not re.search(rf"\]\((\.\./)?{re.escape(name)}\)", text)] == []


def test_a_stale_page_is_found(tmp_path: Path, monkeypatch, capsys) -> None:
    stale = PAGES["fedtm"].replace("95.92", "99.99")
    (tmp_path / "fedtm.md").write_text(stale, "utf-8")
    (tmp_path / "fedtm.json").write_bytes((pages.RESULTS / "fedtm.json").read_bytes())
    monkeypatch.setattr(pages, "RESULTS", tmp_path)
    monkeypatch.setattr(pages, "list_pages", lambda: [tmp_path / "fedtm.md"])  # those of this tree stay as they are
    monkeypatch.setattr(pages, "PICTURES", {})
    with pytest.raises(SystemExit, match="run make tables"):
        pages.main(["--check"])
    assert (tmp_path / "fedtm.md").read_text("utf-8") == stale
    pages.main([])
    assert (tmp_path / "fedtm.md").read_text("utf-8") == PAGES["fedtm"]
    assert capsys.readouterr().out.split() == ["fedtm.md", "fedtm.md"]
