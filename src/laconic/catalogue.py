"""What `laconic list` lists: a row each, as a table shows them and as JSON has them."""

from __future__ import annotations

import difflib
from typing import Any

from laconic.algorithms import METHODS, OTHER, Method, describe_method, installed_methods

NOTED = "for the record; leaves a real node only if its owner sets notes = true"


def list_rows(what: str, *, travels: bool = False) -> list[dict[str, Any]]:
    """travels: of a method, what its messages hold in place of its settings."""
    if what in LISTS and travels:
        from laconic.runs.typed_toml import ConfigError

        raise ConfigError("E110", f"--travels is of one method, not of {what}.  Example: laconic list fedtm --travels")
    if what in LISTS:
        return LISTS[what]()
    known = [*METHODS, *installed_methods()]
    if what in known or ":" in what:
        return list_travels(what) if travels else list_settings(what)
    from laconic.runs.typed_toml import ConfigError

    close = difflib.get_close_matches(what, [*LISTS, *known], n=1)
    hint = f"Did you mean {close[0]}?" if close else f"There are: {', '.join(LISTS)} and each method by name."
    raise ConfigError("E110", f'nothing called "{what}" can be listed.  {hint}')


def list_methods() -> list[dict[str, Any]]:
    """Those of other packages are imported for it."""
    columns = ("name", "family", "paper", "travels", "extra")
    methods = [*METHODS.values(), *(describe_installed(name, where) for name, where in installed_methods().items())]
    return [{name: getattr(method, name) for name in columns} for method in methods]


def describe_installed(name: str, where: str) -> Method:
    """One that cannot be had must not take all others along."""
    try:
        return describe_method(name)
    except ValueError as error:
        return Method(name, OTHER, where, "", "", f"cannot be had: {error}")


def list_settings(method: str) -> list[dict[str, Any]]:
    from laconic.runs.config import find_method, list_keys, read_comments, value_at
    from laconic.runs.typed_toml import describe

    cls = find_method(method)
    comments, defaults = read_comments(cls), cls()
    return [
        {"key": key, "default": value_at(defaults, name), "takes": describe(hint), "meaning": comments[name]}
        for key, hint in list_keys("method", cls).items()
        for name in [key.removeprefix("method.")]
    ]


def list_travels(method: str) -> list[dict[str, Any]]:
    """Each field of each message, by the schemas that both ends code by, and what clients may note."""
    from laconic.algorithm import steps_of
    from laconic.runs.config import find_method, read_comments

    cls = find_method(method)
    steps = steps_of(cls)
    published = {step.message for step in steps if step.hears_peers}
    ways = [("down", step.name, step.message) for step in steps if not step.hears_peers]
    ways += [("peer" if step.reply in published else "up", step.name, step.reply) for step in steps if step.reply]
    comments = {message: read_comments(message) for _, _, message in ways if message.schema}
    elsewhere = {name: text for found in comments.values() for name, text in found.items() if text}
    rows = [
        {
            "direction": direction,
            "step": step,
            "field": field.name,
            "kind": field.kind,
            "optional": field.optional,
            "meaning": comments[message][field.name] or elsewhere.get(field.name, ""),  # replies are like requests
        }
        for name in dict.fromkeys(step.name for step in steps)
        for direction, step, message in ways
        if step == name
        for field in message.schema
    ]
    return rows + [
        {"direction": "note", "step": "", "field": name, "kind": "floats", "optional": True, "meaning": NOTED}
        for name in cls.client_notes
    ]


def list_datasets() -> list[dict[str, Any]]:
    from laconic.data import KNOWN

    return [
        {"name": name, "what": known.title, "booleanize": known.booleanize, "from": known.page or "scikit-learn"}
        for name, known in KNOWN.items()
    ]


def list_partitions() -> list[dict[str, Any]]:
    from laconic.data.partition import PARTITIONS

    return [{"name": name, "what": meaning} for name, meaning in PARTITIONS.items()]


def list_models() -> list[dict[str, Any]]:
    """With the number of parameters for images of 28 by 28 and 10 classes, and of 32 by 32 in colour."""
    try:
        from laconic.networks import MODELS, Spec, layout
    except ImportError as error:
        from laconic.runs.typed_toml import ConfigError

        raise ConfigError(
            "E140", f'models need {error.name}, which is not installed.  pip install "laconic-fl[nn]"'
        ) from error

    shapes = {"28x28": (28, 28), "32x32x3": (32, 32, 3)}
    return [
        {"name": name} | {size: layout(Spec(name, shape, 10)).n_trained for size, shape in shapes.items()}
        for name in MODELS
    ]


LISTS = {"methods": list_methods, "datasets": list_datasets, "partitions": list_partitions, "models": list_models}
