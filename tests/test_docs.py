"""The documentation keeps up with the registry, and its links lead somewhere."""

import importlib
import json
import re

import pytest

import laconic
from laconic.algorithm import steps_of
from laconic.algorithms import METHODS, load_method
from markdown_pages import PAGES, ROOT, list_anchors, list_links, read

METHOD_PAGES = {page.name: page.read_text("utf-8") for page in (ROOT / "docs" / "methods").glob("*.md")}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_a_page_whose_title_names_it(method: str) -> None:
    titles = [text.splitlines()[0] for text in METHOD_PAGES.values()]
    assert any(method in title.removeprefix("# ").replace(",", " ").split() for title in titles)


@pytest.mark.parametrize("method", METHODS)
def test_a_method_says_in_its_file_what_it_does_whose_it_is_and_what_travels(method: str) -> None:
    told = METHODS[method]
    assert told.summary.partition(": ")[2]
    assert told.paper.startswith("none: ") or told.paper[-4:].isdigit() or "; " in told.paper or method == "cs-pfedtm"
    assert told.travels == "nothing" or any(way in told.travels for way in ("up", "both ways", "to each neighbour"))


def test_tables_words_and_pictures_are_what_figures_and_methods_give(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    importlib.import_module("pages").main(["--check"])


@pytest.mark.parametrize("method", METHODS)
def test_a_page_says_field_by_field_what_travels_as_the_schemas_have_it(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if METHODS[method].extra:
        pytest.importorskip("torch", reason="torch is not installed")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    page = METHOD_PAGES[importlib.import_module("method_pages").find_page(method)]
    (table,) = re.findall(rf"<!-- table: travels.{re.escape(method)} -->\n(.*?)<!-- end -->", page, re.DOTALL)
    assert table == importlib.import_module("pages").render(f"travels.{method}"), "run make tables"
    cls = load_method(method)
    due = [(step.name, message) for step in steps_of(cls) for message in (step.message, step.reply) if message]
    fields = {(step, field.name) for step, message in due for field in message.schema}
    heard = {step.name for step in steps_of(cls) if step.hears_peers}  # told as the publisher's
    rows = [[cell.strip() for cell in line.split(" | ")] for line in table.splitlines()[2:]]
    told = {(row[1], row[2].strip("`")) for row in rows if row[0] in ("| down", "| up", "| peer")}
    assert told == {(step, field) for step, field in fields if step not in heard}
    assert [row[2].strip("`") for row in rows if row[0] == "| note"] == [*cls.client_notes]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_and_headings_that_there_are(page: str) -> None:
    for target in list_links(page):
        path, _, anchor = target.partition("#")
        file = (ROOT / page).parent.joinpath(path).resolve() if path else ROOT / page
        assert file.exists(), target
        assert file.is_relative_to(ROOT), target
        assert not anchor or anchor in list_anchors(str(file.relative_to(ROOT))), target


def test_pages_count_methods_and_published_figures_as_many_as_there_are() -> None:
    published = len(json.loads(read("docs/results/scoreboard.json"))["rows"])
    assert f"Of {published} published figures" in read("README.md")
    assert f"# {published} figures of five papers" in read("docs/compare.md")
    networks = [method for method in METHODS.values() if method.family == "networks"]
    assert f" {len(METHODS)} methods on one partition" in read("README.md")
    assert f" {len(networks)} methods on networks" in read("docs/export-onnx.md")


def test_every_name_of_the_package_is_on_the_page_of_the_api() -> None:
    told = re.findall(r"^::: laconic\.(\w+)$", read("docs/api.md"), re.MULTILINE)
    assert {*laconic.__all__} - {"__version__"} <= {*told}


def test_the_first_sentence_has_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    headline = importlib.import_module("headline")
    file = headline.read("clausepool.json")
    names = re.compile(r"(M-ci0\.1|C-ci)-pool-\d+")
    pools = [run for run in file.get("mirrored", file["with_seeds"]) if names.fullmatch(run["run"])]
    assert {run["tested"] for run in pools} == {"test"}
    accuracy = sum(run["last"] for run in pools) / len(pools)
    most = max(run["upload_bytes"] + run["download_bytes"] for run in pools) / 100 / 1000
    assert f"**{accuracy:.1f} % in {most:.0f} kB a client**" in read("README.md")
