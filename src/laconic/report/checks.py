"""What each file of a run folder must hold, and complaints that name the line where it does not."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

SCHEMA = 1

Check = tuple[Callable[[Any], bool], str]


def is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


WHOLE: Check = (lambda v: type(v) is int and v >= 0, "a whole number from 0 up")
WHOLE_OR_NULL: Check = (lambda v: v is None or (type(v) is int and v >= 0), "a whole number from 0 up, or null")
AMOUNT: Check = (lambda v: is_number(v) and v >= 0, "a number from 0 up")
SHARE: Check = (lambda v: v is None or (is_number(v) and 0 <= v <= 1), "a number from 0 to 1, or null")
YES_NO: Check = (lambda v: type(v) is bool, "true or false")
TEXT: Check = (lambda v: type(v) is str, "a text")
TABLE: Check = (lambda v: type(v) is dict, "a table")
LIST: Check = (lambda v: type(v) is list, "a list")
COUNTS: Check = (lambda v: type(v) is list and all(type(n) is int and n >= 0 for n in v), "a list of counts")
ROWS: Check = (
    lambda v: type(v) is list and all(type(row) is list and all(map(is_number, row)) for row in v),
    "lists of numbers",
)
NUMBERS: Check = (  # a method may note nan; JSON's writers spell it NaN
    lambda v: type(v) is dict and all(n is None or type(n) in (int, float) for n in v.values()),
    "an object of numbers",
)
DIRECTION: Check = (lambda v: v in ("up", "down", "peer"), '"up", "down" or "peer"')

ROUND: dict[str, Check] = {"round": WHOLE}
ROUND |= dict.fromkeys(("accuracy_mean", "accuracy_p10", "accuracy_min", "accuracy_pooled"), SHARE)
ROUND |= dict.fromkeys(("upload_bytes", "download_bytes", "peer_bytes"), WHOLE)
ROUND |= dict.fromkeys(("paper_upload_bytes", "paper_download_bytes"), AMOUNT)
ROUND |= {"n_sampled": WHOLE, "n_replied": WHOLE, "is_void": YES_NO, "notes": NUMBERS}
SCORE = {"round": WHOLE, "client": WHOLE, "n_test": WHOLE, "n_correct": WHOLE, "accuracy": SHARE, "notes": NUMBERS}
LATER = dict.fromkeys(
    ("busiest_bytes", "budget_bytes", "n_refused"), WHOLE_OR_NULL
)  # of a round, but not in the oldest records
MATRIX = {"round": WHOLE, "name": TEXT, "down": TEXT, "across": TEXT, "rows": COUNTS, "values": ROWS}
PAIRS = {"round": WHOLE, "name": TEXT, "clients": COUNTS, "values": ROWS}
TRAFFIC = {"round": WHOLE, "step": TEXT, "direction": DIRECTION, "client": WHOLE, "peer": WHOLE_OR_NULL, "field": TEXT}
TRAFFIC |= {"sent_bytes": WHOLE, "packed_bytes": WHOLE, "entropy_bytes": AMOUNT, "paper_bits": AMOUNT}
TIME = {"round": WHOLE, "seconds": AMOUNT, "evaluate_seconds": AMOUNT}
LETTERS = {"round": WHOLE, "kind": TEXT, "n_letters": WHOLE, "down_bytes": WHOLE, "up_bytes": WHOLE}
PARTITION = {"classes": LIST, "clients": LIST, "sha256": TEXT}
SHARES = {"client": WHOLE, "train": COUNTS, "val": COUNTS, "test": COUNTS}


def fault(place: str, came: str, due: str) -> ValueError:
    return ValueError(f"{place}: {came}; {due} was due; restore the file from a copy, or run again")


def check(place: str, found: Any, due: Mapping[str, Check]) -> None:
    if type(found) is not dict:
        raise fault(place, f"{str(found)[:60]!r}", f"an object with {', '.join(due)}")
    for key, (is_right, name) in due.items():
        if key not in found:
            raise fault(place, f"{key} is missing", name)
        if not is_right(found[key]):
            raise fault(place, f"{key} is {str(found[key])[:60]!r}", name)


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise fault(f"{path}:{line}", f"byte {error.object[error.start]:#04x}", "UTF-8 text") from None


def read_json(path: Path, due: Mapping[str, Check]) -> dict[str, Any]:
    try:
        found = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise fault(f"{path}:{error.lineno}", error.msg, "JSON") from None
    check(str(path), found, {"schema": WHOLE})
    if found["schema"] > SCHEMA:
        raise ValueError(f"{path}: its schema is {found['schema']}, this laconic reads {SCHEMA}; upgrade laconic")
    check(str(path), found, due)
    return dict(found)


def read_lines(path: Path, due: Mapping[str, Check]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(file:line, object) of each; a last line without its end was cut short, and is left out."""
    if not path.exists():  # a run that has only just begun
        return
    lines = read_text(path).split("\n")
    for number, line in enumerate(lines, start=1):
        place = f"{path}:{number}"
        try:
            found = json.loads(line)
        except json.JSONDecodeError as error:
            if number == len(lines):
                return
            raise fault(place, f"{line[:60]!r} ({error.msg})", "one JSON object") from None
        check(place, found, due)
        yield place, found
