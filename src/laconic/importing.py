"""Classes and functions of one's own by name, `package.module:Class`; modules in the working folder are found too."""

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def import_class(where: str) -> type:
    """ValueError in words if there is no such class."""
    found: type = import_named(where, "class", "module:Class, e.g. mynet:Net for class Net in mynet.py")
    return found


def import_function(where: str) -> Callable[[], Any]:
    """ValueError in words if there is no such function."""
    example = "module:function, e.g. mydata:read for function read in mydata.py"
    found: Callable[[], Any] = import_named(where, "function", example)
    return found


def import_named(where: str, what: str, example: str) -> Any:
    name, _, attribute = where.partition(":")
    if not (name and attribute):
        raise ValueError(f'"{where}" names no {what}; write {example}')
    is_class = what == "class"
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
        there = [key for key, value in vars(module).items() if callable(value) and isinstance(value, type) == is_class]
        kinds = "classes" if is_class else "functions"
        raise ValueError(f'"{where}": {name} has no {attribute}; {kinds} in it: {", ".join(sorted(there)) or "none"}')
    if isinstance(found, type) != is_class or not callable(found):
        raise ValueError(f'"{where}": {attribute} is a {type(found).__name__}, a {what} was expected')
    return found
