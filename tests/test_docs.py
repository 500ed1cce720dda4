"""The documentation keeps up with the registry, and its links lead somewhere."""

import importlib
import re
from pathlib import Path

import pytest

from laconic.algorithm import steps_of
from laconic.algorithms import METHODS, load_method

ROOT = Path(__file__).parent.parent
MARKDOWN = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PAGES = {page.name: page.read_text("utf-8") for page in (ROOT / "docs" / "methods").glob("*.md")}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_a_page_whose_title_names_it(method: str) -> None:
    titles = [text.splitlines()[0] for text in PAGES.values()]
    assert any(method in title.removeprefix("# ").replace(",", " ").split() for title in titles)


@pytest.mark.parametrize("method", METHODS)
def test_a_method_says_in_its_file_what_it_does_whose_it_is_and_what_travels(method: str) -> None:
    told = METHODS[method]
    assert told.summary.partition(": ")[2]
    assert told.paper.startswith("none: ") or told.paper[-4:].isdigit() or "; " in told.paper or method == "cs-pfedtm"
    assert told.travels == "nothing" or any(way in told.travels for way in ("up", "both ways", "to each neighbour"))


@pytest.mark.parametrize("page", ["README.md", "docs/methods/README.md"])
def test_tables_of_methods_are_what_methods_say_of_themselves(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    text = (ROOT / page).read_text("utf-8")
    assert importlib.import_module("pages").refresh(text) == text, "run make docs"


@pytest.mark.parametrize("method", METHODS)
def test_a_page_says_field_by_field_what_travels_as_the_schemas_have_it(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if METHODS[method].extra:
        pytest.importorskip("torch", reason="torch is not installed")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    page = PAGES[importlib.import_module("tables").find_page(method)]
    (table,) = re.findall(rf"<!-- table: travels.{re.escape(method)} -->\n(.*?)<!-- end -->", page, re.DOTALL)
    assert table == importlib.import_module("pages").render(f"travels.{method}"), "run make docs"
    cls = load_method(method)
    due = [(step.name, message) for step in steps_of(cls) for message in (step.message, step.reply) if message]
    fields = {(step, field.name) for step, message in due for field in message.schema}
    heard = {step.name for step in steps_of(cls) if step.hears_peers}  # told as the publisher's
    rows = [[cell.strip() for cell in line.split(" | ")] for line in table.splitlines()[2:]]
    told = {(row[1], row[2].strip("`")) for row in rows if row[0] in ("| down", "| up", "| peer")}
    assert told == {(step, field) for step, field in fields if step not in heard}
    assert [row[2].strip("`") for row in rows if row[0] == "| note"] == [*cls.client_notes]


def anchors(text: str) -> set[str]:
    """Of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    plain = [re.sub(r"\[(.*?)\]\(.*?\)", r"\1", heading) for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings_that_there_are(page: Path) -> None:
    text = re.sub(r"^```.*?^```|^    .*?$|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file.read_text("utf-8")), target
