"""Classes of one's own by name, `package.module:Class`; modules in the working folder are found too."""

import os
import sys
from importlib import import_module
from typing import Any


def import_class(where: str) -> type:
    """ValueError in words if there is no such class."""
    name, _, attribute = where.partition(":")
    if not (name and attribute):
        raise ValueError(f'"{where}" names no class; write module:Class, e.g. mynet:Net for class Net in mynet.py')
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
        classes = sorted(key for key, value in vars(module).items() if isinstance(value, type))
        raise ValueError(f'"{where}": {name} has no {attribute}; classes in it: {", ".join(classes) or "none"}')
    if not isinstance(found, type):
        raise ValueError(f'"{where}": {attribute} is a {type(found).__name__}, a class was expected')
    named: type = found
    return named
