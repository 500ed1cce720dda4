"""Where a method is told about: the page whose title names it, by family."""

from collections.abc import Iterator
from pathlib import Path

from laconic.algorithms import METHODS

PAGES = Path(__file__).parent.parent / "docs" / "methods"
FAMILIES = {
    "tsetlin": "Tsetlin Machines, in the core",
    "heads": "Features made from a seed, in the core",
    "networks": "Neural networks, with PyTorch (extra `nn`)",
}


def find_page(method: str) -> str:
    """Its name, x.md."""
    for path in sorted(PAGES.glob("*.md")):
        title = path.read_text("utf-8").partition("\n")[0]
        if method in title.removeprefix("# ").replace(",", " ").split():
            return path.name
    raise ValueError(f"no page in docs/methods has {method} in its title")


def list_family(family: str) -> Iterator[tuple[str, str]]:
    """Methods and their pages, of which some share one."""
    return ((name, find_page(name)) for name, method in METHODS.items() if method.family == family)
