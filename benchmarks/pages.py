"""Writes anew what pages have from figures and code: tables of docs/results from the JSON beside them (tables.py,
partition_tables.py, pool_tables.py), those of methods from what each says of itself, its messages' schemas and all
results (method_tables.py), the README's first sentence and its picture (headline.py).

    python benchmarks/pages.py              writes
    python benchmarks/pages.py --check      writes nothing; exits with 1 if a page is not what it should be

A page holds a table between `<!-- table: NAME -->` and `<!-- end -->`; the JSON is NAME up to the first dot. Words made
so stand between `<!-- words: NAME -->` and `<!-- end -->`.
"""

import json
import re
import sys
from pathlib import Path

import headline
import method_tables  # noqa: F401  # adds its tables
import partition_tables  # noqa: F401  # likewise
import pool_tables  # noqa: F401  # likewise
from tables import TABLES

from laconic.reproduce.page import TABLE, render_table

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"
WORDS = re.compile(r"(<!-- words: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
SENTENCES = {"headline": headline.write_sentence}
PICTURES = {RESULTS / "bytes.svg": headline.draw}


def render(name: str) -> str:
    """The table as Markdown."""
    header, make = TABLES[name]
    source = RESULTS / f"{name.split('.')[0]}.json"
    return render_table(header, make(json.loads(source.read_text("utf-8")) if source.exists() else None))


def refresh(page: str) -> str:
    """The page's text with every table and all words made anew."""
    page = WORDS.sub(lambda found: found[1] + SENTENCES[found[2]]() + found[3], page)
    return TABLE.sub(lambda found: found[1] + render(found[2]) + found[3], page)


def list_pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs" / "methods").glob("*.md")), *sorted(RESULTS.rglob("*.md"))]


def main(arguments: list[str]) -> None:
    made = {path: refresh(path.read_text("utf-8")) for path in list_pages()}
    made |= {path: draw() for path, draw in PICTURES.items()}
    stale = {path: text for path, text in made.items() if not path.exists() or path.read_text("utf-8") != text}
    for path, text in stale.items():
        print(path.name)
        if "--check" not in arguments:
            path.write_text(text, "utf-8")
    if stale and "--check" in arguments:
        sys.exit("these are not what they should be: run make tables, or python benchmarks/pages.py")


if __name__ == "__main__":
    main(sys.argv[1:])
