"""The documentation as a site: built without a warning, it reads as on GitHub, and needs nothing from elsewhere."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from markdown_it import MarkdownIt

from browser import Page, open_browser
from markdown_pages import PAGES, ROOT, read

pytest.importorskip("mkdocs", reason='mkdocs is not installed: pip install "laconic-fl[docs]"')
ALIKE = ("h2", "h3", "li", "pre", "table")
VISITED = ("index.html", "api.html", "methods/clausepool.html", "results/scoreboard.html")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with open_browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def find_built(site: Path, page: str) -> Path:
    place = "index.md" if page == "README.md" else page.removeprefix("docs/").replace("README.md", "index.md")
    return site / place.replace(".md", ".html")


def count(html: str) -> dict[str, int]:
    return {tag: len(re.findall(rf"<{tag}[ >]", html)) for tag in ALIKE}


@pytest.mark.parametrize("page", [page for page in PAGES if page != "docs/api.md"])  # which the site alone has in full
def test_a_page_has_the_same_parts_on_the_site_as_on_github(page: str, site: Path) -> None:
    built = find_built(site, page).read_text("utf-8")
    article = built[built.index("<article") : built.index("</article")]
    assert count(article) == count(MarkdownIt("commonmark").enable("table").render(read(page)))


def test_the_api_is_there_in_full(site: Path) -> None:
    built = (site / "api.html").read_text("utf-8")
    for name in ("laconic.run", "laconic.ClientModel.export_c", "laconic.algorithm.Fleet.ask", "laconic.tsetlin.fit"):
        assert f'id="{name}"' in built


def test_superseded_figures_are_on_the_site_but_not_in_the_search(site: Path) -> None:
    index = (site / "search" / "search_index.json").read_text("utf-8")
    assert (site / "results" / "history" / "clausepool.html").exists()
    assert '"location":"results/clausepool.html"' in index
    assert '"location":"results/history/' not in index


def visit(page: Page, start: str) -> None:
    """Pages wide and narrow, light and dark; then a search."""
    page.errors.clear()
    page.requests.clear()
    for place in VISITED:
        page.open(f"{start}/{place}")
        for width, is_dark in ((1200, False), (400, True)):
            page.resize(width)
            page.set_look(is_dark=is_dark, is_still=True)
            assert page.get("document.documentElement.scrollWidth") <= width, place
    page.open(f"{start}/index.html?q=microcontroller")
    page.wait("document.querySelectorAll('.md-search-result__item').length > 2")
    assert page.errors == []
    assert {address for address in page.requests if not address.startswith((start, "data:", "blob:"))} == set()
    assert len(page.requests) > len(VISITED)


def test_from_a_folder_the_site_is_read_and_searched_with_nothing_from_elsewhere(page: Page, site: Path) -> None:
    visit(page, site.as_uri())


def test_so_it_is_from_a_server(page: Page, address: str) -> None:
    visit(page, address)
