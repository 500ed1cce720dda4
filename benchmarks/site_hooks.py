"""What mkdocs does not do by itself: pages from outside docs/, links that leave it, and lists of methods and results.

A file outside docs/ has on the site the place that it has in the repository, docs/x.md that of x.md.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from method_pages import FAMILIES, list_family
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
PAGES = {page: page for page in ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")}
PAGES |= {"README.md": "index.md"}  # in the repository and on the site
LINK = re.compile(r"(\]\()((?!\w+:|#)[^)\s#]+)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    named = re.findall(r"[\w-]+\.md", str(config.nav))
    others = [page.name for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in named]
    config.nav = [{title: list_section(title, page, others) for title, page in one.items()} for one in config.nav or ()]
    return config


def list_section(title: str, listed: Any, others: list[str]) -> Any:
    """An entry of the navigation: with the pages of a folder, or with guides that have no place of their own."""
    if title == "Methods":
        return [listed, *({words.partition(",")[0]: list_pages(family)} for family, words in FAMILIES.items())]
    if title == "Results":
        return [listed, *(f"results/{name}.md" for name in list_results())]
    return [*listed, *others] if title == "Reference" else listed


def list_pages(family: str) -> list[str]:
    return [f"methods/{page}" for page in dict.fromkeys(page for _, page in list_family(family))]


def list_results() -> list[str]:
    """In the order of their index."""
    index = (ROOT / "docs" / "results" / "README.md").read_text("utf-8")
    return re.findall(r"^\| \[([\w-]+)\]\(\1\.md\)", index, re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    experiments = [f"experiments/{file.name}" for file in sorted((ROOT / "experiments").glob("*.toml"))]
    for path in (*PAGES, *experiments):
        files.append(File.generated(config, PAGES.get(path, path), abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    uri = page.file.src_uri
    if uri.startswith("results/history/") or uri == "CHANGELOG.md":
        page.meta["search"] = {"exclude": True}  # who searches wants what holds now
    here = "" if uri in PAGES.values() else posixpath.dirname(f"docs/{uri}")
    return LINK.sub(lambda found: found[1] + move_link(found[2], here, posixpath.dirname(uri)), markdown)


def move_link(target: str, here: str, there: str) -> str:
    """A link of a page whose folder is `here` in the repository and `there` on the site."""
    path = posixpath.normpath(posixpath.join(here, target))
    if (ROOT / path).is_dir():
        path += "/README.md"
    return posixpath.relpath(PAGES.get(path, path.removeprefix("docs/")), there or ".")
