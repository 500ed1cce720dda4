"""What Python calls settings, `alpha=0.1`, in the words of the TOML file: data.alpha = 0.1."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from laconic.runs.config import SECTIONS, TOP_KEYS, DataSettings, FleetSettings, list_keys, method_keys
from laconic.runs.typed_toml import ConfigError, flatten, toml_value


def read_keywords(
    methods: Sequence[str], keywords: Mapping[str, Any], settings: Mapping[str, Any] | None = None
) -> list[str]:
    """As `--set` takes them. settings: of the method, "training.rate", or by a whole key, "data.alpha"."""
    given = {find_key(word, methods, keywords): value for word, value in keywords.items() if value is not None}
    for key, value in (settings or {}).items():
        section = key.partition(".")[0]
        given[key if section in {*SECTIONS, *methods} else f"method.{key}"] = value
    return [f"{key}={toml_value(plain(value))}" for key, value in flatten(given).items()]


def find_key(word: str, methods: Sequence[str], keywords: Mapping[str, Any]) -> str:
    if word in ("data", "fleet"):
        return f"{word}.name"
    if word in TOP_KEYS:
        return word
    mine = dict.fromkeys(key for method in methods for key in method_keys(method))
    groups = dict.fromkeys(key.partition(".")[0] for key in mine if "." in key)
    known = {key.partition(".")[2]: key for key in list_keys("fleet", FleetSettings)}
    known |= {key: f"method.{key}" for key in (*mine, *groups)}
    known |= {key.partition(".")[2]: key for key in list_keys("data", DataSettings)}
    if word not in known or word == "name":
        close = difflib.get_close_matches(word, [*known, *TOP_KEYS], n=1)
        hint = f"  Did you mean {close[0]}?" if close else ""
        raise ConfigError("E101", f"unknown setting {word}.{hint}  (laconic list {methods[0]}; laconic init FILE)")
    return known[word]


def plain(value: Any) -> Any:
    """As TOML has it."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Path):
        return str(value)
    if not isinstance(value, bool | int | float | str | list | tuple):
        raise ConfigError("E102", f"{value!r:.80} is a {type(value).__name__}; a number, text or list was expected")
    return value


@contextmanager
def in_python() -> Iterator[None]:
    """Errors name settings as Python has them, without the command line's --set."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(error.code, str(error).replace("--set ", "")) from None
