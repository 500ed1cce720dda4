"""Writes the tables of docs/results/*.md anew from the JSON beside them; how each is made stands in tables.py.

    python benchmarks/pages.py              writes
    python benchmarks/pages.py --check      writes nothing; exits with 1 if a page is not what its JSON gives

A page holds a table between `<!-- table: NAME -->` and `<!-- end -->`; the JSON is NAME up to the first dot.
"""

import json
import re
import sys
from pathlib import Path

from tables import TABLES

RESULTS = Path(__file__).parent.parent / "docs" / "results"
TABLE = re.compile(r"(<!-- table: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def render(name: str) -> str:
    """The table as Markdown."""
    header, make = TABLES[name]
    rows = [header.split("|"), *make(json.loads((RESULTS / f"{name.split('.')[0]}.json").read_text("utf-8")))]
    head, *body = ["| " + " | ".join(cell.strip() for cell in row) + " |\n" for row in rows]
    return head + "|---" * len(rows[0]) + "|\n" + "".join(body)


def refresh(page: str) -> str:
    """The page's text with every table made anew."""
    return TABLE.sub(lambda found: found[1] + render(found[2]) + found[3], page)


def main(arguments: list[str]) -> None:
    stale = {
        path: new for path in sorted(RESULTS.glob("*.md")) if (new := refresh(old := path.read_text("utf-8"))) != old
    }
    for path, text in stale.items():
        print(path.name)
        if "--check" not in arguments:
            path.write_text(text, "utf-8")
    if stale and "--check" in arguments:
        sys.exit("these are not what their JSON gives: run python benchmarks/pages.py")


if __name__ == "__main__":
    main(sys.argv[1:])
