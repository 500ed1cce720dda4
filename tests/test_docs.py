"""The documentation keeps up with the registry."""

from pathlib import Path

import pytest

from laconic.algorithms import METHODS

ROOT = Path(__file__).parent.parent
PAGES = {page.name: page.read_text("utf-8") for page in (ROOT / "docs" / "methods").glob("*.md")}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_a_page_whose_title_names_it(method: str) -> None:
    titles = [text.splitlines()[0] for text in PAGES.values()]
    assert any(method in title.removeprefix("# ").replace(",", " ").split() for title in titles)


@pytest.mark.parametrize("method", METHODS)
def test_the_readme_names_every_method(method: str) -> None:
    assert f"`{method}`" in (ROOT / "README.md").read_text("utf-8")
