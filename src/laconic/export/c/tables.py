"""Arrays and text as C writes them; templates say name_ and NAME_ for what is called after the model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

COLUMNS = 110
INTEGERS: dict[str, type[np.integer[Any]]] = {
    "uint8_t": np.uint8,
    "int8_t": np.int8,
    "uint16_t": np.uint16,
    "int16_t": np.int16,
    "int32_t": np.int32,
}
INTEGERS |= {"uint32_t": np.uint32, "int64_t": np.int64}


def fit_integer(values: NDArray[Any] | Sequence[int]) -> str:
    """The smallest type that holds them all."""
    low, high = (int(np.min(values)), int(np.max(values))) if len(values) else (0, 0)
    limits = {name: np.iinfo(kind) for name, kind in INTEGERS.items()}
    return next(name for name, limit in limits.items() if limit.min <= low and high <= limit.max)


def write_table(ctype: str, name: str, values: Iterable[Any], meaning: str) -> str:
    """A constant array; one of nothing has a zero, for C knows none."""
    words = [write_number(ctype, value) for value in np.asarray(list(values)).reshape(-1)] or ["0"]
    return f"/* {meaning} */\nstatic const {ctype} {name}[] = {{\n{wrap(words)}\n}};\n"


def write_number(ctype: str, value: Any) -> str:
    if ctype not in ("float", "double"):
        return str(int(value))
    text = repr(float(value))  # the shortest that reads back as the very number
    return text + "f" if ctype == "float" else text


def wrap(words: list[str]) -> str:
    lines, line = [], ""
    for word in words:
        if len(line) + len(word) + 2 > COLUMNS:
            lines.append(line)
            line = ""
        line += f"{word}, " if line else f"    {word}, "
    return "\n".join([*lines, line]).replace(", \n", ",\n").removesuffix(", ")


def define(**macros: object) -> str:
    return "".join(f"#define NAME_{name.upper()} {value}\n" for name, value in macros.items())


def quote(text: str) -> str:
    """A C string; what is not plain ASCII goes as its bytes in UTF-8."""
    plain = set(range(32, 127)) - set(b'"\\?')  # ? could begin a trigraph
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in text.encode()) + '"'


def call_after(name: str, template: str) -> str:
    template = re.sub(r"\bNAME_", f"{name.upper()}_", template)
    return re.sub(r"\bname_", f"{name}_", template)
