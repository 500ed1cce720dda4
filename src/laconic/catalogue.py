"""What `laconic list` lists: a row each, as a table shows them and as JSON has them."""

from __future__ import annotations

import difflib
from dataclasses import fields
from typing import Any

from laconic.algorithms import METHODS


def list_rows(what: str) -> list[dict[str, Any]]:
    if what in LISTS:
        return LISTS[what]()
    if what in METHODS:
        return list_settings(what)
    from laconic.runs.typed_toml import ConfigError

    close = difflib.get_close_matches(what, [*LISTS, *METHODS], n=1)
    hint = f"Did you mean {close[0]}?" if close else f"There are: {', '.join(LISTS)} and each method by name."
    raise ConfigError("E110", f'nothing called "{what}" can be listed.  {hint}')


def list_methods() -> list[dict[str, Any]]:
    columns = ("name", "family", "paper", "travels", "extra")
    return [{name: getattr(method, name) for name in columns} for method in METHODS.values()]


def list_settings(method: str) -> list[dict[str, Any]]:
    from laconic.runs.config import find_method, list_keys, read_comments
    from laconic.runs.typed_toml import describe

    cls = find_method(method)
    hints, comments, defaults = list_keys("method", cls), read_comments(cls), cls()
    return [
        {"key": key, "default": getattr(defaults, f.name), "takes": describe(hints[key]), "meaning": comments[f.name]}
        for f in fields(cls)
        for key in [f"method.{f.name}"]
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


LISTS = {"methods": list_methods, "datasets": list_datasets, "partitions": list_partitions}
