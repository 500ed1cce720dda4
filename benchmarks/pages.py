"""Writes tables of the documentation anew: those of docs/results from the JSON beside them, those of methods from what
each method says of itself and from the schemas of its messages. How each is made stands in tables.py.

    python benchmarks/pages.py              writes
    python benchmarks/pages.py --check      writes nothing; exits with 1 if a page is not what it should be

A page holds a table between `<!-- table: NAME -->` and `<!-- end -->`; the JSON is NAME up to the first dot.
"""

import json
import sys
from pathlib import Path

from tables import TABLES

from laconic.reproduce.page import TABLE, render_table

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"


def render(name: str) -> str:
    """The table as Markdown."""
    header, make = TABLES[name]
    source = RESULTS / f"{name.split('.')[0]}.json"
    return render_table(header, make(json.loads(source.read_text("utf-8")) if source.exists() else None))


def refresh(page: str) -> str:
    """The page's text with every table made anew."""
    return TABLE.sub(lambda found: found[1] + render(found[2]) + found[3], page)


def list_pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs" / "methods").glob("*.md")), *sorted(RESULTS.glob("*.md"))]


def main(arguments: list[str]) -> None:
    stale = {path: new for path in list_pages() if (new := refresh(old := path.read_text("utf-8"))) != old}
    for path, text in stale.items():
        print(path.name)
        if "--check" not in arguments:
            path.write_text(text, "utf-8")
    if stale and "--check" in arguments:
        sys.exit("these are not what they should be: run python benchmarks/pages.py")


if __name__ == "__main__":
    main(sys.argv[1:])
