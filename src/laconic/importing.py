"""Classes and functions of one's own by name, `package.module:Class`; modules in the working folder are found too."""

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def import_class(where: str) -> type:
    """ValueError in words if there is no such class."""
    found = import_named(where, "class", "mynet:Net for class Net in mynet.py")
    if not isinstance(found, type):
        raise ValueError(f'"{where}": {where.partition(":")[2]} is a {type(found).__name__}, a class was expected')
    return found


def import_function(where: str) -> Callable[..., Any]:
    """ValueError in words if there is none."""
    found = import_named(where, "function", "mybank:read for function read in mybank.py")
    if not callable(found):
        raise ValueError(f'"{where}": {where.partition(":")[2]} is a {type(found).__name__}, a function was expected')
    named: Callable[..., Any] = found
    return named


def import_named(where: str, kind: str, example: str) -> Any:
    name, _, attribute = where.partition(":")
    if not (name and attribute):
        raise ValueError(f'"{where}" names no {kind}; write module:{kind.capitalize()}, e.g. {example}')
    here = os.getcwd()  # noqa: PTH109  # as sys.path has it, text
    if here not in sys.path and "" not in sys.path:  # an installed command does not look where it was called
        sys.path.insert(0, here)
    try:
        module = import_module(name)
    except ImportError as error:
        if error.name is not None and not f"{name}.".startswith(f"{error.name}."):  # it is there, and wants another
            raise ValueError(
                f'"{where}": module {name} could not be imported ({error}); install what it needs'
            ) from error
        raise ValueError(
            f'"{where}": there is no module {name} ({error}); it must be installed, or lie in {here}'
        ) from error
    except Exception as error:  # whatever a stranger's module does when it is imported
        raise ValueError(f'"{where}": importing {name} failed: {type(error).__name__}: {error}') from error
    found: Any = module
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if found is None:
        is_wanted = callable if kind == "function" else lambda value: isinstance(value, type)
        there = sorted(key for key, value in vars(module).items() if is_wanted(value))
        plural = "classes" if kind == "class" else "functions"
        raise ValueError(f'"{where}": {name} has no {attribute}; {plural} in it: {", ".join(there) or "none"}')
    return found
