"""What a server may ask a node to run: methods and models that are installed there, of those that its owner lists."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from laconic.runs.typed_toml import ConfigError

if TYPE_CHECKING:
    from laconic.runs.config import Config

ANY = ("*",)


def read_experiment(path: Path, methods: Sequence[str] = ANY, models: Sequence[str] = ANY) -> Config:
    """At a node; ConfigError for what it does not allow. Nothing that the file names is imported before."""
    from laconic.runs.config import read_config

    check_allowed(tomllib.loads(path.read_text("utf-8")).get("method", {}), methods, models)
    return read_config(path)


def check_allowed(method: Any, methods: Sequence[str] = ANY, models: Sequence[str] = ANY) -> None:
    """method: its section of the settings."""
    name = method.get("name", "fedtm") if isinstance(method, dict) else method
    _check("methods", name, methods)
    for model in _find_models(method):
        _check("models", model, models)
    for text in _list_texts(method):
        if ":" in text and text not in (*methods, *models):
            raise ConfigError(
                "E170",
                f'real nodes take methods and models by name, and "{text}" is a class.  Install it on every node as '
                "an entry point of the group laconic.methods, or list it in each node.toml  (docs/deploy.md)",
            )


def _check(kind: str, name: Any, allowed: Sequence[str]) -> None:
    if not any(fnmatchcase(str(name), pattern) for pattern in allowed):
        listed = ", ".join(allowed) or "none"
        raise ConfigError(
            "E170",
            f'"{name}" is not among the {kind} that this node allows: {listed}.  Its owner lists them in node.toml',
        )


def _find_models(settings: Any) -> Iterator[str]:
    """Whatever stands under `model` or `models`, however deep."""
    if isinstance(settings, dict):
        for key, value in settings.items():
            if key in ("model", "models"):
                yield from _list_texts(value)
            else:
                yield from _find_models(value)


def _list_texts(settings: Any) -> Iterator[str]:
    if isinstance(settings, dict | list):
        for value in settings.values() if isinstance(settings, dict) else settings:
            yield from _list_texts(value)
    elif isinstance(settings, str):
        yield settings
