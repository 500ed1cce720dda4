"""TOML in and out, by annotation: where each value came from, whether it is of its kind, and how it is written."""

from __future__ import annotations

import difflib
import json
import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: 'a text in "quotes"', NoneType: '"none"'}


class ConfigError(ValueError):
    """What was asked for cannot be; `code` is stable.

    E101 unknown key, E102 value, E103 file, E110 name, E140 missing extra, E150 data are no bits, E160 folder in use.
    """

    def __init__(self, code: str, message: str, where: str = "") -> None:
        super().__init__(f"{where}  {message}" if where else message)
        self.code = code


def lacking(what: str, extra: str, error: ImportError) -> ConfigError:
    return ConfigError(
        "E140", f'{what} needs {error.name or error}, which is not installed.  pip install "laconic-fl[{extra}]"'
    )


class Given(NamedTuple):
    value: Any
    where: str  # exp.toml:7 or --set rounds
    text: str | None = None  # as typed behind --set, where that is no text to TOML


def read_file(path: Path) -> dict[str, Given]:
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except FileNotFoundError:
        raise ConfigError("E103", f"{path} does not exist.  Make one: laconic init {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("E103", f"{path} cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        raise ConfigError("E103", f"is no TOML: {error}", f"{path}:{line[1]}" if line else str(path)) from None
    lines = find_lines(text)
    given = {}
    for key, value in flatten(document).items():
        line_number = lines.get(key, lines.get(key.rpartition(".")[0]))
        given[key] = Given(value, f"{path}:{line_number}" if line_number else str(path))
    return given


def flatten(table: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Settings by their full keys; an empty section stands for itself."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        inner = flatten(value, f"{above}{key}.") if isinstance(value, dict) else {}
        flat |= inner or {f"{above}{key}": value}
    return flat


def find_lines(text: str) -> dict[str, int]:
    """Where each key and section stands first, counted from 1."""
    lines: dict[str, int] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), start=1):
        plain = re.sub(r"[\s\"']", "", line)
        if header := re.match(r"\[+([\w.-]+)\]", plain):
            section = f"{header[1]}."
            lines.setdefault(header[1], number)
        elif key := re.match(r"([\w.-]+)=", plain):
            lines.setdefault(section + key[1], number)
    return lines


def read_setting(setting: str) -> tuple[str, Given]:
    key, equals, text = setting.partition("=")
    key, text = key.strip(), text.strip()
    if not equals or not key:
        raise ConfigError("E102", f"--set {setting} must be key=value, e.g. --set data.alpha=0.1")
    try:
        parsed = tomllib.loads(f"v = {text}")
    except tomllib.TOMLDecodeError:  # a bare word
        parsed = {}
    value = parsed["v"] if parsed.keys() == {"v"} else text
    return key, Given(value, f"--set {key}", None if isinstance(value, str) else text)


def convert_given(key: str, annotation: Any, given: Given) -> Any:
    try:
        return convert(annotation, given.value, given.text)
    except TypeError:
        hint = ""
        if get_origin(annotation) is Literal and isinstance(given.value, str):
            close = difflib.get_close_matches(given.value, [str(option) for option in get_args(annotation)], n=1)
            hint = f"  Did you mean {close[0]}?" if close else ""
        shown = given.text if given.text is not None else toml_value(given.value)
        raise ConfigError("E102", f"{key} = {shown} must be {describe(annotation)}.{hint}", given.where) from None


def convert(annotation: Any, value: Any, text: str | None = None) -> Any:
    """The value as the annotation has it, TypeError if it is another kind; only whole numbers become floats."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        for part in parts:
            try:
                return convert(part, value, text)
            except TypeError:
                continue
    elif origin is Literal:
        for option in parts:
            if type(option) is type(value) and option == value:
                return option
    elif origin is tuple and isinstance(value, list):
        kinds = parts[:1] * len(value) if parts[-1] is Ellipsis else parts
        if len(kinds) == len(value):
            return tuple(convert(kind, item) for kind, item in zip(kinds, value, strict=True))
    elif annotation is NoneType:
        if value == "none":  # TOML has no null
            return None
    elif annotation is float:
        if type(value) in (int, float) and abs(value) <= sys.float_info.max:  # neither nan nor infinite
            return float(value)
    elif annotation is str and text is not None:
        return text
    elif type(value) is annotation:
        return value
    raise TypeError


def describe(annotation: Any) -> str:
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return " or ".join(describe(part) for part in parts)
    if origin is Literal:
        return "one of " + ", ".join(map(toml_value, parts))
    if origin is tuple:
        each = describe(parts[0]).removeprefix("a ")
        return f"a list of {each}s in [ ]" if parts[-1] is Ellipsis else f"a list of {len(parts)} {each}s in [ ]"
    return WORDS.get(annotation, str(annotation))


def toml_value(value: Any) -> str:
    if value is None:
        return '"none"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key} = {toml_value(item)}' for key, item in value.items())}}}"
    return repr(value) if isinstance(value, int | float) else str(value)
