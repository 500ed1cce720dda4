"""The documentation as GitHub reads it: blocks of code, spans of code, prose, links, headings."""

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parent.parent
PAGES = sorted(str(page.relative_to(ROOT)) for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PRESENT = [page for page in PAGES if "/history/" not in page and page != "CHANGELOG.md"]  # the others tell what was


class Block(NamedTuple):
    language: str
    fragment: str  # why it does not stand by itself, if it says that it does not
    code: str


def read(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


@cache
def parse(page: str) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(read(page))


def list_blocks(page: str) -> list[Block]:
    """Fenced and indented ones; ```python title="fragment: why" is one that cannot run as it stands."""
    found = []
    for token in parse(page):
        if token.type in ("fence", "code_block"):
            language, _, options = token.info.partition(" ")
            why = re.fullmatch(r'title="fragment: (.+)"', options)
            assert bool(why) == bool(options), f"{page}: {token.info} is not understood"
            found.append(Block(language, why[1] if why else "", token.content))
    return found


def list_inside(page: str) -> Iterator[Token]:
    return (child for token in parse(page) if token.type == "inline" for child in token.children or ())


def list_spans(page: str) -> list[str]:
    return [token.content for token in list_inside(page) if token.type == "code_inline"]


def read_prose(page: str) -> str:
    """Without code, addresses and HTML."""
    return " ".join(token.content for token in list_inside(page) if token.type == "text")


def list_links(page: str) -> list[str]:
    """To files and headings of ours."""
    targets = [str(token.attrs.get("href", token.attrs.get("src", ""))) for token in list_inside(page)]
    return [target for target in targets if target and "://" not in target and not target.startswith("mailto:")]


def list_anchors(page: str) -> list[str]:
    """Of the headings, as GitHub makes them; a second one of the same words gets a number."""
    tokens, found = parse(page), []
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            words = "".join(child.content for child in inline.children or ())
            anchor = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
            found.append(anchor if anchor not in found else f"{anchor}-{found.count(anchor)}")
    return found
