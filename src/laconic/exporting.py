"""What `laconic export` does once it has a model: write it in one of the forms, and tell what was written."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from laconic.files import write_atomically
from laconic.report import format_bytes

if TYPE_CHECKING:
    from laconic.client_model import ClientModel
    from laconic.export.c import Footprint

ENDINGS = {"model": ".safetensors", "c": ".h", "onnx": ".onnx", "rules": ".json"}


def export_model(
    model: ClientModel,
    form: str,
    out: Path | None,
    *,
    name: str = "model",
    rows: NDArray[Any] | None = None,
    evidence: bool = True,
) -> tuple[dict[str, Any], list[str]]:
    """What was written, as JSON has it and as lines for people. rows: raw ones, to compare C and ONNX with."""
    path = out or Path(f"{model.about.method}-client-{model.about.client}{ENDINGS[form]}")
    told: dict[str, Any] = {}
    lines: list[str] = []
    if form == "model":
        model.save(path, evidence=evidence)
    elif form == "c":
        done = model.export_c(path, name=name, rows=rows)
        told = asdict(done)
        lines = [f"the same as Python on {done.n_compared:,} rows", *map(tell_footprint, done.footprints)]
    elif form == "onnx":
        told = asdict(model.export_onnx(path, rows=rows))
        lines = [f"the same labels as Python on {told['n_compared']:,} rows"]
    else:
        write_rules(model, path)
    n_bytes = path.stat().st_size
    written = told | {"path": str(path), "form": form, "client": model.about.client, "bytes": n_bytes}
    return written, [f"{path}: {format_bytes(n_bytes)}, {model!r}", *lines]


def tell_footprint(taken: Footprint) -> str:
    flash, ram, stack = map(format_bytes, (taken.flash_bytes, taken.ram_bytes, taken.stack_bytes))
    return f"{taken.target}: flash {flash}, RAM {ram}, stack {stack} at most"


def write_rules(model: ClientModel, path: Path) -> None:
    """As JSON where the name ends so, else as lines of text."""
    rules = model.rules()
    if not rules:
        raise ValueError(
            f"this {model.about.method} model has no clauses, so there are no rules and nothing was written; "
            "laconic explain --row N tells what the features of a row add up to"
        )
    as_json = path.suffix == ".json"
    text = json.dumps([asdict(rule) for rule in rules], indent=1) if as_json else "\n".join(map(str, rules))
    write_atomically(path, f"{text}\n".encode())
