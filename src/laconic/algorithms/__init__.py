"""The methods that there are: each file in tsetlin/, heads/ and networks/ with a class that says `name = ...`; nothing
else lists them. Methods from elsewhere are found by an entry point of the group `laconic.methods`, or by their class:
`package.module:Class`, where modules in the working folder are found too.

What a method says of itself stands in the docstring of its file, a word and a text each: paper, round, merge, sent.
"""

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from laconic.importing import import_class

if TYPE_CHECKING:
    from laconic.algorithm import Algorithm

GROUP = "laconic.methods"
EXTRAS = {
    "tsetlin": "",
    "heads": "",
    "networks": "nn",
}  # family -> what to install beside the core: pip install "laconic-fl[extra]"
OTHER = "other"  # family of methods from elsewhere


@dataclass(frozen=True)
class Method:
    name: str
    family: str  # tsetlin, heads, networks or other
    where: str  # module:Class
    summary: str
    paper: str
    travels: str  # up and down
    extra: str = ""


def read_methods() -> Iterator[Method]:
    """From the sources, for to import all of them would take PyTorch along, and seconds."""
    for family, extra in EXTRAS.items():
        for path in sorted((Path(__file__).parent / family).glob("*.py")):
            tree = ast.parse(path.read_text("utf-8"))
            for node in tree.body:
                if isinstance(node, ast.ClassDef) and (name := read_name(node)):
                    where = f"{__name__}.{family}.{path.stem}:{node.name}"
                    yield describe(name, family, where, ast.get_docstring(tree) or "", extra)


def read_name(node: ast.ClassDef) -> str:
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="name")], value=ast.Constant(value=str(name))):
                return name
    return ""


def describe(name: str, family: str, where: str, docstring: str, extra: str = "") -> Method:
    """By the docstring's first line, and what stands behind `paper` and `sent`; a text may go on in indented lines."""
    told = {
        word: " ".join(text.split()) for word, text in re.findall(r"^(\w+) +((?:.+\n?(?: +.+\n?)*))", docstring, re.M)
    }
    summary = docstring.partition("\n")[0]
    return Method(name, family, where, summary, told.get("paper", "none"), told.get("sent", "not told"), extra)


METHODS = {method.name: method for method in read_methods()}
if not METHODS:
    raise ImportError(f"no method is found in {Path(__file__).parent}; Laconic needs its sources, in a plain folder")


@cache
def installed_methods() -> dict[str, str]:
    """Name -> module:Class of methods that other packages bring."""
    from importlib.metadata import entry_points

    points = [point for point in entry_points(group=GROUP) if point.name not in METHODS]
    return {point.name: f"{point.module}:{point.attr}" for point in points}


def load_method(name: str) -> "type[Algorithm]":
    """By name or as module:Class; KeyError for a name that nobody has, ValueError for what is no method."""
    if name in METHODS:
        module, _, class_name = METHODS[name].where.partition(":")
        found: type[Algorithm] = getattr(import_module(module), class_name)
        return found
    if ":" not in name and name not in installed_methods():
        raise KeyError(name)
    where = name if ":" in name else installed_methods()[name]
    return check_method(import_class(where), where)


def check_method(found: type, where: str) -> "type[Algorithm]":
    from laconic.algorithm import Algorithm

    if not issubclass(found, Algorithm):
        raise ValueError(f'"{where}" is no method; its class must be a laconic.algorithm.Algorithm')
    if inspect.isabstract(found):
        missing = ", ".join(sorted(found.__abstractmethods__))
        raise ValueError(f'"{where}" is no whole method; it lacks {missing}  (docs/new-method.md)')
    if unset := [f.name for f in fields(found) if f.default is MISSING and f.default_factory is MISSING]:
        raise ValueError(f'"{where}" has settings without a default: {", ".join(unset)}; give each one')
    return found


def describe_method(name: str) -> Method:
    """Also one from elsewhere, which is imported to see what it says of itself."""
    if name in METHODS:
        return METHODS[name]
    found = load_method(name)
    docstring = inspect.getdoc(sys.modules[found.__module__]) or found.__doc__ or ""
    return describe(name, OTHER, f"{found.__module__}:{found.__qualname__}", docstring)
